"""The steps of a procedure of several releases: reserve its spend → ask, each step under its own
key → close.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from types import TracebackType

from discreet.accounting.guarantees import GDP, Guarantee, PureDP, spend_mu_squared
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.exact import float_down, sqrt_down
from discreet.trusted.losses.pricing import spend_box
from discreet.trusted.release import Question, Release
from discreet.trusted.session import fresh_key

LONGEST_KEY = 180
GRAIN = Fraction(2, 10**12)  # two units of a ledger: a debit is rounded up by less
SMALLEST = Fraction(1, 10**8)  # of ε or μ² in a step
Ask = Callable[[Question, str], Release]  # the answer to a step's question, and the step's name


class Steps:
    """Releases one after another, all out of one reservation of the whole spend; kept in order.

    Theorem.  All steps together cost no more than the spend,
              and each is debited before its data is read.
    Proof.    A debit out of a reservation is refused where it exceeds what is left of it
              (discreet.trusted.ledger).
    Checked.  tests/estimators/test_unbounded_means.py::test_the_steps_of_a_procedure_stay_within_it

    With a key a procedure that stopped half-way goes on where it stopped: finished steps are known
    by their keys, and the reservation is closed only when all are done. Without one nobody could go
    on, and what was not used is handed back at once.
    """

    def __init__(
        self,
        session: Session,
        spend: Guarantee,
        key: str | None,
        *,
        delta: Fraction = Fraction(0),
        reserved: str = "/all",
    ) -> None:
        """`reserved` follows the key in the name of the reservation, as ledgers know it."""
        self.session = session
        self.releases: list[Release] = []
        self._named = key is not None
        self._key = fresh_key() if key is None else checked_key(key)
        self._reservation = session.reserve(spend, delta=delta, key=f"{self._key}{reserved}")

    def ask(self, question: Question, step: str) -> Release:
        """The answer to a step's question, debited within what was set aside."""
        release = self.session.release(
            question, key=f"{self._key}/{step}", reservation=self._reservation
        )
        self.releases.append(release)
        return release

    def __enter__(self) -> Steps:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or not self._named:
            self._reservation.close()


def step_spend(spend: Guarantee, share: Fraction) -> Guarantee:
    """A share of a spend for one step: of ε where it is pure, else of μ², less what its debit is
    rounded up by, so that steps whose shares add up to 1 are all granted.

    A choice that is ρ-zCDP costs more than 2ρ of μ², so that a spend of ρ is divided as μ² = 2ρ
    too: what stays within a part of that stays within the part of ρ.
    """
    pure = isinstance(spend, PureDP)
    whole = spend_box(spend).epsilon if pure else spend_mu_squared(spend)
    left = whole * share - GRAIN
    if left < SMALLEST:
        raise InvalidParameter(
            "spend=",
            "it is too small to be divided among the steps of a procedure",
            "each step is a release of its own, and ledgers count in units of 1e-12",
            "spend more, or ask fewer cells or columns",
        )
    return PureDP(float_down(left)) if pure else GDP(float_down(sqrt_down(left)))


def checked_key(key: object) -> str:
    """The key of a procedure; shorter than a release's, since its steps' keys begin with it."""
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
        raise InvalidParameter(
            "key=",
            f"not a text of 1 to {LONGEST_KEY} characters",
            "the steps of a procedure are named after it",
            "pass for example key='income-mean-2026'",
        )
    return key
