"""Claim: a fit's releases are all in the ledger, stay within its spend,
and depend on data through releases alone.
"""

from __future__ import annotations

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest
from regression_data import SCHEMA, model_of, sample, session_of

import discreet as dp
from discreet.accounting.guarantees import spend_mu_squared
from discreet.models.fit import fit_regression
from discreet.models.scales import huber_second_moment
from discreet.models.tuning import GROWTH, noise_index, tuning, tuning_for
from discreet.specs.queries.keys import Subset
from discreet.specs.registry import mechanism_from_dict
from discreet.trusted.extensions.estimating import reading
from discreet.trusted.losses.losses import loss_of

FAMILIES = ("robust", "ols", "logistic", "poisson")
RELATIONS = (
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
)
SPENDS = (dp.GDP(0.7), dp.ZCDP(0.2), dp.ApproxDP(1.0, 1e-6))


def test_shares_sum_to_one_exactly_at_every_noise_index():
    for columns in (1, 4, 25, 200):
        for index in np.geomspace(1e-6, 1e4, 60):
            for residual, counts in ((True, False), (False, False), (False, True)):
                for private in (False, True):
                    rules = tuning_for(
                        columns,
                        float(index),
                        residual=residual,
                        counts=counts,
                        private_rows=private,
                    )
                    assert sum(share for _, share in rules.shares) == 1
                    assert all(
                        isinstance(share, Fraction) and share > 0 for _, share in rules.shares
                    )
                    assert len({name for name, _ in rules.shares}) == len(rules.shares) <= 17
                    gradients = [str(step) for step in rules.steps("gradient")]
                    assert gradients == ["gradient 1", "gradient 2", "gradient 3"]
    assert sum(GROWTH) == 1
    assert tuning(0.01) == 1.345
    assert tuning(0.2) == 1.0
    assert noise_index(4, 1000, 1.0, dp.AddRemove(unit="id", max_rows=3)) == pytest.approx(
        3 / 2**0.5 * noise_index(4, 1000, 1.0, dp.Replace())
    )
    assert huber_second_moment(1.345) == pytest.approx(0.7101645, abs=1e-7)
    assert huber_second_moment(1.0) == pytest.approx(0.5160586, abs=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_every_release_is_in_the_ledger_within_the_spend(family, neighbors):
    """The mechanisms that the ledger has debited are the releases' own, and their composition is
    within the spend, for every kind of spend.
    """
    for spend in SPENDS if neighbors == dp.Replace() else SPENDS[:1]:
        session = session_of(
            sample(300, 1),
            1,
            neighbors=neighbors,
            budget=dp.ApproxDP(2.0, 1e-5) if isinstance(spend, dp.ApproxDP) else spend,
        )
        fit = fit_regression(session, model_of(family), family, spend=spend)
        debits = [entry.request for entry in session.ledger.entries() if entry.kind == "debit"]
        assert [json.dumps(debit["mechanism"], sort_keys=True) for debit in debits] == [
            json.dumps(release.mechanism.to_dict(), sort_keys=True) for release in fit.releases
        ]
        assert [debit["query"] for debit in debits] == [
            json.loads(json.dumps(release.query.to_dict())) for release in fit.releases
        ]
        total = sum(loss_of(mechanism_from_dict(debit["mechanism"])).mu_squared for debit in debits)
        assert total <= spend_mu_squared(spend)
        assert total >= spend_mu_squared(spend) * Fraction(999, 1000)  # and little is left unused
        assert session.ledger.open_reservations() == []
        assert session.ledger.verify().ok


def test_asking_again_with_the_key_returns_the_stored_answers():
    session = session_of(sample(300, 2), 2)
    first = fit_regression(session, model_of(), "robust", spend=dp.GDP(0.5), key="wages")
    spent = session.ledger.spent()
    assert fit_regression(session, model_of(), "robust", spend=dp.GDP(0.5), key="wages") == first
    assert session.ledger.spent() == spent
    with pytest.raises(dp.LedgerRefused):
        fit_regression(session, model_of(), "ols", spend=dp.GDP(0.5), key="wages")
    fit_regression(session, model_of(), "robust", spend=dp.GDP(0.5), key="wages again")
    assert session.ledger.spent() != spent


def test_an_interrupted_fit_goes_on_where_it_stopped(monkeypatch):
    """After an engine failure in the middle, the same key finishes the fit without paying twice,
    and gives what an uninterrupted fit gives.
    """
    data = sample(300, 3)
    whole = fit_regression(session_of(data, 3), model_of(), "robust", spend=dp.GDP(1.0), key="k")
    session = session_of(data, 3)
    original, calls = reading.model_sums, []

    def failing(engine, plan):
        calls.append(plan)
        if len(calls) == 6:
            raise OSError("the disk is gone")
        return original(engine, plan)

    monkeypatch.setattr(reading, "model_sums", failing)
    with pytest.raises(dp.ReleaseFailed):
        fit_regression(session, model_of(), "robust", spend=dp.GDP(1.0), key="k")
    again = fit_regression(session, model_of(), "robust", spend=dp.GDP(1.0), key="k")
    np.testing.assert_array_equal(again.params, whole.params)
    assert session.ledger.spent().exact().mu_squared <= 1


def test_refusals_come_before_any_debit():
    session = session_of(sample(50, 4), 4)
    before = session.ledger.head
    for wrong, error in (
        (lambda: fit_regression(session, model_of(), "robust", spend=dp.PureDP(1.0)), dp.NoTheorem),
        (lambda: fit_regression(session, model_of(), "robust", spend=1.0), dp.InvalidParameter),
        (
            lambda: fit_regression(session, model_of(), "probit", spend=dp.GDP(0.1)),
            dp.InvalidParameter,
        ),
        (
            lambda: fit_regression(session, model_of(), "robust", spend=dp.GDP(1e-4)),
            dp.InvalidParameter,
        ),
        (
            lambda: fit_regression(session, model_of("logistic"), "robust", spend=dp.GDP(0.1)),
            dp.InvalidParameter,
        ),
        (
            lambda: fit_regression(session, model_of(), "robust", spend=dp.GDP(0.1), key="k" * 300),
            dp.InvalidParameter,
        ),
        (
            lambda: fit_regression(session, model_of(), "robust", spend=dp.GDP(2.0)),
            dp.BudgetExceeded,
        ),
    ):
        with pytest.raises(error):
            wrong()
    assert session.ledger.head == before


def test_results_hold_no_private_value():
    """Values that occur nowhere else are not in the result's pickle, its JSON or its texts."""
    data = sample(200, 5)
    data["x"][:50], data["y"][:50] = 3.1234567890123, 17.9876543210987
    fit = fit_regression(session_of(data, 5), model_of(), "robust", spend=dp.GDP(1.0))
    fit.confidence_interval()
    texts = fit.to_json() + str(fit.summary()) + repr(fit)
    assert "3.1234567" not in texts
    assert "17.98765" not in texts
    raw = pickle.dumps(fit)
    assert np.float64(3.1234567890123).tobytes() not in raw
    assert np.float64(17.9876543210987).tobytes() not in raw


def test_a_filter_makes_the_number_of_rows_private():
    data = sample(2000, 6)
    fit = fit_regression(
        session_of(data, 6),
        model_of(terms=("1", "x", "z"), keys=(Subset("d", (1,)),)),
        "robust",
        spend=dp.GDP(1.0),
        where="d is b",
    )
    assert str(fit.releases[0].description.step) == "count 1"
    assert fit.rows == pytest.approx((data["d"] == "b").sum(), abs=100)
    assert "d is b" in str(fit.summary())
    assert SCHEMA["d"].levels[1] == "b"
