"""The method of enumeration: laws that are known exactly, and faults that it must refute."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.audits import exact, procedures
from discreet.audits.outputs.enumerated import parts_of, report_parts
from discreet.audits.outputs.laws import Laws, least_of
from discreet.audits.outputs.likelihoods import (
    exponential_law,
    flipped_law,
    geometric,
    geometric_upto,
    log_likelihood,
    noisy_max_law,
    threshold_law,
    top_law,
)
from discreet.audits.registry import DEVICES, ENTRIES
from discreet.sensitivity import L1, L2, LInf
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise, LaplaceNoise
from discreet.specs.mechanisms.selection import AboveThreshold, TopChoices
from discreet.testing.seeded import SeededSource
from discreet.trusted.noise.samplers import apply

ONE = LInf(Fraction(1), one_way=True)


def test_bounds_of_known_laws_are_never_above_the_claim() -> None:
    """500 laws of each kind, their ε or μ known in closed form."""
    draws = np.random.default_rng(1)
    for _ in range(500):
        epsilon, levels = float(draws.uniform(0.05, 6)), int(draws.integers(2, 12))
        kept, other = np.exp([epsilon, 0.0]) / (levels - 1 + math.exp(epsilon))
        sides = np.full((2, levels), other)
        sides[0, 0] = sides[1, 1] = kept
        found = least_of(dp.PureDP(1), Laws(*sides))
        assert found == pytest.approx(epsilon, rel=1e-12)
        # two of them, δ = 0: the least ε of (ε, 0)-DP is twice as large
        both = Laws(*sides).times(Laws(*sides))
        assert least_of(dp.PureDP(1), both) == pytest.approx(2 * epsilon, rel=1e-12)
    for _ in range(100):
        mu, gap = float(draws.uniform(0.1, 6)), int(draws.integers(1, 50))
        spread = Fraction(float(gap / mu))
        noise = GaussianNoise(L2(Fraction(gap**2)), spread, 16)
        parts = parts_of(noise, [0], [gap])
        assert parts is not None
        found = least_of(dp.GDP(1), parts[0].laws)
        assert mu * 0.9999 < found <= mu * (1 + 1e-9)
        rho = least_of(dp.PureDP(1), parts[0].laws)
        assert rho > mu  # no ε for all outputs: the tails tell more and more


def test_approximate_and_concentrated_claims_are_read_off_the_same_laws() -> None:
    noise = GaussianNoise(L2(Fraction(1)), Fraction(1, 2), 14)
    parts = parts_of(noise, [0], [1])
    assert parts is not None
    laws = parts[0].laws
    for delta in (1e-2, 1e-4):
        truth = dp.GDP(2).epsilon_at(delta)
        assert least_of(dp.ApproxDP(1, delta), laws) == pytest.approx(truth, rel=2e-3)
        assert least_of(dp.ApproxDP(1, delta), laws) <= truth * (1 + 1e-9)
    assert 1.9 < least_of(dp.ZCDP(1), laws) <= 2.0 * (1 + 1e-9)  # ρ = μ²/2
    with pytest.raises(dp.NoTheorem):
        least_of(dp.TradeOff, laws)  # type: ignore[arg-type]


def test_what_one_side_alone_can_give_has_no_bound() -> None:
    laws = Laws(np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5]))
    assert least_of(dp.PureDP(1), laws) > 1e4
    assert least_of(dp.GDP(1), laws) > 30
    assert least_of(dp.ApproxDP(1, 0.6), laws) == 0.0
    same = Laws(np.array([0.3, 0.7]), np.array([0.3, 0.7]))
    assert all(least_of(claim, same) == 0.0 for claim in (dp.PureDP(1), dp.GDP(1), dp.ZCDP(1)))


def test_putting_cells_together_only_lowers_what_is_found() -> None:
    draws = np.random.default_rng(2)
    for _ in range(20):
        sides = draws.dirichlet(np.full(3000, 0.3), size=2) + 1e-9
        laws = Laws(*(sides / sides.sum(axis=1, keepdims=True)))
        few = laws.pooled(100)
        assert len(few.first) <= 110
        assert few.first.sum() == pytest.approx(1)
        for claim in (dp.GDP(1), dp.ApproxDP(1, 0.01)):
            assert least_of(claim, few) <= least_of(claim, laws) * (1 + 1e-9)


def test_laws_of_choices_are_those_of_their_definitions() -> None:
    scores, rate = [3, 5, 4, 5], Fraction(1, 2)
    weights = np.exp(np.array(scores) / 2)
    assert exponential_law(scores, rate) == pytest.approx(weights / weights.sum())
    orders = np.zeros(4)  # permute and flip as its name says
    for order in itertools.permutations(range(4)):
        left = 1.0
        for candidate in order:
            coin = math.exp(-float(rate) * (5 - scores[candidate]))
            orders[candidate] += left * coin / 24
            left *= 1 - coin
    assert flipped_law(scores, rate) == pytest.approx(orders)
    spread, grid = 1.5, np.arange(-80, 81)
    one = geometric(grid, spread)
    assert one.sum() == pytest.approx(1)
    assert np.cumsum(one) == pytest.approx(geometric_upto(grid, spread))
    joint = np.zeros(2)
    for first, second in itertools.product(grid[40:-40], repeat=2):
        joint[0 if 3 + first >= 4 + second else 1] += one[first + 80] * one[second + 80]
    assert noisy_max_law([3, 4], spread) == pytest.approx(joint, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("renewed", [True, False])
def test_laws_of_sequences_sum_to_one_and_follow_their_draws(renewed: bool) -> None:
    threshold = AboveThreshold(ONE, 3, 2, Fraction(2), Fraction(3), renewed)
    top = TopChoices(ONE, Fraction(1), 2, "permute and flip")
    for mechanism in (threshold, top):
        first, second = [1, 4, 2], [2, 5, 3]
        parts = parts_of(mechanism, first, second)
        assert parts is not None
        (part,) = parts
        assert part.laws.first.sum() == pytest.approx(1)
        source = SeededSource(f"sequences/{renewed}")
        drawn = [part.cell(apply(mechanism, first, source).integers) for _ in range(2000)]
        seen = np.bincount(drawn, minlength=len(part.laws.first))
        assert exact._rarest(seen, part.laws.first) * len(seen) > 1e-9
        wrong = np.roll(part.laws.first, 1)
        assert exact._rarest(seen, wrong) * len(seen) < 1e-9
    assert top_law(top, [1, 2, 3], (2, 1)) > top_law(top, [1, 2, 3], (0, 1))
    assert top_law(top, [1, 2, 3], (1, 1)) == 0.0
    assert threshold_law(threshold, [9, 9], (1, 1)) > 0.5


def test_noise_that_is_not_as_stated_is_refuted_by_its_draws() -> None:
    """The law says scale 1, what runs has scale 3/4."""
    stated = GeometricNoise(L1(Fraction(1)), Fraction(1), 0)
    thin = replace(stated, spread=Fraction(3, 4))
    parts = parts_of(stated, [0], [1])
    assert parts is not None
    source = SeededSource("thin")
    for noise, caught in ((stated, False), (thin, True)):
        drawn = [parts[0].cell(apply(noise, [0], source).integers) for _ in range(4000)]
        law = parts[0].laws.first
        seen = np.bincount(drawn, minlength=len(law))
        assert (exact._rarest(seen, law) * len(law) <= 1e-9) is caught


def test_likelihoods_are_logarithms_of_the_laws() -> None:
    noise = LaplaceNoise(L1(Fraction(1)), Fraction(2), 12)
    told: Any = log_likelihood  # None where a law is not written out
    ratios = [told(noise, [0], (at,)) - told(noise, [1], (at,)) for at in (-9000, 9000)]
    assert ratios == pytest.approx([0.5, -0.5])
    top = TopChoices(ONE, Fraction(1), 2, "exponential")
    assert math.exp(told(top, [1, 2, 3], (2, 1))) == pytest.approx(top_law(top, [1, 2, 3], (2, 1)))
    assert log_likelihood(object(), [0], (1,)) is None


QUICK = ("count", "mode", "above_threshold", "median exponential")


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_procedures_with_few_outputs_keep_their_claim(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENTRIES, name, replace(ENTRIES[name], search=0))
    monkeypatch.setattr(procedures, "DRAWN", 0)
    for neighbors in (dp.Replace(), dp.AddRemove()):
        found = dp.audit(name, method="exact", spend=dp.PureDP(2), neighbors=neighbors, runs=200)
        assert not found.violated, str(found)
        assert 0 < found.share <= 1 + 1e-9
        if name == "count":
            assert found.share > 1 - 1e-9


def test_a_claim_below_the_laws_is_refuted_without_chance() -> None:
    def ask(session: dp.Session) -> Any:
        return dp.count(session, where={"flag": True}, spend=dp.PureDP(2), key="a")

    from discreet.audits.cases import worst_pair
    from discreet.audits.replay import Search

    for claim, caught in ((dp.PureDP(2), False), (dp.PureDP(1.9), True)):
        found = exact.audited(
            [worst_pair()],
            ask,
            dp.Replace(),
            claim,
            name="count",
            how=Search(lambda: dp.Ledger.open(dp.PureDP(4)), 1, 0),
            draws=200,
        )
        assert found.violated is caught
        assert ("claimed" in str(found.broken)) is caught


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_reports_of_devices_reach_their_claim_and_no_more(name: str) -> None:
    spec = DEVICES[name]()
    found = dp.audit(spec, method="exact", runs=3000)
    assert not found.violated, str(found)
    assert 0.999 < found.share <= 1 + 1e-9
    for part in report_parts(spec, (0, 1)):
        assert part.laws.first.sum() == pytest.approx(1)


def test_outputs_that_are_many_are_refused() -> None:
    with pytest.raises(dp.DiscreetError, match="says nothing about robust"):
        dp.audit(dp.robust, method="exact")
    assert parts_of(object(), [0], [1]) is None
    long = AboveThreshold(ONE, 3, 2, Fraction(2), Fraction(3), renewed=False)
    assert parts_of(long, [0] * 13, [1] * 13) is None


def test_the_tail_of_draws_is_exact() -> None:
    law, seen = np.array([0.2, 0.8]), np.array([30, 70])
    exactly = 2 * min(stats.binom.sf(29, 100, 0.2), stats.binom.cdf(30, 100, 0.2))
    assert exact._rarest(seen, law) == pytest.approx(exactly)
