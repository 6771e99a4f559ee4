"""Intervals of one proportion: coverage computed exactly from the released law, at every share of a
grid, with the ends and n = 5; simulation-based intervals beside them.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtri

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.inference.counts.binomial import NoisyCount, binomial_law, normal_interval
from discreet.inference.counts.fiducial_share import FiducialShare, share_draws
from discreet.inference.counts.most_powerful import rejection
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.simulation import fiducial
from discreet.inference.simulation.bootstrap import parametric_bootstrap, reproduced_set
from discreet.inference.simulation.fiducial import Draws, matched_draws, matched_vectors
from discreet.inference.simulation.released import released_moments
from discreet.inference.simulation.streams import Stream
from discreet.testing import seeded_session

SHARES = np.unique(
    np.concatenate(
        [[0.0, 1e-9, 1e-4, 0.001, 0.01], np.linspace(0.02, 0.98, 33), [0.99, 0.999, 1 - 1e-9, 1.0]]
    )
)


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("rows", [1, 5, 30, 100])
def test_whole_counts_are_covered_at_every_share(rows: int, spread: float) -> None:
    """Summed over every release: coverage ≥ level, nothing added to the released count."""
    noise = ReleasedNoise("geometric", spread)
    reach = math.ceil(28 * spread) + 2
    values = np.arange(-reach, rows + reach + 1)
    for level in (0.95, 0.8):
        ends = np.array([NoisyCount(float(value), rows, noise).interval(level) for value in values])
        assert np.all(np.diff(ends, axis=0) >= -1e-9)
        for theta in SHARES:
            x, weights = binomial_law(rows, float(theta))
            mass = (
                noise.above(values[:, None] - x) - noise.above(values[:, None] - x + 1)
            ) @ weights
            covered = (ends[:, 0] <= theta + 1e-12) & (theta - 1e-12 <= ends[:, 1])
            assert float(mass[covered].sum()) >= level - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    "noise",
    [
        ReleasedNoise("tulap", 1.0),
        ReleasedNoise("tulap", 5.0),
        ReleasedNoise("tulap", 0.2),
        ReleasedNoise("gaussian", 1.5, 2.0**-10),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [5, 30, 100])
def test_smooth_counts_are_covered_exactly(noise: ReleasedNoise, rows: int) -> None:
    """The releases whose interval holds θ are found from the interval itself; their probability is
    the level (and not more, where noise is smooth).
    """
    spacing = noise.step or 1e-12
    wide = round((rows + 30 * noise.spread + 10) / spacing)

    def first_outside(theta: float, side: int) -> float:
        """The least release above θ's reach (side 0) or the greatest below it (side 1),
        by bisection on the grid.
        """
        inside, outside = round(rows * theta / spacing), (wide if side == 0 else -wide)
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            end = NoisyCount(middle * spacing, rows, noise).interval(0.95)[side]
            inside, outside = (
                (middle, outside)
                if (end <= theta if side == 0 else end >= theta)
                else (inside, middle)
            )
        return outside * spacing

    for theta in SHARES[3:-3:4].tolist():
        coverage = 1 - rejection(
            rows, theta, noise, first_outside(theta, 1), first_outside(theta, 0)
        )
        assert coverage >= 0.95 - 1e-9
        assert coverage <= 0.95 + (1e-9 if not noise.step else 2e-3)


def test_without_noise_it_is_clopper_and_pearsons_interval() -> None:
    nearly_none = ReleasedNoise("geometric", 1e-3)
    for count, rows in ((0, 5), (2, 5), (7, 30), (100, 100), (412, 1000)):
        reference = stats.binomtest(count, rows).proportion_ci(0.95, method="exact")
        assert NoisyCount(float(count), rows, nearly_none).interval(0.95) == pytest.approx(
            (reference.low, reference.high), abs=1e-10
        )


@pytest.mark.parametrize("value", [-1e6, -12.0, -3.0, 0.0, 5.0, 33.0, 60.0, 1e6])
@pytest.mark.parametrize("kind", ["tulap", "geometric", "gaussian"])
def test_every_release_has_an_answer_inside_the_unit_interval(value: float, kind: str) -> None:
    """Empty sets give the nearest end; the interval mirrors when "yes" and "no" trade places."""
    for spread in (1e-3, 1.0, 1e5):
        noise = ReleasedNoise(kind, spread, 2.0**-20 if kind == "gaussian" else 0.0)
        count, mirrored = NoisyCount(value, 30, noise), NoisyCount(30 - value, 30, noise)
        for name, low, high in (
            ("exact", *count.interval(0.95)),
            ("symmetric", *count.symmetric_interval(0.95)),
            ("fiducial", *FiducialShare(count).interval(0.95)),
            ("normal", *normal_interval(count, 0.95)),
        ):
            assert 0 <= low <= high <= 1, name
        low, high = count.interval(0.95)
        assert mirrored.interval(0.95) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert NoisyCount(-1e6, 30, ReleasedNoise("tulap", 1.0)).interval(0.95) == (0.0, 0.0)
    assert NoisyCount(1e6, 30, ReleasedNoise("tulap", 1.0)).interval(0.95) == (1.0, 1.0)
    assert NoisyCount(value, 0, ReleasedNoise("tulap", 1.0)).interval(0.95) == (0.0, 1.0)


def test_many_rows() -> None:
    """The exact interval agrees with the normal approximation where that is good,
    up to 10⁸ rows.
    """
    for rows in (10**5, 10**8):
        count = NoisyCount(0.3 * rows, rows, ReleasedNoise("tulap", 2.0))
        np.testing.assert_allclose(
            count.interval(0.95), normal_interval(count, 0.95), atol=2 / rows
        )


def test_symmetric_intervals_hold_what_their_test_accepts() -> None:
    noise = ReleasedNoise("tulap", 1.0)
    for value in (-2.0, 0.7, 3.2, 14.9, 29.0):
        count = NoisyCount(value, 30, noise)
        low, high = count.symmetric_interval(0.9)
        for theta in np.linspace(0, 1, 201):
            if count.symmetric_p_value(float(theta)) > 0.1 + 1e-9:
                assert low - 1e-9 <= theta <= high + 1e-9


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("theta", "rows", "epsilon"),
    [
        (0.05, 30, 1.0),
        (0.01, 100, 0.5),
        (0.02, 20, 0.5),
        (0.001, 50, 1.0),
        (0.5, 30, 1.0),
        (0.95, 30, 1.0),
        (0.5, 500, 0.1),
    ],
)
@pytest.mark.parametrize("kind", ["tulap", "laplace", "gaussian"])
def test_fiducial_coverage_is_close_to_nominal(
    theta: float, rows: int, epsilon: float, kind: str
) -> None:
    """The published grid (reference.md M6), computed:
    the releases whose interval holds θ, and their probability.
    """
    noise = ReleasedNoise(kind, 1 / epsilon)
    wide = 40 * noise.spread + 40

    def below(value: float) -> float:
        return FiducialShare(NoisyCount(value, rows, noise)).cdf(theta)

    high = brentq(lambda value: below(value) - 0.025, rows * theta - 1, rows + wide, xtol=1e-8)
    low = brentq(lambda value: below(value) - 0.975, -wide, rows * theta + 1, xtol=1e-8)
    assert 1 - rejection(rows, theta, noise, low, high) == pytest.approx(0.95, abs=0.01)


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["geometric", "tulap", "gaussian"])
@pytest.mark.parametrize(("value", "rows"), [(1.0, 8), (412.0, 1000), (-2.0, 20)])
def test_fiducial_draws_follow_the_fiducial_law(kind: str, value: float, rows: int) -> None:
    """Kolmogorov's limit at 1e-9, on both sides of the jumps at 0 and 1;
    a law of more noise is rejected.
    """
    count = NoisyCount(value, rows, ReleasedNoise(kind, 1.0))
    drawn = np.sort(share_draws(count, 40_000, seed="law"))
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * drawn.size))
    places = np.quantile(drawn, np.linspace(0.01, 0.99, 60))
    seen = np.searchsorted(drawn, places, side="right") / drawn.size
    assert (
        np.max(np.abs(seen - [FiducialShare(count).cdf(float(place)) for place in places])) < limit
    )
    wrong = FiducialShare(NoisyCount(value, rows, ReleasedNoise(kind, 3.0)))
    if rows < 1000:
        assert np.max(np.abs(seen - [wrong.cdf(float(place)) for place in places])) > limit
    assert np.array_equal(share_draws(count, 50, seed=1), share_draws(count, 50, seed=1))
    assert not np.array_equal(share_draws(count, 50, seed=1), share_draws(count, 50, seed=2))


@pytest.mark.few(2)
@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.5, 20.5), (3.2, 0.7), (400.0, 600.0)])
def test_beta_variates(a: float, b: float) -> None:
    size = 30_000
    drawn = Stream("beta").betas(np.full(size, a), np.full(size, b))
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * size))
    assert stats.kstest(drawn, stats.beta(a, b).cdf).statistic < limit
    assert stats.kstest(drawn, stats.beta(1.3 * a, b).cdf).statistic > limit


def successes(theta: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    return np.asarray((uniform < theta[:, None]).sum(axis=1), dtype=float)


def clamped_sum(theta: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(theta[:, None] + ndtri(uniform), -1.0, 1.0).sum(axis=1))


def test_the_matching_equation_gives_the_fiducial_law_of_a_share() -> None:
    """The general solver on a binomial simulator agrees with the law computed in closed form;
    its ends with the exact interval.
    """
    noise, seen = ReleasedNoise("geometric", 1.0), []
    found = matched_draws(
        11.0,
        successes,
        noise,
        size=40,
        low=0.0,
        high=1.0,
        draws=4000,
        progress=lambda done, total: seen.append((done, total)),
    )
    law = FiducialShare(NoisyCount(11.0, 40, noise))
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * 4000))
    for theta in np.linspace(0.05, 0.6, 23):
        assert abs(float(np.mean(found.values <= theta)) - law.cdf(float(theta))) < limit
    assert np.all(np.abs(found.interval(0.95) - law.interval(0.95)) < 6 * found.error(0.95))
    assert np.array(found.covering_interval(0.95)) == pytest.approx(
        NoisyCount(11.0, 40, noise).interval(0.95), abs=0.02
    )
    p, error = found.p_value(0.2)
    assert abs(p - law.p_value(0.2, "two-sided")) < 6 * error
    assert seen[-1] == (4000, 4000)


@pytest.mark.slow
def test_simulated_intervals_cover_in_finite_samples() -> None:
    """Clamped data, few draws: the ranks decide, so 200 data sets are enough to see that coverage
    is not lost (limit at 1e-9 for a coverage of 0.9).
    """
    noise, truth, size = ReleasedNoise("gaussian", 2.0, 2.0**-9), 0.3, 12
    stream = Stream("coverage")
    releases = clamped_sum(
        np.full(200, truth), stream.uniforms((200, size), "data")
    ) + noise.quantile(stream.uniforms((200,), "noise"))
    hits = np.zeros(2, dtype=int)
    for place, release in enumerate(releases):
        found = matched_draws(
            float(release), clamped_sum, noise, size=size, low=-4.0, high=4.0, draws=59, seed=place
        )
        low, high = found.covering_interval(0.9)
        hits[0] += low <= truth <= high
        hits[1] += bool(
            reproduced_set(
                np.array([release]),
                clamped_sum,
                (noise,),
                np.array([truth]),
                size=size,
                draws=59,
                seed=place,
            ).accepted(0.9)[0]
        )
    assert np.all(hits >= stats.binom.ppf(1e-9, 200, 0.9))
    assert np.all(hits <= stats.binom.ppf(1 - 1e-9, 200, 0.94))


def test_repro_sets_and_matched_intervals_agree() -> None:
    noise = ReleasedNoise("gaussian", 3.0, 2.0**-8)
    candidates = np.linspace(-1.0, 1.5, 51)
    calls = []
    repro = reproduced_set(
        np.array([12.0]),
        clamped_sum,
        (noise,),
        candidates,
        size=50,
        draws=399,
        progress=lambda done, total: calls.append(done),
    )
    matched = matched_draws(12.0, clamped_sum, noise, size=50, low=-3.0, high=3.0, draws=399)
    assert np.array(repro.interval()) == pytest.approx(matched.covering_interval(0.95), abs=0.15)
    assert calls[-1] == 51
    nowhere = reproduced_set(np.array([1e9]), clamped_sum, (noise,), candidates, size=50, draws=99)
    assert nowhere.interval()[0] == nowhere.interval()[1]


def test_two_parameters_are_matched_at_once() -> None:
    def moments(theta: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        data = np.clip(theta[:, :1] + theta[:, 1:] * ndtri(uniform), -3.0, 3.0)
        return np.stack([data.sum(axis=1), (data**2).sum(axis=1)], axis=1)

    noise = ReleasedNoise("gaussian", 3.0, 2.0**-8)
    uniform = Stream("moments").uniforms((1, 400))
    release = moments(np.array([[0.5, 1.2]]), uniform)[0]
    found = matched_vectors(
        release,
        moments,
        (noise, noise),
        size=400,
        start=np.array([0.0, 1.0]),
        bounds=(np.array([-2.0, 0.05]), np.array([2.0, 5.0])),
        draws=300,
    )
    assert found.interval(0.99).shape == (2, 2)
    assert np.all(found.interval(0.999)[:, 0] < [0.5, 1.2])
    assert np.all(found.interval(0.999)[:, 1] > [0.5, 1.2])
    assert np.all(np.std(found.values, axis=0) < [0.1, 0.1])


def test_the_parametric_bootstrap_knows_both_errors() -> None:
    noise = ReleasedNoise("gaussian", 3.0, 2.0**-8)
    found = parametric_bootstrap(
        12.0,
        lambda theta, uniform: np.asarray((theta[:, None] + ndtri(uniform)).sum(axis=1)),
        noise,
        lambda release: release / 50,
        size=50,
        draws=4000,
    )
    assert found.std_error == pytest.approx(math.sqrt(1 / 50 + 9 / 2500), rel=0.08)
    assert abs(found.bias) < 6 * found.std_error / math.sqrt(4000)
    for method in ("basic", "percentile"):
        assert np.array(found.interval(method=method)) == pytest.approx(
            0.24 + np.array([-1.96, 1.96]) * found.std_error, abs=0.06
        )
    assert np.all(found.error() < 0.02)
    with pytest.raises(InvalidParameter, match="bootstrap"):
        found.interval(method="best")


def test_impossible_numbers_of_draws_are_refused() -> None:
    for draws in (0, -3, True, 2.5):
        with pytest.raises(InvalidParameter, match="draws"):
            matched_draws(
                1.0,
                successes,
                ReleasedNoise("tulap", 1.0),
                size=3,
                low=0.0,
                high=1.0,
                draws=draws,  # type: ignore[arg-type]
            )
    few = np.array([0.1, 0.2, 0.3])
    assert Draws(few, few, few).covering_interval(0.95) == (-np.inf, np.inf)


@pytest.mark.parametrize("spend", [dp.GDP(50), dp.PureDP(200)], ids=str)
def test_released_moments_are_the_clamped_sums(spend: dp.GDP) -> None:
    """With next to no noise they are the sums of the clamped data; their noise has the stated
    spread, and other releases are refused.
    """
    values = np.random.default_rng(5).normal(2.0, 3.0, 300)
    data = dp.from_arrays(
        {"x": values, "g": values > 0},
        schema={"x": dp.Real(-1, 4, missing=1.5), "g": dp.Boolean()},
        neighbors=dp.Replace(),
    )
    session = seeded_session(
        data, dp.PureDP(10**4) if isinstance(spend, dp.PureDP) else dp.GDP(500), "moments"
    )
    for ask in (dp.mean, dp.sum):
        released = released_moments(ask(session, "x", spend=spend))
        truth = released.of(values[None, :])[0]
        off = np.abs(released.values - truth)
        assert np.all(
            off <= [8 * math.sqrt(noise.variance) + 300 * 5 / 65_000 for noise in released.noises]
        )
        assert (released.rows, released.low, released.high) == pytest.approx((300, -1.0, 4.0))
        assert released.noises[0].variance == pytest.approx(
            float(ask(session, "x", spend=spend).quantities()[0].privacy_variance[0])
            * (300**2 if ask is dp.mean else 1),
            rel=0.35,
        )
    for other in (
        dp.mean(session, "x", spend=spend, where={"g": True}),
        dp.proportion(session, "g", spend=spend),
        dp.variance(session, "x", spend=spend),
    ):
        with pytest.raises(dp.NoTheorem, match="public"):
            released_moments(other)


def test_simulations_in_parts_are_the_same_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bootstrap, matching and ranks report progress, and hold few numbers at a time; blocks change
    which numbers are drawn, not the law.
    """
    noise, calls = ReleasedNoise("gaussian", 3.0, 2.0**-8), []
    monkeypatch.setattr(fiducial, "MOST_AT_ONCE", 5000)
    boot = parametric_bootstrap(
        12.0,
        clamped_sum,
        noise,
        lambda release: release / 50,
        size=50,
        draws=1000,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(done, 1000) for done in range(100, 1001, 100)]
    assert boot.std_error_error == pytest.approx(boot.std_error / math.sqrt(2 * 999))
    again = reproduced_set(
        np.array([12.0]), clamped_sum, (noise,), np.array([0.0, 0.3]), size=50, draws=199
    )
    assert np.all(again.errors < 0.04)
    calls.clear()
    found = matched_vectors(
        np.array([12.0]),
        lambda theta, uniform: clamped_sum(theta[:, 0], uniform)[:, None],
        (noise,),
        size=50,
        start=np.array([0.0]),
        bounds=(np.array([-3.0]), np.array([3.0])),
        draws=300,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(100, 300), (200, 300), (300, 300)]
    one = matched_draws(12.0, clamped_sum, noise, size=50, low=-3.0, high=3.0, draws=300)
    assert np.median(found.values) == pytest.approx(float(np.median(one.values)), abs=0.06)


def acceptance_at_the_estimate(
    value: float, rows: int, noise: ReleasedNoise
) -> tuple[float, float] | None:
    """The peer's interval (OpenDP 0.16, `BinomialCND.confidence_interval`), written naively:
    the releases, over n, that the symmetric test of θ = y/n accepts; None where it raises.
    """
    theta = min(max(value / rows, 0.0), 1.0)
    x = np.arange(rows + 1.0)
    weights = stats.binom.pmf(x, rows, theta)

    def p_value(place: float) -> float:
        distance = abs(rows * (theta - place))
        return float(
            weights
            @ (noise.above(rows * theta + distance - x) + noise.below(rows * theta - distance - x))
        )

    if (theta > 0 and p_value(0.0) > 0.05) or (theta < 1 and p_value(1.0) > 0.05):
        return None
    low = brentq(lambda place: p_value(place) - 0.05, 0.0, theta - 1e-9) if theta > 0 else 0.0
    high = brentq(lambda place: p_value(place) - 0.05, theta + 1e-9, 1.0) if theta < 1 else 1.0
    return low, high


def test_the_peer_is_narrower_only_where_it_misses() -> None:
    """n = 30, p = 0.1, ε = 1 on a grid of releases with their probabilities: ours covers, always
    answers, and is narrower on average; the releases where it is wider are those where the peer
    misses p, and by Neyman and Pearson no interval that covers can be so narrow there.
    """
    rows, share, noise, part = 30, 0.1, ReleasedNoise("tulap", 1.0), 0.25
    values = np.arange(-10, 40, part) + part / 2
    mass = np.array(
        [
            rejection(rows, share, noise, -math.inf, value - part / 2)
            - rejection(rows, share, noise, -math.inf, value + part / 2)
            for value in values
        ]
    )
    theirs = [acceptance_at_the_estimate(float(value), rows, noise) for value in values]
    both = np.array([found is not None for found in theirs])
    ours = np.array([NoisyCount(float(value), rows, noise).interval(0.95) for value in values])
    peer = np.array([found or (0.0, 1.0) for found in theirs])
    assert mass[both].sum() < 0.3
    assert (
        mass[both & (peer[:, 0] <= share) & (share <= peer[:, 1])].sum() < 0.75 * mass[both].sum()
    )
    width, their_width = ours[:, 1] - ours[:, 0], peer[:, 1] - peer[:, 0]
    assert (mass * width)[both].sum() < (mass * their_width)[both].sum()
    wider = both & (width > their_width) & (values < rows / 2)
    assert np.all((values[wider] > -1.1) & (values[wider] < 0))
    assert np.all(peer[wider, 1] < share)
    edge = brentq(
        lambda c: (
            rejection(rows, 0.0, noise, 0.0, math.inf)
            - rejection(rows, 0.0, noise, c, math.inf)
            - 0.05
        ),
        -5.0,
        0.0,
    )
    assert rejection(rows, share, noise, edge, math.inf) == pytest.approx(0.0634529, abs=1e-6)
