"""A history must be sealed in every field, and allowed at every moment, not at its end alone."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.entries import FIRST_PREVIOUS, Entry, draft
from discreet.trusted.ledger.stores import Balance, Holding
from discreet.trusted.ledger.units import COORDINATES, Amounts
from discreet.trusted.ledger.verification import Verification, verify

WHOLE = 10**12  # units of ε = 1, the box


@dataclass(frozen=True)
class Kept:
    """A container that keeps whatever it is given."""

    kept: list[Entry]
    last: Balance
    aside: list[Holding]

    def entries(self) -> list[Entry]:
        return self.kept

    def balance(self) -> Balance:
        return self.last

    def holdings(self) -> list[Holding]:
        return self.aside

    def damage(self) -> list[str]:
        return []


def verified(
    *drafts: Entry, spent: int = 0, reserved: int = 0, aside: tuple[Holding, ...] = ()
) -> Verification:
    """The outcome for a well sealed history after the opening, with the balance that is said."""
    first = Ledger.open(PureDP(1)).entries()[0]
    entries = [first]
    for line in drafts:
        entries.append(line.after(len(entries), entries[-1].hash))
    balance = Balance(
        box=first.amounts,
        spent=Amounts(epsilon=spent),
        reserved=Amounts(epsilon=reserved),
        entries=len(entries),
        head=entries[-1].hash,
    )
    return verify(Kept(entries, balance, list(aside)))


def line(kind: str, key: str, epsilon: int, reservation: str = "") -> Entry:
    body = "{}" if kind == "debit" else ""
    amounts = Amounts(epsilon=epsilon)
    return draft(kind, key, amounts=amounts, body=body, reservation=reservation)


def test_every_field_of_an_entry_is_sealed() -> None:
    entry = Ledger.open(PureDP(1)).entries()[0]
    sealed = entry.digest()
    for field in fields(Entry):
        if field.name in ("hash", "amounts"):
            continue
        value = getattr(entry, field.name)
        other = value + 1 if isinstance(value, int) else f"{value}x"
        assert replace(entry, **{field.name: other}).digest() != sealed, field.name
    for name in COORDINATES:
        amounts = replace(entry.amounts, **{name: getattr(entry.amounts, name) + 1})
        assert replace(entry, amounts=amounts).digest() != sealed, name


def test_a_right_history_passes() -> None:
    half = Holding(
        key="r", amounts=Amounts(epsilon=WHOLE // 2), used=Amounts(epsilon=7), is_open=False
    )
    outcome = verified(
        line("reserve", "r", WHOLE // 2),
        line("debit", "a", 7, "r"),
        line("close", "r", WHOLE // 2 - 7),
        line("debit", "b", 5),
        spent=12,
        aside=(half,),
    )
    assert outcome.ok, str(outcome)


def test_what_never_fitted_is_noticed_though_the_end_is_right() -> None:
    """More was set aside than the box holds, and handed back."""
    whole = Amounts(epsilon=2 * WHOLE)
    outcome = verified(
        line("reserve", "r", 2 * WHOLE),
        line("close", "r", 2 * WHOLE),
        aside=(Holding(key="r", amounts=whole, is_open=False),),
    )
    assert outcome.problems == ("entry 1: it did not fit what was left",)


def test_a_step_beyond_its_reservation_is_noticed_though_the_box_holds_it() -> None:
    used = Holding(key="r", amounts=Amounts(epsilon=10), used=Amounts(epsilon=11))
    outcome = verified(
        line("reserve", "s", 100),
        line("reserve", "r", 10),
        line("debit", "a", 11, "r"),
        spent=11,
        reserved=99,
        aside=(Holding(key="s", amounts=Amounts(epsilon=100)), used),
    )
    assert outcome.problems == ("entry 3: it did not fit what was left",)


@pytest.mark.parametrize("drafts", [("debit", "a", 0), ("close", "nobody", 1)])
def test_a_line_that_nothing_allowed_is_noticed(drafts: tuple[str, str, int]) -> None:
    assert not verified(line(*drafts)).ok


@pytest.mark.parametrize(
    ("drafts", "said"),
    [
        ([("debit", "a", 1), ("debit", "a", 1)], "entry 2: its key was debited before"),
        ([("debit", "a", 1, "nobody")], "entry 1: its reservation does not exist"),
        ([("answer", "a", 0)], "entry 1: no earlier debit paid for this answer"),
        ([("debit", "a", 1), ("answer", "a", 1)], "entry 2: no earlier debit paid for this answer"),
        (
            [("debit", "a", 1), ("answer", "a", 0), ("answer", "a", 0)],
            "entry 3: its key has an earlier answer",
        ),
        ([("reserve", "r", 1), ("reserve", "r", 1)], "entry 2: its key was reserved before"),
        (
            [("reserve", "r", 1), ("close", "r", 1), ("close", "r", 1)],
            "entry 3: it returns what was not set aside",
        ),
        ([("open", "", 5)], "entry 1: a second 'open' entry"),
    ],
)
def test_each_line_is_refused_for_its_own_reason(
    drafts: list[tuple[str, str, int]], said: str
) -> None:
    assert verified(*(line(*one) for one in drafts)).problems[0] == said


def opened(first: Entry) -> Verification:
    """The outcome for a well sealed history of one line."""
    sealed = first.after(0, FIRST_PREVIOUS)
    return verify(Kept([sealed], Balance(box=sealed.amounts, entries=1, head=sealed.hash), []))


def test_an_opening_promises_no_more_than_its_budget() -> None:
    first = Ledger.open(PureDP(1)).entries()[0]
    assert opened(first).ok
    more = replace(first, amounts=Amounts(epsilon=WHOLE + 1))
    (problem,) = opened(more).problems
    assert "is larger than" in problem
    assert "entry 0: it is not an opening" in opened(replace(first, kind="debit")).problems
    for body in ("{}", "no json", '{"budget": {"kind": "unheard of"}}', '{"budget": 7}'):
        assert opened(replace(first, body=body)).problems == ("entry 0: its budget cannot be read",)


def test_without_a_first_line_or_in_a_broken_container_nothing_is_intact() -> None:
    nothing = Balance(box=Amounts(), entries=0, head="")
    assert verify(Kept([], nothing, [])).problems == ("there is no first entry",)

    class Broken(Kept):
        def damage(self) -> list[str]:
            return ["a page is torn"]

    outcome = verify(Broken([], nothing, []))
    assert not outcome
    assert str(outcome) == "0 entries, head : NOT intact:\n  a page is torn"


def test_a_line_of_another_kind_or_type_does_not_match_its_hash() -> None:
    for odd in (line("gift", "a", 1), line("debit", "a", -1)):
        assert verified(odd).problems == ("entry 1: its content does not match its hash",)
