"""What is left is said in ε at δ, in μ and in questions, and can be spent to the last unit."""

from __future__ import annotations

import pytest
from tests.printed import unwrapped

import discreet as dp
from discreet.testing import seeded_session

DATA = {"age": list(range(18, 90)) * 5, "member": [True, False, False] * 120}
SCHEMA = {"age": dp.Integer(18, 90), "member": dp.Boolean()}
BUDGETS = [dp.ApproxDP(1, 1e-6), dp.GDP(0.5), dp.ZCDP(0.1), dp.PureDP(1)]


def opened(
    budget: dp.ApproxDP | dp.GDP | dp.ZCDP | dp.PureDP, *, missing: bool | None = None
) -> dp.Session:
    schema = SCHEMA | {"member": dp.Boolean(missing=missing)}
    data = dp.from_arrays(DATA, schema=schema, neighbors=dp.Replace())
    return seeded_session(data, budget, "remaining")


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_new_session_has_its_whole_budget_left(budget) -> None:
    left = opened(budget).remaining()
    assert left.like_last is None
    assert left.spend == budget.split(1)[0]
    if isinstance(budget, dp.ApproxDP):
        assert (left.epsilon, left.delta) == (pytest.approx(1, rel=1e-9), 1e-6)
    elif isinstance(budget, dp.PureDP):
        assert (left.epsilon, left.mu) == (1, 0)
    else:
        assert left.epsilon == pytest.approx(budget.epsilon_at(1e-6))


@pytest.mark.few(2)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_about_so_many_more_is_so_many_more(budget) -> None:
    session = opened(budget)
    spends = budget.split(12)
    for spend in spends[:5]:
        dp.mean(session, "age", spend=spend)
    left = session.remaining()
    assert left.like_last == 7 == session.ledger.how_many(spends[0])
    assert "about 7 more like the last (mean of age)" in str(left)
    assert left.spend is not None
    dp.mean(session, "age", spend=left.spend)
    assert session.remaining().spend is None
    assert str(session.remaining()).startswith("nothing is left")
    with pytest.raises(dp.BudgetExceeded):
        dp.mean(session, "age", spend=spends[0])


def test_what_rounding_leaves_is_said_to_be_nothing() -> None:
    session = opened(dp.ApproxDP(1, 1e-6))
    for spend in dp.ApproxDP(1, 1e-6).split(3):
        dp.mean(session, "age", spend=spend)
    assert str(session.remaining()).startswith(("nothing but rounding is left of", "nothing is"))


def test_a_spend_as_large_as_the_budget_is_answered_with_the_whole_of_it() -> None:
    budget = dp.ApproxDP(1, 1e-6)
    session = opened(budget)
    with pytest.raises(dp.BudgetExceeded, match=r"budget\.split\(1\)\[0\] is all of it"):
        dp.mean(session, "age", spend=budget)
    dp.mean(session, "age", spend=budget.split(1)[0])
    with pytest.raises(dp.BudgetExceeded) as refused:
        dp.mean(session, "age", spend=budget)
    assert "split" not in str(refused.value)


def test_a_procedure_counts_as_a_whole() -> None:
    """An ordinary fit has many releases; what it sets aside is what the next one needs."""
    session = opened(dp.GDP(1))
    dp.ols(session, "age ~ member", spend=dp.GDP(0.5))
    left = session.remaining()
    assert left.like_last == 3
    assert "ols of age" in str(left)


def test_what_is_left_is_read_at_any_delta() -> None:
    left = opened(dp.GDP(0.5)).remaining(delta=1e-9)
    assert left.epsilon == pytest.approx(dp.GDP(0.5).epsilon_at(1e-9))
    with pytest.raises(dp.InvalidParameter):
        opened(dp.GDP(0.5)).remaining(delta=0)


def test_a_spend_is_said_as_it_was_asked() -> None:
    session, asked = opened(dp.GDP(3)), dp.ApproxDP(0.5, 1e-6)
    assert "ε = 0.5, δ = 1e-06, by μ = 0.1241" in unwrapped(dp.mean(session, "age", spend=asked))
    mode = dp.mode(session, "member", spend=asked)  # a choice, and how many rows hold a level
    assert "Privacy of these 2 releases together: μ = 0.1241 (Gaussian DP)" in unwrapped(mode)
    filled = dp.mode(opened(dp.GDP(3), missing=False), "member", spend=asked)
    assert "Privacy of this release: ε = 0.5, δ = 1e-06, by ε = 0.1981" in unwrapped(filled)
    assert "Privacy: ε = 0.5, δ = 1e-06, by μ = 0.1241, neigh" in repr(
        dp.mean(session, "age", spend=asked)
    )
    fit = dp.ols(session, "age ~ member", spend=asked)
    assert "Spent ε = 0.5, δ = 1e-06 (μ = 0.1241)" in unwrapped(fit.summary())
    assert "of this release: μ = 0.1 " in unwrapped(dp.mean(session, "age", spend=dp.GDP(0.1)))
