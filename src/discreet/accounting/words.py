"""What every guarantee can say about itself."""

from __future__ import annotations


class Explained:
    """Gives a guarantee its `explain` method."""

    __slots__ = ()

    def explain(
        self, *, false_alarm: float = 0.05, prior: float | None = None, delta: float = 1e-6
    ) -> str:
        """In words: what an attacker who knows everyone else can achieve
        (see `discreet.accounting.explain`).
        """
        from discreet.accounting.explain import explain

        return explain(self, false_alarm=false_alarm, prior=prior, delta=delta)  # type: ignore[arg-type]
