"""Procedures whose steps choose (quantiles by cells, descriptions, trimmed means, bases, modes) in
ledgers that opened a part in ε: all steps are paid out of what was set aside.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.testing import seeded_session
from discreet.trusted.ledger.core import Ledger

PROCEDURES = {
    "median by": lambda session, spend: dp.median(session, "x", by="g", spend=spend),
    "describe": lambda session, spend: dp.describe(session, ["x"], spend=spend),
    "trimmed mean": lambda session, spend: dp.trimmed_mean(session, "x", spend=spend),
    "location": lambda session, spend: dp.location(session, "x", spend=spend),
    "mode": lambda session, spend: dp.mode(session, "g", spend=spend),
    "base": lambda session, spend: dp.ols(session, "x ~ g", base="most frequent", spend=spend),
}


def session_of():
    rng = np.random.default_rng(2)
    columns = {"x": rng.uniform(20, 60, 400), "g": np.where(rng.random(400) < 0.7, "p", "q")}
    schema = {"x": dp.Real(0, 100), "g": dp.Category(["p", "q"])}
    data = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace())
    return seeded_session(data, Ledger.open(dp.ApproxDP(10, 1e-6), pure=2), "split")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", PROCEDURES)
def test_steps_are_paid_out_of_what_their_spend_set_aside(name):
    session = session_of()
    PROCEDURES[name](session, dp.GDP(0.5))
    spent = session.ledger.spent().exact()
    assert spent.epsilon == 0
    assert Fraction(1, 10) < spent.mu_squared <= Fraction(1, 4)
    assert session.ledger.reserved().exact().mu_squared == 0


def test_a_pure_spend_is_paid_in_epsilon():
    session = session_of()
    dp.mode(session, "g", spend=dp.PureDP(0.5))
    spent = session.ledger.spent().exact()
    assert spent.mu_squared == 0
    assert Fraction(49, 100) < spent.epsilon <= Fraction(1, 2)


def test_a_choice_by_itself_is_paid_in_epsilon_still():
    session = session_of()
    dp.select(session, {"p": {"g": "p"}, "q": {"g": "q"}}, spend=dp.GDP(0.5))
    spent = session.ledger.spent().exact()
    assert spent.mu_squared == 0
    assert spent.epsilon > 0
