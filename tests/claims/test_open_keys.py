"""Claim: counts of undeclared keys are as private as their noise, but for δ; and δ is the
       probability that a key is shown which one unit alone holds.

Output laws are computed from the mechanism's own tail (trusted/extensions/open_keys/loss.py), for
all neighbours with small counts; the sampler is compared with the same law. Mechanisms that are
wrong in the usual ways (a threshold too low, no threshold, too little noise) are caught by the same
checker.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.accounting.calibration.thresholds import thresholded_counts
from discreet.accounting.gaussian import gdp_delta
from discreet.enclosure import enclose
from discreet.errors import InvalidParameter
from discreet.schema import Open, Schema
from discreet.sensitivity import L1, Rows
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts, key_count_sensitivity
from discreet.specs.queries.open_keys import OpenCounts
from discreet.specs.statistics import KeyCounts
from discreet.testing import SeededSource
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.open_keys.loss import (
    failure_bounds,
    failure_delta,
    show_bounds,
    tail,
)
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.noise.samplers import apply

ALPHA = 1e-9
ROWS = [
    Rows(1, "added or removed"),
    Rows(1, "changed"),
    Rows(2, "added or removed"),
    Rows(2, "changed"),
]
SCHEMA = Schema({"word": Open()})


@cache
def tails(noise, start, stop):
    """P(N ≥ t) for t = start … stop − 1, within 10⁻¹⁵."""
    return np.array(
        [
            float(sum(enclose(lambda ball, t=t: tail(ball, noise, t))) / 2)
            for t in range(start, stop)
        ]
    )


def key_law(mechanism, count, last):
    """P(not shown), P(shown with y) for y = T … last − 1, P(shown with at least last);
    a count of 0 is an absent key.
    """
    law = np.zeros(last - mechanism.threshold + 2)
    if count == 0:
        law[0] = 1.0
        return law
    cut = 1 << mechanism.noise.refinement
    beyond = tails(mechanism.noise, mechanism.threshold - count * cut, last - count * cut + 1)
    law[0], law[1:-1], law[-1] = 1 - beyond[0], beyond[:-1] - beyond[1:], beyond[-1]
    return law


def hockey_stick(first, second, ratio):
    return float(np.maximum(first - ratio * second, 0.0).sum())


def joint(laws):
    product = laws[0]
    for law in laws[1:]:
        product = np.multiply.outer(product, law).ravel()
    return product


def spread_over_keys(total):
    """All ways to write `total` as a sum of whole numbers ≥ 1, up to order."""
    if total == 0:
        yield ()
    for first in range(total, 0, -1):
        yield from (
            (first, *rest)
            for rest in spread_over_keys(total - first)
            if not rest or rest[0] <= first
        )


def neighbouring_counts(rows, counts):
    """All (before, after) of the keys whose counts differ between neighbours, up to the order of
    the keys; each starts from one of `counts`.
    """
    k = rows.rows
    taken = (
        [()]
        if rows.change == "added or removed"
        else [parts for gone in range(k + 1) for parts in spread_over_keys(gone)]
    )
    for gone, come in itertools.product(
        taken, [parts for total in range(k + 1) for parts in spread_over_keys(total)]
    ):
        changes = [-part for part in gone] + list(come)
        for starts in itertools.product(counts, repeat=len(changes)):
            if changes and all(
                start + change >= 0 for start, change in zip(starts, changes, strict=True)
            ):
                yield tuple(
                    sorted(
                        (start, start + change)
                        for start, change in zip(starts, changes, strict=True)
                    )
                )


def worst_excess(mechanism, epsilon, promised, *, law=key_law):
    """The largest hockey-stick divergence at ε, in both orders, over all neighbours,
    less what is promised.

    Keys whose counts agree change nothing. Counts run from 0 to above the threshold; where four
    keys can differ, over the interesting ones.
    """
    threshold, rows = mechanism.threshold, mechanism.sensitivity
    counts = (
        range(threshold + 2)
        if rows.rows == 1 or rows.change == "added or removed"
        else (0, 1, 2, threshold - 1, threshold)
    )
    last, worst = threshold + rows.rows + 4, -1.0
    laws = {count: law(mechanism, count, last) for count in range(threshold + rows.rows + 2)}
    for changes in set(neighbouring_counts(rows, counts)):
        one, other = (
            joint([laws[before] for before, _ in changes]),
            joint([laws[after] for _, after in changes]),
        )
        worst = max(
            worst,
            hockey_stick(one, other, math.exp(epsilon)),
            hockey_stick(other, one, math.exp(epsilon)),
        )
    return worst - promised


def pure_mechanism(rows, epsilon, delta):
    return thresholded_counts(rows, dp.PureDP(epsilon), Fraction(delta).limit_denominator(10**9))


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.02), (3.0, 1e-3)])
def test_hockey_sticks_of_all_neighbours(rows, epsilon, delta):
    """Geometric noise on the integers: beyond the last single outcome the ratio of two laws is
    constant, so that lumping it loses nothing.
    """
    mechanism = pure_mechanism(rows, epsilon, delta)
    assert failure_delta(mechanism) <= Fraction(repr(delta))
    exact = float(failure_delta(mechanism))
    # at other ε the pure part alone is worth more or less, and δ stays
    for share in (1.0, 0.5, 1.5):
        pure = max(0.0, (math.exp(epsilon) - math.exp(share * epsilon)) / (math.exp(epsilon) + 1))
        assert worst_excess(mechanism, share * epsilon, pure + exact) <= 1e-12


@pytest.mark.parametrize("rows", ROWS[:2], ids=str)
def test_delta_is_attained(rows):
    """A key that one unit alone holds is as likely as δ says, so no smaller δ is right."""
    mechanism = pure_mechanism(rows, 1.0, 0.02)
    assert worst_excess(mechanism, 1.0, float(failure_delta(mechanism))) >= -1e-9


def law_without_threshold(mechanism, count, last):
    """Every key that is present is shown, whatever its noise: names leak."""
    law = key_law(mechanism, count, last)
    law[1] += law[0] if count else 0.0
    law[0] = 0.0 if count else 1.0
    return law


def law_one_row_too_low(mechanism, count, last):
    """The threshold is off by one row."""
    return key_law(mechanism, count + 1 if count else 0, last)


def law_with_less_noise(mechanism, count, last):
    noise = GeometricNoise(mechanism.noise.sensitivity, mechanism.noise.spread * Fraction(1, 2), 0)
    return key_law(dataclasses.replace(mechanism, noise=noise), count, last)


@pytest.mark.parametrize("law", [law_without_threshold, law_one_row_too_low, law_with_less_noise])
@pytest.mark.parametrize("rows", ROWS[:3], ids=str)
def test_wrong_mechanisms_are_caught(law, rows):
    mechanism = pure_mechanism(rows, 1.0, 0.02)
    assert worst_excess(mechanism, 1.0, float(failure_delta(mechanism)), law=law) > 1e-3


@pytest.mark.parametrize("rows", ROWS, ids=str)
@pytest.mark.parametrize("spend", [dp.PureDP(1.0), dp.PureDP(0.3)], ids=str)
def test_a_threshold_one_too_low_is_caught(rows, spend):
    """The threshold is the least one: one lower and δ is exceeded, by the bound and by the law."""
    promised = Fraction(1, 50)
    mechanism = thresholded_counts(rows, spend, promised)
    low = dataclasses.replace(mechanism, threshold=mechanism.threshold - 1)
    assert failure_delta(mechanism) <= promised < failure_delta(low)
    assert worst_excess(mechanism, float(spend.epsilon), float(promised)) <= 0.0
    assert worst_excess(low, float(spend.epsilon), float(promised)) > 0.0


def gaussian_excess(mechanism, mu, epsilon, before, after, promised, lump=1):
    """The hockey-stick divergence of a few keys under Gaussian noise, less δ_μ(ε) + δ; `lump` joins
    outcomes, which can only lower it.
    """
    cut = 1 << mechanism.noise.refinement
    last = (
        mechanism.threshold + (max(*before, *after) * cut) + round(9 * float(mechanism.noise.steps))
    )
    last += (mechanism.threshold - last) % lump
    laws = []
    for count in (*before, *after):
        law = np.zeros(last - mechanism.threshold + 2)
        law[0] = 1.0
        if count:
            beyond = stats.norm.sf(
                (np.arange(mechanism.threshold, last + 1) - count * cut - 0.5)
                / float(mechanism.noise.steps)
            )
            law = np.concatenate([[1 - beyond[0]], beyond[:-1] - beyond[1:], beyond[-1:]])
        laws.append(np.concatenate([law[:1], law[1:-1].reshape(-1, lump).sum(axis=1), law[-1:]]))
    one, other = joint(laws[: len(before)]), joint(laws[len(before) :])
    allowed = gdp_delta(Fraction(mu), Fraction(epsilon)) + promised
    return (
        max(
            hockey_stick(one, other, math.exp(epsilon)), hockey_stick(other, one, math.exp(epsilon))
        )
        - allowed
    )


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_gaussian_hockey_sticks(rows):
    """One changed key exactly, two with outcomes joined by 64 (a lower bound); counts are as far
    apart as one unit can move them.
    """
    mu, k = 1.0, rows.rows
    mechanism = thresholded_counts(rows, dp.GDP(mu), Fraction(1, 1000))
    near, exact = math.ceil(mechanism.least_shown), float(failure_delta(mechanism))
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        for count in (0, 1, near - k, near, near + 4 * k):
            assert gaussian_excess(mechanism, mu, epsilon, (count,), (count + k,), exact) <= 1e-10
            if rows.change == "changed":
                assert (
                    gaussian_excess(
                        mechanism, mu, epsilon, (count, near + k), (count + k, near), exact, lump=64
                    )
                    <= 1e-10
                )
                assert (
                    gaussian_excess(mechanism, mu, epsilon, (0, k), (k, 0), exact, lump=64) <= 1e-10
                )
    lower = dataclasses.replace(
        mechanism, threshold=mechanism.threshold - (1 << mechanism.noise.refinement)
    )
    assert gaussian_excess(lower, mu, 3.0, (0,), (k,), exact) > 1e-4


@pytest.mark.parametrize(
    "noise",
    [
        GeometricNoise(L1(Fraction(12)), Fraction(3), 0),
        GeometricNoise(L1(Fraction(12)), Fraction(40), 0),
        thresholded_counts(Rows(12, "added or removed"), dp.GDP(1.0), Fraction(1, 100)).noise,
    ],
    ids=["narrow", "wide", "gaussian"],
)
def test_the_worst_split_is_one_key_or_all_different_keys(noise):
    """δ against every way to spread up to k rows over keys,
    for thresholds from just above the rows on.
    """
    cut = 1 << noise.refinement
    both = set()
    for k in (1, 2, 3, 7, 12):
        for extra in (1, 5 * cut, 30 * cut, 90 * cut):
            threshold = k * cut + extra
            pass_by = {
                count: float(show_bounds(noise, threshold, count)[1]) for count in range(1, k + 1)
            }
            splits = {
                parts: -math.expm1(sum(math.log1p(-pass_by[part]) for part in parts))
                for total in range(1, k + 1)
                for parts in spread_over_keys(total)
            }
            worst = max(splits, key=splits.__getitem__)
            assert splits[worst] == pytest.approx(
                float(failure_bounds(noise, threshold, k)[1]), rel=1e-9
            )
            both.add("one" if len(worst) == 1 else "all")
            assert len(worst) in (1, k)
    assert "one" in both


def test_many_different_keys_can_be_the_worst():
    """With wide noise, a unit that holds k keys once each is likelier to be seen than one that
    holds one key k times.
    """
    noise = GeometricNoise(L1(Fraction(50)), Fraction(200), 0)
    threshold = 1000
    apart, together = (
        1 - (1 - float(show_bounds(noise, threshold, 1)[1])) ** 50,
        float(show_bounds(noise, threshold, 50)[1]),
    )
    assert apart > 10 * together
    assert float(failure_bounds(noise, threshold, 50)[1]) == pytest.approx(apart, rel=1e-6)


@pytest.mark.parametrize(
    "spend", [dp.PureDP(0.5), dp.GDP(0.5), dp.ZCDP(0.125), dp.ApproxDP(1.0, 1e-6)], ids=str
)
@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_the_loss_is_that_of_the_noise_but_for_delta(spend, rows):
    mechanism = thresholded_counts(rows, spend, Fraction(1, 10**8))
    loss = loss_of(mechanism)
    assert dataclasses.replace(loss, delta=Fraction(0)) == loss_of(mechanism.noise)
    assert (
        Fraction(9, 10**9) * (Fraction(1, 2) if isinstance(spend, dp.PureDP) else 1)
        < loss.delta
        <= Fraction(1, 10**8)
    )
    assert ThresholdedCounts.from_dict(mechanism.to_dict()) == mechanism


def test_specs_that_do_not_belong_together_are_refused():
    right = thresholded_counts(ROWS[1], dp.PureDP(0.5), Fraction(1, 10**8))
    for change in (
        {"sensitivity": ROWS[0]},
        {"sensitivity": right.noise.sensitivity},
        {"threshold": 1},
        {"threshold": True},
        {"threshold": 70.0},
        {"noise": None},
    ):
        with pytest.raises(InvalidParameter, match="ThresholdedCounts"):
            dataclasses.replace(right, **change)
    for delta in (Fraction(0), Fraction(1), Fraction(-1, 10)):
        with pytest.raises(InvalidParameter, match="delta="):
            thresholded_counts(ROWS[0], dp.GDP(1), delta)


DRAWS = 200_000


def sampled(mechanism, counts, seed):
    """Outcomes of each key in many draws: −1 where it is not shown,
    else how far above the threshold.
    """
    names = [f"{place:08d}" for place in range(len(counts) * DRAWS)]
    statistic = KeyCounts(names, np.repeat(np.array(counts, dtype=np.int64), DRAWS))
    answer = apply(mechanism, statistic, SeededSource(seed))
    assert list(answer.found) == sorted(answer.found)
    outcomes = np.full(len(names), -1, dtype=np.int64)
    outcomes[[int(name) for name in answer.found]] = np.array(answer.integers) - mechanism.threshold
    return outcomes.reshape(len(counts), DRAWS)


def chi_square_p(outcomes, law):
    """p-value of outcomes −1, 0, 1, … against a law over the same,
    cells of few expected draws joined to the last.
    """
    expected = law * len(outcomes)
    enough = int(np.flatnonzero(np.cumsum(expected[::-1])[::-1] >= 20)[-1]) + 1
    seen = np.bincount(np.minimum(outcomes + 1, enough - 1), minlength=enough)
    wanted = np.append(expected[: enough - 1], expected[enough - 1 :].sum())
    return stats.chi2.sf(((seen - wanted) ** 2 / wanted).sum(), enough - 1)


def test_the_sampler_follows_the_law():
    mechanism = thresholded_counts(ROWS[1], dp.PureDP(0.8), Fraction(1, 1000))
    counts = [1, 5, mechanism.threshold - 1, mechanism.threshold + 3, mechanism.threshold + 20]
    outcomes = sampled(mechanism, counts, 5)
    for place, count in enumerate(counts):
        law = key_law(mechanism, count, mechanism.threshold + count + 60)
        assert chi_square_p(outcomes[place], law) > ALPHA
        wrong = key_law(
            dataclasses.replace(mechanism, threshold=mechanism.threshold + 1),
            count,
            mechanism.threshold + count + 61,
        )
        other = GeometricNoise(
            mechanism.noise.sensitivity, Fraction(float(mechanism.noise.spread) * 1.3), 0
        )
        if count > 1:  # of a count of 1 almost nothing is ever shown
            assert chi_square_p(outcomes[place], wrong) < ALPHA
            assert (
                chi_square_p(
                    outcomes[place],
                    key_law(
                        dataclasses.replace(mechanism, noise=other),
                        count,
                        mechanism.threshold + count + 60,
                    ),
                )
                < ALPHA
            )


def test_the_sampler_follows_the_gaussian_law():
    """What is shown, uniform by its own conditional law; and how often anything is."""
    mechanism = thresholded_counts(ROWS[0], dp.GDP(0.5), Fraction(1, 1000))
    spread, cut = float(mechanism.noise.steps), 1 << mechanism.noise.refinement
    assert isinstance(mechanism.noise, GaussianNoise)
    near = round(float(mechanism.least_shown))
    for count, row in zip(
        (near - 2, near, near + 5), sampled(mechanism, [near - 2, near, near + 5], 6), strict=True
    ):
        distance = (mechanism.threshold - count * cut - 0.5) / spread
        assert stats.binomtest(int((row >= 0).sum()), DRAWS, stats.norm.sf(distance)).pvalue > ALPHA
        uniform = stats.norm.sf(distance + (row[row >= 0] + 0.5) / spread) / stats.norm.sf(distance)
        assert stats.kstest(uniform, "uniform").pvalue > ALPHA
        assert (
            stats.kstest(
                stats.norm.sf(distance / 1.3 + (row[row >= 0] + 0.5) / spread / 1.3)
                / stats.norm.sf(distance / 1.3),
                "uniform",
            ).pvalue
            < ALPHA
        )


def test_wide_counts_are_cut_exactly():
    """Counts of 2**40 rows with noise far below one row: no product leaves 64 bits."""
    noise = GaussianNoise(key_count_sensitivity(ROWS[0])[1], Fraction(1, 1 << 25), 35)
    mechanism = ThresholdedCounts(ROWS[0], noise, (1 << 35) + (1 << 20))
    answer = apply(
        mechanism, KeyCounts(["a", "b"], np.array([1 << 40, 1], dtype=np.int64)), SeededSource(1)
    )
    assert answer.found == ("a",)
    assert abs(answer.integers[0] - (1 << (40 + mechanism.noise.refinement))) < 10 * float(
        mechanism.noise.steps
    )


def key_counts_of(rows, neighbors):
    columns = {"id": [unit for unit, _ in rows], "word": [word for _, word in rows]}
    query = OpenCounts(("word",), ())
    counts = query.assemble(
        execute(memory_engine_from_arrays(columns, SCHEMA, neighbors), query.plan())
    )
    return dict(zip(counts.names, counts.counts.tolist(), strict=True))


def own_rows(rng, words, rows):
    """Rows of one unit: words of others, words of its own, or one word throughout."""
    drawn = [
        words[rng.integers(len(words))] if rng.random() < 0.5 else f"own {rng.integers(3)}"
        for _ in range(rows)
    ]
    return (
        [(99, drawn[0] if rng.random() < 0.9 else word) for word in drawn]
        if rng.random() < 0.5
        else [(99, word) for word in drawn]
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "neighbors",
    [
        dp.AddRemove(unit="id", max_rows=1),
        dp.AddRemove(unit="id", max_rows=3),
        dp.Replace(unit="id", max_rows=1),
        dp.Replace(unit="id", max_rows=3),
        dp.Replace(),
        dp.AddRemove(),
    ],
    ids=str,
)
def test_neighbouring_key_counts_differ_as_stated(neighbors):
    rng = np.random.default_rng(8)
    words = ["a", "b", "c", "d", "e", None, ""]
    others = [(int(rng.integers(6)), words[rng.integers(len(words))]) for _ in range(25)]
    proven = OpenCounts(("word",), ()).sensitivity(neighbors)
    l1, l2 = key_count_sensitivity(proven)
    largest = [0.0, 0.0, 0, 0]
    for _ in range(400):
        own = [
            own_rows(rng, words, int(rng.integers(0, 6)) if neighbors.unit else 1) for _ in range(2)
        ]
        before, after = (
            key_counts_of(others + rows, neighbors)
            for rows in (own[0], own[1] if isinstance(neighbors, dp.Replace) else [])
        )
        change = np.array([after.get(word, 0) - before.get(word, 0) for word in {*before, *after}])
        new = (
            sum(count for word, count in before.items() if word not in after),
            sum(count for word, count in after.items() if word not in before),
        )
        largest = [
            max(pair)
            for pair in zip(
                largest,
                (np.abs(change).sum(), (change**2).sum(), -change[change < 0].sum(), max(new)),
                strict=True,
            )
        ]
        assert np.abs(change).sum() <= l1.value
        assert (change**2).sum() <= l2.squared
        assert max(new) <= proven.rows
        assert max(change[change > 0].sum(), -change[change < 0].sum()) <= proven.rows
    assert largest[:3] == [l1.value, l2.squared, proven.rows]  # each bound is attained


def test_the_tail_of_gaussian_noise_is_that_of_the_rounded_law():
    """N ≥ t means s·Z > t − ½: half a step is far more than the difference that is allowed here."""
    noise = GaussianNoise(key_count_sensitivity(Rows(1, "replaced"))[1], Fraction(2.0), 9)
    for steps in (-3000, -1, 0, 1, 2000, 6000):
        low, high = enclose(lambda ball, steps=steps: tail(ball, noise, steps))
        assert float(low) == pytest.approx(stats.norm.sf((steps - 0.5) / 1024), rel=1e-12)
        assert float(high) == pytest.approx(stats.norm.sf((steps - 0.5) / 1024), rel=1e-12)
