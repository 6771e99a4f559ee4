"""What was done elsewhere is debited once, as what is known of it, and releases nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.survey import SCHEMA, data_set, open_session, survey

import discreet as dp
from discreet.accounting.gaussian import mu_for_pure
from discreet.exact import rational
from discreet.specs.registry import mechanism_from_dict
from discreet.testing import seeded_session
from discreet.trusted.learning.procedures.booking import LONGEST_NOTE
from discreet.trusted.losses.pricing import guarantee_of


def kinds(session: dp.Session) -> list[str]:
    return [entry.kind for entry in session.ledger.entries()]


def test_a_booking_is_one_debit_that_says_what_it_was() -> None:
    session = open_session(budget=dp.GDP(1))
    debit = session.book(dp.GDP(0.3), note="a network, trained elsewhere", key="network")
    assert debit.fresh
    assert session.ledger.spent().exact().mu_squared == rational(0.3, "mu") ** 2
    assert kinds(session) == ["open", "debit", "answer"]
    request = session.ledger.entries()[debit.number].request
    assert request is not None
    assert request["asked"] == {"estimator": "booked: a network, trained elsewhere"}
    said = guarantee_of(mechanism_from_dict(request["mechanism"]))
    assert isinstance(said, dp.GDP)
    assert said.mu == pytest.approx(0.3)
    assert session.ledger.verify()
    assert "booked: a network, trained elsewhere" in str(session.remaining())


def test_a_key_is_debited_once_and_bound_to_its_booking() -> None:
    session = open_session(budget=dp.GDP(1))
    first = session.book(dp.GDP(0.3), note="a model", key="m")
    again = session.book(dp.GDP(0.3), note="a model", key="m")
    assert (again.number, again.hash, again.fresh) == (first.number, first.hash, False)
    assert kinds(session) == ["open", "debit", "answer"]
    for other in (
        lambda: session.book(dp.GDP(0.2), note="a model", key="m"),
        lambda: session.book(dp.GDP(0.3), note="another model", key="m"),
        lambda: dp.mean(session, "income", spend=dp.GDP(0.3), key="m"),
    ):
        with pytest.raises(dp.LedgerRefused):
            other()
    session.book(dp.GDP(0.3), note="a model")
    assert kinds(session).count("debit") == 2


def test_an_approximate_guarantee_is_never_charged_as_gaussian_noise() -> None:
    """Nothing says that what is (ε, δ)-DP is Gaussian: it may tell all with probability δ."""
    spend = dp.ApproxDP(0.5, 1e-7)
    session = data_set().open(budget=dp.ApproxDP(4, 1e-5))
    session.book(spend, note="elsewhere")
    spent = session.ledger.spent().exact()
    assert spent.delta == rational(1e-7, "delta")
    assert spent.mu_squared >= rational(mu_for_pure(rational(0.5, "epsilon")), "mu") ** 2 * (
        1 - rational(1e-9, "x")
    )
    pure = data_set().open(budget=dp.ApproxDP(4, 1e-5), pure=1)
    pure.book(spend, note="elsewhere")
    spent = pure.ledger.spent().exact()
    assert (spent.epsilon, spent.mu_squared) == (rational(0.5, "epsilon"), 0)
    with pytest.raises(dp.BudgetExceeded):  # a box without δ₀ cannot hold it
        open_session(budget=dp.GDP(5)).book(spend, note="elsewhere")


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (dp.ZCDP(1), dp.ZCDP(0.1)),
        (dp.ZCDP(1), dp.GDP(0.3)),
        (dp.PureDP(1), dp.PureDP(0.5)),
        (dp.ApproxDP(2, 1e-6), dp.PureDP(0.2)),
    ],
)
def test_every_box_prices_a_stated_guarantee(budget: object, spend: object) -> None:
    session = data_set().open(budget=budget)
    session.book(spend, note="elsewhere")
    assert session.ledger.verify()
    assert session.ledger.spent()


def test_what_does_not_fit_or_has_no_theorem_is_refused_and_costs_nothing() -> None:
    session = open_session(budget=dp.GDP(0.5))
    with pytest.raises(dp.BudgetExceeded, match="largest spend that fits"):
        session.book(dp.GDP(0.6), note="too much")
    with pytest.raises(dp.NoTheorem):
        session.book(dp.ZCDP(0.01), note="known by its zCDP alone")
    with pytest.raises(dp.InvalidParameter, match="not a guarantee"):
        session.book(0.3, note="a number")  # type: ignore[arg-type]
    for note in ("", "x" * (LONGEST_NOTE + 1), 3):
        with pytest.raises(dp.InvalidParameter, match="note="):
            session.book(dp.GDP(0.1), note=note)  # type: ignore[arg-type]
    with pytest.raises(dp.InvalidParameter):
        session.book(dp.GDP(0.1), note="a model", key="")
    assert kinds(session) == ["open"]


def test_a_booking_can_be_replayed_and_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "survey.ledger"
    session = dp.from_arrays(survey(), schema=SCHEMA, neighbors=dp.Replace(), name="survey").open(
        budget=dp.GDP(2), ledger=path
    )
    session.book(dp.GDP(0.3), note="a model", key="m")
    dp.mean(session, "income", spend=dp.GDP(0.4), key="c")
    assert session.ledger.replay("gdp", delta=1e-6).epsilon == pytest.approx(
        dp.GDP(0.5).epsilon_at(1e-6), rel=1e-6
    )
    again = dp.from_arrays(survey(), schema=SCHEMA, neighbors=dp.Replace(), name="survey").open(
        ledger=path
    )
    assert not again.book(dp.GDP(0.3), note="a model", key="m").fresh
    assert again.ledger.verify()
    answers = [entry.answer for entry in again.ledger.entries() if entry.kind == "answer"]
    assert json.loads(answers[0]) == {"booked": "a model"}


def test_seeded_and_secure_accounts_are_not_mixed() -> None:
    session = seeded_session(data_set(), dp.GDP(1), 1)
    session.book(dp.GDP(0.3), note="a model")
    request = session.ledger.entries()[1].request
    assert request is not None
    assert request["secure"] is False
