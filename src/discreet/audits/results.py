"""What an audit found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet import plain
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.tradeoff.guessing import amount_of
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told

ALARM = 1e-9
FORMAT = "discreet-audit"
WITHOUT_CHANCE = {
    "replay": "Along one transcript, without chance.",
    "exact": "All outputs on a pair of neighbours, without chance.",
}
SYMBOLS = {"pure": "ε", "approx": "ε", "gdp": "μ", "zcdp": "ρ"}


@dataclass(frozen=True, slots=True, repr=False)
class AuditResult(Told):
    """A measured lower bound beside a claim.

    lower      in the claim's own number (ε, μ or ρ), at confidence `level`
    p_value    the probability of so much, if the claim is true
    violated   the claim is refuted: p_value is at most 1e-9, or a question, a statistic or a debit
               was caught in the act
    method     "runs", "canaries", "exact" or "replay"
    found      what else was seen, in words
    """

    name: str
    claim: PrivacyProfile
    lower: float
    level: float
    p_value: float
    method: str
    trials: int
    found: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def claimed(self) -> float:
        """The claim's number: ε, μ or ρ."""
        return amount_of(self.claim)

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim."""
        return self.lower / self.claimed

    @property
    def violated(self) -> bool:
        return bool(self.broken) or self.p_value <= ALARM

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        symbol = SYMBOLS[getattr(self.claim, "kind", "gdp")]
        verdict = (
            "REFUTED: the claim is not true."
            if self.violated
            else "No violation was found, which proves nothing: other outputs, other neighbours or "
            "more runs may show one."
        )
        return Summary(
            f"Audit of {self.name}",
            ("method", "trials", f"{symbol} at least", f"{symbol} claimed", "share", "p-value"),
            (
                (
                    self.method,
                    str(self.trials),
                    f"{self.lower:.4g}",
                    f"{self.claimed:.4g}",
                    f"{self.share:.3f}",
                    f"{self.p_value:.3g}",
                ),
            ),
            (
                f"Claim: {self.claim}. "
                + (
                    WITHOUT_CHANCE.get(self.method, "")
                    if self.level == 1
                    else f"The bound holds with confidence {100 * self.level:g} %."
                ),
                *self.found,
                *(f"CAUGHT: {text}" for text in self.broken),
                verdict,
            ),
        )

    @plain.called
    def plot(
        self, *, ax: Any = None, title: str | None = None, path: str | Path | None = None
    ) -> Any:
        """The lower bound beside the claim, as what an attacker can achieve."""
        from discreet.plots.attacks import plot_audit

        return plot_audit(self, ax=ax, title=title, path=path)

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": FORMAT,
                "version": 1,
                "name": self.name,
                "claim": self.claim.to_dict(),  # type: ignore[attr-defined]
                "lower": self.lower,
                "claimed": self.claimed,
                "share": self.share,
                "level": self.level,
                "p_value": self.p_value,
                "violated": self.violated,
                "method": self.method,
                "trials": self.trials,
                "found": list(self.found),
                "broken": list(self.broken),
            },
            ensure_ascii=False,
        )
