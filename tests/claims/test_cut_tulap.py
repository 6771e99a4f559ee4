"""Cut Tulap noise: the exact law on its grid against the guarantee, for all neighbours; the sampler
against the law; the release through a session.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.calibration.additive import cut_tulap_noise
from discreet.inference.counts.most_powerful import critical_value, rejection
from discreet.inference.counts.tulap import released_noise, released_value, truncation
from discreet.sensitivity import L1
from discreet.specs.mechanisms.additive import TulapNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.registry import mechanism_from_dict
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.losses.theorems import cut_bounds, cut_delta
from discreet.trusted.noise.additive import _flat, _uncut, draw_cut

ONE = L1(Fraction(1))


def calibrated(epsilon: float, delta: float, moved: int = 1) -> CutTulapNoise:
    return cut_tulap_noise(L1(Fraction(moved)), Fraction(repr(epsilon)), Fraction(repr(delta)))


def unit_masses(mechanism: CutTulapNoise, parts: int = 64) -> np.ndarray:
    """P of every cell of 1/parts counts within the reach, from its definition; the last cells may
    be cut. Places start at −⌈reach⌉.
    """
    reach, spread = Fraction(mechanism.reach) * mechanism.step, float(mechanism.spread)
    top = math.ceil(reach)
    places = np.arange(-top * parts, top * parts)
    inside = np.array(
        [
            float(
                max(
                    Fraction(0),
                    min(Fraction(int(k) + 1, parts), reach) - max(Fraction(int(k), parts), -reach),
                )
            )
            for k in places
        ]
    )
    weights = inside * np.exp(-np.abs(np.rint((places + 0.5) / parts)) / spread)
    return np.asarray(weights / weights.sum())


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("epsilon", "delta", "moved"),
    [
        (1.0, 0.01, 1),
        (0.3, 1e-3, 1),
        (2.0, 0.2, 1),
        (0.05, 0.02, 1),
        (0.5, 1e-4, 3),
        (1.5, 0.05, 2),
    ],
)
def test_the_law_has_its_epsilon_and_delta_for_all_neighbours(
    epsilon: float, delta: float, moved: int
) -> None:
    """Every shift up to the sensitivity, both orders: the hockey stick at ε is at most δ, and at
    one count exactly δ; a shorter reach breaks it.
    """
    mechanism = calibrated(epsilon, delta, moved)
    parts = 64
    masses = unit_masses(mechanism, parts)
    for shift in range(1, moved + 1):
        pad = np.zeros(shift * parts)
        here, there = np.concatenate([masses, pad]), np.concatenate([pad, masses])
        for p, q in ((here, there), (there, here)):
            both = (p > 0) & (q > 0)
            # the cut cells at the ends are narrower
            inner = (
                both
                & (np.roll(p, 1) > 0)
                & (np.roll(p, -1) > 0)
                & (np.roll(q, 1) > 0)
                & (np.roll(q, -1) > 0)
            )
            assert np.max(np.abs(np.log(p[inner] / q[inner]))) <= epsilon + 1e-9
            assert hockey_stick(p, q, epsilon) <= delta + 1e-12
            if shift == moved:
                assert hockey_stick(p, q, epsilon) == pytest.approx(delta, rel=1e-6)
    shorter = CutTulapNoise(mechanism.noise, mechanism.reach - (1 << 30))  # a quarter of a count
    wrong = unit_masses(shorter, parts)
    pad = np.zeros(moved * parts)
    assert (
        hockey_stick(np.concatenate([wrong, pad]), np.concatenate([pad, wrong]), epsilon)
        > delta * 1.01
    )
    assert cut_delta(shorter) > delta


def test_moves_of_several_counts_together_fail_no_more_often() -> None:
    """Two counts that move by 1 and 2 leave each other's range with no more than the δ of one count
    that moves by 3.
    """
    mechanism = calibrated(0.8, 0.01, 3)
    masses, parts = unit_masses(mechanism), 64
    ends = {
        move: float(
            masses[
                -(
                    move * parts
                    + (
                        math.ceil(mechanism.reach * mechanism.step) * parts
                        - math.floor(mechanism.reach * mechanism.step * parts)
                    )
                ) :
            ].sum()
        )
        for move in (1, 2, 3)
    }
    assert 1 - (1 - ends[1]) * (1 - ends[2]) <= ends[3] + 1e-12
    assert 1 - (1 - ends[1]) ** 3 <= ends[3] + 1e-12


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 0.01), (1.0, 1e-6), (0.1, 1e-8), (0.5, 0.3), (100.0, 1e-3)]
)
def test_the_reach_is_the_least_and_the_published_cut(epsilon: float, delta: float) -> None:
    """δ is met at the reach and not one step before;
    on a grid of 2**-32 the cut is reference.md M3's q.
    """
    mechanism = calibrated(epsilon, delta)
    assert (
        cut_delta(mechanism)
        <= Fraction(repr(delta))
        < cut_bounds(mechanism.noise, mechanism.reach - 1)[1]
    )
    assert released_noise(mechanism).cut == pytest.approx(truncation(epsilon, delta), rel=1e-6)
    assert released_noise(mechanism).end == pytest.approx(
        float(mechanism.reach * mechanism.step), rel=1e-6
    )
    assert loss_of(mechanism).pure == (1 / mechanism.spread,)
    assert guarantee_of(mechanism).epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.3, 1e-6), (0.02, 0.05), (3.0, 0.4)])
def test_the_variance_is_the_laws(epsilon: float, delta: float) -> None:
    mechanism = calibrated(epsilon, delta)
    u = (np.arange(200_000) + 0.5) / 200_000
    assert mechanism.variance == pytest.approx(
        float(np.mean(released_noise(mechanism).quantile(u) ** 2)), rel=1e-4
    )
    assert released_noise(mechanism).variance == pytest.approx(mechanism.variance, rel=2e-2)
    assert mechanism.variance <= mechanism.noise.variance


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.05, 0.1)])
@pytest.mark.parametrize("way", [_uncut, _flat, draw_cut], ids=["drawn again", "flat", "as chosen"])
def test_the_sampler_follows_the_law(epsilon: float, delta: float, way: object) -> None:
    """Kolmogorov's limit at 1e-9 for both ways of drawing;
    the uncut law and a spread off by 30 % are rejected.
    """
    mechanism, size = calibrated(epsilon, delta), 12_000
    drawn: list[int] = []
    source = SeededSource(f"cut/{epsilon}")
    while len(drawn) < size:
        drawn += way(mechanism, size - len(drawn), source)  # type: ignore[operator]
    assert min(drawn) >= -mechanism.reach
    assert max(drawn) < mechanism.reach
    values = np.sort([released_value(mechanism, step) for step in drawn])
    at = values[::30]
    seen = 1 - np.searchsorted(values, at) / size
    limit = math.sqrt(math.log(2 / 1e-9) / (2 * size))
    assert np.max(np.abs(seen - released_noise(mechanism).above(at))) < limit
    assert np.max(np.abs(seen - released_noise(mechanism.noise).above(at))) > limit
    if epsilon == 1.0:
        wrong = released_noise(CutTulapNoise(TulapNoise(ONE, Fraction(2), 32), mechanism.reach))
        assert np.max(np.abs(seen - wrong.above(at))) > limit


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.2, 1e-5), (0.01, 0.1)])
def test_sizes_of_the_released_law(epsilon: float, delta: float) -> None:
    noise = released_noise(calibrated(epsilon, delta))
    for rows in (1, 5, 30, 100):
        for null in (1e-9, 0.01, 0.3, 0.5, 0.97, 1 - 1e-9):
            limit = critical_value(rows, null, noise, 0.05)
            assert rejection(rows, null, noise, -math.inf, limit) <= 0.05 + 1e-9


def test_bad_specs_are_refused() -> None:
    noise = TulapNoise(ONE, Fraction(1), 32)
    for bad in (
        lambda: CutTulapNoise(noise, (1 << 32) - 1),
        lambda: CutTulapNoise(noise, True),
        lambda: CutTulapNoise(noise, 1 << 62),
        lambda: CutTulapNoise(TulapNoise(ONE, Fraction(1 << 20), 32), 1 << 52),
        lambda: CutTulapNoise(TulapNoise(L1(Fraction(1, 2)), Fraction(1), 32), 1 << 40),
        lambda: calibrated(1e-6, 0.01),
    ):
        with pytest.raises(dp.InvalidParameter):
            bad()
    mechanism = calibrated(1.0, 0.01)
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


def member_session(budget: object, **split: float) -> dp.Session:
    rng = np.random.default_rng(3)
    data = dp.from_arrays(
        {"b": rng.random(300) < 0.4},
        schema={"b": dp.Boolean(missing=False)},
        neighbors=dp.Replace(),
    )
    return seeded_session(data, dp.Ledger.open(budget, **split), "cut")  # type: ignore[arg-type]


def test_an_approximate_spend_buys_cut_noise() -> None:
    """Charged as ε and δ₀, previewed, planned, released, tested, written and read again; power is
    above Gaussian noise's for the same (ε, δ).
    """
    session = member_session(dp.ApproxDP(2, 1e-5), pure=1.6, delta0=6e-6)
    spend = dp.ApproxDP(0.5, 2e-6)
    forecast = dp.preview(session, dp.proportion_test, "b", 0.4, spend=spend, noise="tulap")
    answer = dp.proportion_test(session, "b", 0.4, spend=spend, noise="tulap")
    release = answer.result.release
    assert release.mechanism.kind == "cut tulap"
    assert forecast.question.mechanism == release.mechanism
    assert (release.guarantee.epsilon, release.guarantee.delta) <= (0.5, 2e-6)
    assert session.ledger.spent().exact().epsilon == Fraction(1, 2)
    assert Fraction(19, 10**7) < session.ledger.spent().exact().delta <= Fraction(2, 10**6)
    again = dp.from_json(answer.result.to_json())
    for method in ("exact", "conservative", "symmetric", "fiducial", "normal", "score"):
        low, high = again.confidence_interval(method=method)[0]
        assert 0 <= low < 0.4 < high <= 1
        assert (
            again.test(0.4, method=method).p_value == answer.result.test(0.4, method=method).p_value
        )
    assert (
        dp.proportion(session, "b", spend=spend, noise="tulap").release.mechanism
        == release.mechanism
    )
    plan = {"rows": 300, "null": 0.4, "share": 0.47, "spend": spend}
    assert (
        dp.power(dp.proportion_test, noise="tulap", **plan).power
        > dp.power(dp.proportion_test, **plan).power + 0.1
    )
    assert dp.power(dp.proportion_test, noise="tulap", **plan).plan.with_privacy(
        0.5
    ).noise.cut == pytest.approx(release_cut(release.mechanism), rel=1e-6)


def release_cut(mechanism: CutTulapNoise) -> float:
    return released_noise(mechanism).cut


def test_cut_noise_is_refused_where_it_has_no_theorem() -> None:
    session = member_session(dp.ApproxDP(2, 1e-5), pure=1.6, delta0=6e-6)
    head = session.ledger.head
    for spend in (dp.GDP(0.1), dp.ZCDP(0.01)):
        with pytest.raises(dp.NoTheorem, match="Gaussian"):
            dp.proportion(session, "b", spend=spend, noise="tulap")
    with pytest.raises(dp.NoTheorem, match="private"):
        dp.proportion(session, "b", spend=dp.ApproxDP(0.5, 1e-6), noise="tulap", where={"b": True})
    with pytest.raises(dp.InvalidParameter, match="noise="):
        dp.proportion(session, "b", spend=dp.ApproxDP(0.5, 1e-6), noise="laplace")
    with pytest.raises(dp.InvalidParameter, match="noise="):
        dp.power(
            dp.proportion_test, rows=10, null=0.4, share=0.5, spend=dp.PureDP(1), noise="laplace"
        )
    with pytest.raises(dp.DiscreetError):
        # more δ₀ than the ledger opened
        dp.proportion(session, "b", spend=dp.ApproxDP(0.5, 9e-6), noise="tulap")
    assert session.ledger.head == head
    pure = member_session(dp.PureDP(2))
    assert (
        dp.proportion(pure, "b", spend=dp.PureDP(0.5), noise="tulap").release.mechanism.kind
        == "tulap"
    )
    with pytest.raises(dp.DiscreetError):
        dp.proportion(pure, "b", spend=dp.ApproxDP(0.5, 1e-6), noise="tulap")
