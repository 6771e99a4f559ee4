"""The quantile mechanisms keep their promises, on the laws that run; the lectures' versions go
through the same checks and fail (reference.md B6–B10).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from tests.claims.quantile_laws import (
    BEYOND,
    cell_losses,
    choice_law,
    data_sets,
    histogram,
    hockey_stick,
    log_ratio,
    naive_gamma,
    naive_smooth,
    neighbors,
    pairs,
    reads,
    release_excess,
    release_law,
    renyi,
    slide_distance,
    smooth_pairs,
    smooth_read,
    upper_tail,
)

from discreet.accounting.calibration.thresholds import proposal_threshold
from discreet.accounting.gaussian import gdp_delta
from discreet.accounting.guarantees import PureDP
from discreet.errors import DiscreetError, NoTheorem
from discreet.sensitivity import CHANGES, Rows
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.registry import mechanism_from_dict
from discreet.testing import SeededSource
from discreet.trusted.extensions.data_dependent.loss import geometric_tail
from discreet.trusted.extensions.data_dependent.order_statistics import (
    ends,
    smooth_sensitivity,
    stability_distance,
)
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import price_of, within_spend
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.source import take_bits

F = Fraction
REPLACED = Rows(1, "replaced")
QUANTILES = [(1, 2), (1, 4), (2, 3), (0, 1), (1, 1)]
ALPHA = 1e-9


def choices(rate: Fraction) -> list[QuantileChoice]:
    every = [
        QuantileChoice(Rows(1, change), a, b, rate, "exponential")
        for change in CHANGES
        for a, b in QUANTILES
    ]
    return every + [QuantileChoice(REPLACED, a, b, rate, "inverse") for a, b in QUANTILES]


@pytest.mark.slow
def test_rank_losses_move_no_further() -> None:
    for choice in choices(F(1)):
        moved = max(
            int(
                np.abs(
                    cell_losses(choice, histogram(4, x)) - cell_losses(choice, histogram(4, y))
                ).max()
            )
            for x, y in pairs(4, (1, 2, 3, 4), choice.sensitivity.change)
        )
        assert moved == choice.largest_change, choice  # never exceeded, and attained


def test_rank_losses_are_what_they_say() -> None:
    for choice in choices(F(1)):
        for rows in range(4):
            for values in data_sets(5, rows):
                below, upto = (
                    np.array([sum(v < c + extra for v in values) for c in range(5)])
                    for extra in (0, 1)
                )
                if choice.rule == "exponential":
                    wanted = np.maximum(
                        0,
                        np.maximum(
                            choice.b * below - choice.a * rows, choice.a * rows - choice.b * upto
                        ),
                    )
                else:
                    m = min(rows, max(1, math.ceil(F(choice.a * rows, choice.b))))
                    wanted = np.maximum(0, np.maximum(below - m + 1, m - upto))
                assert (cell_losses(choice, histogram(5, values)) == wanted).all()


def test_path_length_is_the_least_number_of_replaced_values() -> None:
    choice = QuantileChoice(REPLACED, 1, 2, F(1), "inverse")
    for rows in (1, 2, 3, 4):
        for values in data_sets(4, rows):
            for cell, length in enumerate(cell_losses(choice, histogram(4, values))):
                near = [x for x in data_sets(4, rows) if sorted(x)[(rows + 1) // 2 - 1] == cell]
                assert length == min(
                    rows
                    - sum(np.bincount(values, minlength=4).clip(max=np.bincount(x, minlength=4)))
                    for x in near
                )


def range_excess(choice: QuantileChoice, promised: float) -> float:
    """By how much the range of log-ratios exceeds a promise, over all neighbours."""
    worst = 0.0
    for x, y in pairs(4, (1, 2, 3), choice.sensitivity.change):
        ratios = np.log(choice_law(choice, histogram(4, x)) / choice_law(choice, histogram(4, y)))
        worst = max(worst, ratios.max() - ratios.min(), np.abs(ratios).max())
    return worst - promised


@pytest.mark.slow
def test_choices_stay_within_their_range() -> None:
    for choice in choices(F(1, 3)):
        promised = float(loss_of(choice).bounded_range[0])
        assert range_excess(choice, promised) < 1e-12, choice
        # the checker sees a mechanism that promises half
        assert range_excess(choice, promised / 2.01) > 0, choice


def test_stability_is_brute_force_and_moves_by_one() -> None:
    for a, b in QUANTILES:
        for rows in (0, 1, 2, 3, 4, 5):
            for values in data_sets(4, rows):
                around = ends(histogram(4, values), a, b)
                assert [stability_distance(around, eta) for eta in range(5)] == [
                    naive_gamma(4, values, a, b, eta) for eta in range(5)
                ]
    worst = 0
    for x, y in pairs(5, (4, 5), "replaced"):
        for eta in range(4):
            (first, value), (second, other) = reads(5, x, 1, 2, eta), reads(5, y, 1, 2, eta)
            assert abs(first - second) <= 1
            assert abs(value - other) <= eta or first == second == 0
        worst = max(worst, abs(slide_distance(5, x, 1) - slide_distance(5, y, 1)))
    assert worst == 2  # the lectures' distance moves further than its noise is for


def proposal(epsilon: float, delta: float, eta: int, a: int = 1, b: int = 2) -> ProposeTestRelease:
    spread = F(1 / epsilon)
    noise = F(eta / epsilon)
    refinement = max(0, math.ceil(math.log2(1024 / noise))) if eta else 0
    return ProposeTestRelease(
        REPLACED, a, b, eta, spread, proposal_threshold(1 / spread, F(delta)), noise, refinement
    )


def test_propose_test_release_keeps_its_promise() -> None:
    for a, b in ((1, 2), (1, 4)):
        for epsilon, delta, eta in ((1.0, 1e-2, 1), (0.5, 0.05, 1), (2.0, 1e-3, 2), (1.0, 0.05, 0)):
            spec = proposal(epsilon, delta, eta, a, b)
            loss = loss_of(spec)
            assert loss.delta <= F(delta)
            found = {
                (reads(4, x, a, b, eta), reads(4, y, a, b, eta))
                for x, y in pairs(4, (3, 4), "replaced")
            }
            worst = max(release_excess(spec, float(loss.epsilon), pair, 4) for pair in found)
            assert worst <= float(loss.delta) * (1 + 1e-9)


def test_the_lectures_propose_test_release_fails_the_same_test() -> None:
    delta = 1e-3
    # on whole numbers, as strict as the slide's 1 + ln(2/δ)/ε
    threshold = math.ceil(1 + math.log(2 / delta))
    spec = ProposeTestRelease(REPLACED, 1, 2, 1, F(1), threshold, F(1), 10)
    found = {
        (
            (slide_distance(4, x, 1), reads(4, x, 1, 2, 1)[1]),
            (slide_distance(4, y, 1), reads(4, y, 1, 2, 1)[1]),
        )
        for x, y in pairs(4, (9,), "replaced")
    }
    assert max(release_excess(spec, 2.0, pair, 4) for pair in found) > 5 * delta
    corrected = {
        (reads(5, x, 1, 2, 1), reads(5, y, 1, 2, 1)) for x, y in pairs(5, (5,), "replaced")
    }
    assert max(release_excess(spec, 2.0, pair, 5) for pair in corrected) <= delta


def test_least_threshold_is_least_and_beats_the_continuous_one() -> None:
    for epsilon, delta in ((F(1), F(1, 10**6)), (F(1, 10), F(1, 10**3)), (F(3), F(1, 100))):
        t = proposal_threshold(epsilon, delta)
        assert geometric_tail(epsilon, t) <= delta < geometric_tail(epsilon, t - 1)
        # passing from T > ln(1/2δ)/ε on needs γ + Lap; whole numbers need no more
        assert t <= math.log(1 / (2 * delta)) / float(epsilon) + 1


@pytest.mark.slow
def test_smooth_sensitivity_is_brute_force() -> None:
    """Against reference.md B8 for all data sets, and against the definition:
    over all data sets and all their neighbours.
    """
    for beta in (F(1, 10), F(7, 10)):
        for rows, cells in ((0, 3), (1, 6), (2, 6), (3, 6), (4, 6), (5, 5)):
            for values in data_sets(cells, rows):
                for a, b in QUANTILES:
                    smooth = smooth_sensitivity(ends(histogram(cells, values), a, b), beta)
                    assert smooth.width * math.exp(-beta * smooth.steps) == pytest.approx(
                        naive_smooth(cells, values, a, b, float(beta)), rel=1e-12
                    )
        for rows, cells, (a, b) in ((3, 5, (1, 2)), (4, 4, (1, 2)), (4, 4, (1, 4)), (5, 3, (1, 2))):
            sets = data_sets(cells, rows)
            value = {x: ends(histogram(cells, x), a, b).value for x in sets}
            local = {
                x: max(abs(value[x] - value[y]) for y in neighbors(cells, x, "replaced"))
                for x in sets
            }
            histograms = {x: np.bincount(x, minlength=cells) for x in sets}
            for x in sets:
                true = max(
                    local[y]
                    * math.exp(-beta * int(np.abs(histograms[x] - histograms[y]).sum() // 2))
                    for y in sets
                )
                smooth = smooth_sensitivity(ends(histogram(cells, x), a, b), beta)
                assert smooth.width * math.exp(-beta * smooth.steps) == pytest.approx(
                    true, rel=1e-12
                )


@pytest.mark.slow
def test_smooth_sensitivity_of_many_values_and_cells() -> None:
    rng = np.random.default_rng(5)
    for trial in range(60):
        rows, cells = int(rng.integers(1, 200)), int(rng.choice([40, 3000, 2**32 - 1]))
        values = tuple(
            int(v)
            for v in (
                rng.integers(0, cells, rows)
                if trial % 2
                else np.clip(rng.normal(cells / 2, cells / 50, rows), 0, cells - 1)
            )
        )
        beta, (a, b) = F(float(10 ** rng.uniform(-4, 1))), QUANTILES[trial % 5]
        smooth = smooth_sensitivity(ends(histogram(cells, values), a, b), beta)
        width, steps = (
            math.log(naive := naive_smooth(cells, values, a, b, float(beta))),
            float(beta) * smooth.steps,
        )
        assert naive > 0
        assert math.log(smooth.width) - steps == pytest.approx(width, abs=1e-11)


def noise(law: str, shape: object, charged: str, beta: float, multiplier: float) -> SmoothNoise:
    return SmoothNoise(
        REPLACED,
        1,
        2,
        law,
        F(shape),
        charged,
        F(beta),
        F(multiplier),
    )  # type: ignore[arg-type]


LAWS = [
    noise("gaussian", 1, "approx", 0.02, 8.0),
    noise("gaussian", 2, "approx", 0.1, 3.0),
    noise("laplace", 1, "approx", 0.06, 2.0),
    noise("laplace", 3, "approx", 0.3, 0.8),
    noise("cauchy", 2, "pure", 0.5, 2.0),
    noise("cauchy", 2, "pure", 0.1, 1.2),
    noise("cauchy", 4, "pure", 0.2, 3.0),
    noise("student", 1, "pure", 0.4, 2.0),
    noise("student", 2, "pure", 0.3, 2.0),
    noise("student", 5, "pure", 0.1, 3.0),
    noise("lln", F(1, 2), "gdp", 0.2, 4.0),
    noise("lln", F(1, 2), "zcdp", 0.2, 4.0),
    noise("lln", 1, "gdp", 0.3, 9.0),
]


def smooth_excess(
    spec: SmoothNoise,
    first: tuple[float, float],
    second: tuple[float, float],
    promise: dict[str, float],
) -> float:
    """By how much two (center, smooth sensitivity) are told apart beyond a promise (ε and δ, μ, or
    ρ).
    """
    law, shape = spec.law, float(spec.shape)
    one, two = ((center, scale * float(spec.multiplier)) for center, scale in (first, second))
    if "rho" in promise:
        return max(
            renyi(law, shape, order, one, two) - order * promise["rho"] for order in (1.5, 2.0, 4.0)
        )
    if "mu" in promise:
        return max(
            hockey_stick(law, shape, e, one, two) - gdp_delta(F(promise["mu"]), F(e))
            for e in (0.0, 0.25, 0.5, 1.0, 2.0)
        )
    if promise["delta"]:
        return hockey_stick(law, shape, promise["epsilon"], one, two) - promise["delta"]
    return log_ratio(law, shape, one, two) - promise["epsilon"]


def promise_of(spec: SmoothNoise) -> dict[str, float]:
    loss = loss_of(spec)
    if loss.rho:
        return {"rho": float(loss.rho)}
    return (
        {"mu": math.sqrt(loss.mu_squared)}
        if loss.mu_squared
        else {"epsilon": float(loss.epsilon or 0), "delta": float(loss.delta)}
    )


def worst_cases(spec: SmoothNoise) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """Every pair that a smooth sensitivity allows, on a grid of shifts and stretches."""
    beta = float(spec.beta)
    return [
        ((0.0, 1.0), (share * min(1.0, math.exp(stretch)), math.exp(stretch)))
        for share in (-1.0, -0.5, 0.0, 1.0)
        for stretch in (-beta, -beta / 2, 0.0, beta / 2, beta)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", LAWS, ids=lambda spec: f"{spec.law}-{spec.shape}-{spec.charged}-{float(spec.beta)}"
)
def test_smooth_laws_keep_their_promise(spec: SmoothNoise) -> None:
    promise = promise_of(spec)
    worst = max(smooth_excess(spec, *case, promise) for case in worst_cases(spec))
    worst = max(
        worst, max(smooth_excess(spec, *pair, promise) for pair in smooth_pairs(spec, 4, (1, 2, 3)))
    )
    assert worst < 1e-9 * max(promise.values())
    weak = SmoothNoise(
        REPLACED, 1, 2, spec.law, spec.shape, spec.charged, spec.beta, spec.multiplier / 20
    )
    # a twentieth of the noise is found out
    assert max(smooth_excess(weak, *case, promise) for case in worst_cases(spec)) > 0


def test_the_lectures_smooth_median_fails_the_same_test() -> None:
    for epsilon, delta in ((1.0, 1e-6), (0.5, 1e-3)):
        slide = noise(
            "gaussian", epsilon, "approx", epsilon / (4 * (1 + math.log(2 / delta))), 2 / epsilon
        )
        promise = {"epsilon": epsilon, "delta": delta}
        assert max(smooth_excess(slide, *case, promise) for case in worst_cases(slide)) > delta
        # on real neighbours, too
        assert (
            max(smooth_excess(slide, *pair, promise) for pair in smooth_pairs(slide, 4, (1, 2, 3)))
            > delta
        )
        assert loss_of(slide).delta > F(delta)  # and the accountant does not believe it
        proven = noise(
            "gaussian",
            epsilon,
            "approx",
            epsilon / (4 * (1 + 2 * math.log(2 / delta))),
            5 * math.sqrt(2 * math.log(2 / delta)) / epsilon,
        )
        assert max(smooth_excess(proven, *case, promise) for case in worst_cases(proven)) <= 0


def test_the_constants_of_the_literature_are_covered() -> None:
    """reference.md B7: what its table allows costs no more by the theorems here."""
    for epsilon, delta in ((0.1, 1e-6), (0.5, 1e-3), (0.9, 1e-2), (0.99, 1e-9)):
        tail = math.log(2 / delta)
        gaussian = noise(
            "gaussian",
            epsilon,
            "approx",
            epsilon / (4 * (1 + 2 * tail)),
            5 * math.sqrt(2 * tail) / epsilon,
        )
        laplace = noise("laplace", epsilon, "approx", epsilon / (2 * tail), 2 / epsilon)
        assert loss_of(gaussian).delta <= F(delta)
        assert loss_of(laplace).delta <= F(delta)
        for power in (2, 4):
            assert loss_of(
                noise(
                    "cauchy", power, "pure", epsilon / (2 * (power + 1)), 2 * (power + 1) / epsilon
                )
            ).epsilon < F(epsilon)
        for degrees in (1, 3, 5):
            assert loss_of(
                noise(
                    "student",
                    degrees,
                    "pure",
                    epsilon / (2 * (degrees + 1)),
                    (degrees + 1) / (math.sqrt(degrees) * epsilon),
                )
            ).epsilon < F(epsilon)


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """The p-value of counts against probabilities."""
    expected = expected / expected.sum() * observed.sum()
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(expected) - 1))


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [LAWS[0], LAWS[2], LAWS[4], LAWS[6], LAWS[8], LAWS[9], LAWS[10]],
    ids=lambda spec: f"{spec.law}-{spec.shape}",
)
def test_smooth_noise_follows_its_law(spec: SmoothNoise) -> None:
    values, source = (20,) * 6 + (60,) * 5, SeededSource(f"smooth {spec.law} {spec.shape}")
    center, scale = smooth_read(spec, 101, values)
    draws = (
        np.array([apply(spec, histogram(101, values), source).integers[0] for _ in range(4000)])
        / 1024
        - center
    )
    assert abs((draws > 0).mean() - 0.5) < 6.2 * 0.5 / math.sqrt(4000)
    tail, levels = upper_tail(spec.law, float(spec.shape)), np.arange(1, 20) / 20
    for factor, right in ((1.0, True), (1.3, False), (1 / 1.3, False)):
        size = np.abs(draws) / (scale * float(spec.multiplier) * factor)
        counts, _ = np.histogram(tail(size), bins=[0, *levels, 1])
        assert (chi_square(counts, np.ones(20)) > ALPHA) == right


@pytest.mark.slow
def test_choices_follow_their_law() -> None:
    values = (2, 3, 3, 5, 9)
    for choice in (
        QuantileChoice(REPLACED, 1, 2, F(1, 4), "exponential"),
        QuantileChoice(REPLACED, 1, 4, F(1, 2), "inverse"),
    ):
        law, source = (
            choice_law(choice, histogram(12, values)),
            SeededSource(f"choice {choice.rule}"),
        )
        counts = np.bincount(
            [apply(choice, histogram(12, values), source).integers[0] for _ in range(3000)],
            minlength=12,
        )
        assert chi_square(counts, law) > ALPHA
        assert chi_square(counts, law**1.5) < ALPHA


@pytest.mark.slow
def test_releases_follow_their_law() -> None:
    spec, values, source = proposal(0.5, 0.05, 3), (3, 4, 5, 5, 6, 7, 7, 8), SeededSource("ptr")
    distance, quantile = reads(20, values, 1, 2, 3)
    bottom, law = release_law(spec, distance, quantile, 20)
    answers = [apply(spec, histogram(20, values), source).integers for _ in range(3000)]
    passed = np.array([value for done, value in answers if done])
    assert {value for done, value in answers if not done} == {0}
    assert 0.1 < bottom < 0.9
    assert abs(1 - len(passed) / 3000 - bottom) < 6.2 * math.sqrt(bottom * (1 - bottom) / 3000)
    where = (np.cumsum(law) / law.sum())[
        passed + math.ceil(BEYOND * float(spec.spread)) * (1 << spec.refinement)
    ]
    assert chi_square(np.histogram(where, bins=np.arange(21) / 20)[0], np.ones(20)) > ALPHA
    assert chi_square(np.histogram(where**1.4, bins=np.arange(21) / 20)[0], np.ones(20)) < ALPHA


def test_a_proposal_of_the_whole_grid_always_passes() -> None:
    spec, source = proposal(1.0, 1e-6, 9), SeededSource("whole")
    assert all(
        apply(spec, histogram(10, values), source).integers[0] == 1
        for values in ((), (3,), (0, 9))
        for _ in range(20)
    )


def test_every_tally_gets_an_answer() -> None:
    source = SeededSource("total")
    specs = [*choices(F(1, 2))[-6:], *LAWS, proposal(1.0, 1e-3, 1), proposal(1.0, 1e-3, 0)]
    for cells, values in (
        (2, ()),
        (2, (0,)),
        (2, (1,)),
        (3, (1, 1)),
        (65535, (7,) * 1000),
        (65535, (0,) * 5),
        (65535, (65534,) * 5),
        (2**32 - 1, (0, 2**32 - 2)),
        (2**32 - 1, (2**31,) * 3),
    ):
        for spec in specs:
            answer = apply(spec, histogram(cells, values), source)
            assert all(isinstance(value, int) for value in answer.integers)
            assert not answer.found


class Zeros:
    """A source whose first words are 0: the far tail of every law."""

    secure = False

    def __init__(self, words: int) -> None:
        self._zeros, self._rest = words, SeededSource(words)

    def uint64(self, count: int) -> np.ndarray:
        self._zeros -= 1
        return np.zeros(count, dtype=np.uint64) if self._zeros >= 0 else self._rest.uint64(count)

    def bits(self, count: int) -> int:
        return take_bits(self, count)


def test_the_far_tail_is_refined_until_it_is_decided() -> None:
    for spec in LAWS:
        center = smooth_read(spec, 101, (20,) * 11)[0]
        steps = [
            abs(apply(spec, histogram(101, (20,) * 11), Zeros(words)).integers[0] - 1024 * center)
            for words in (2, 3, 4, 9)
        ]
        assert all(isinstance(size, (int, float)) and size > 0 for size in steps)
        if spec.law in ("gaussian", "laplace") or (spec.law, spec.shape) == ("cauchy", 2):
            assert steps == sorted(steps)  # more zero bits of one uniform number are a larger draw


def test_noise_far_below_a_cell_is_exact_too() -> None:
    spec = noise("cauchy", 2, "pure", 5.0, 1.0)
    values = (7,) * 20_001  # S = e^(−50 000): every answer is the value itself
    assert [
        apply(spec, histogram(65535, values), SeededSource(seed)).integers for seed in range(5)
    ] == [(7 << 10,)] * 5


def test_specs_round_trip_and_refuse_what_has_no_theorem() -> None:
    for spec in (*choices(F(1, 3)), *LAWS, proposal(1.0, 1e-3, 1), proposal(1.0, 1e-3, 0)):
        assert mechanism_from_dict(spec.to_dict()) == spec
        assert price_of((spec,), box=price_box(spec)).delta == loss_of(spec).delta
    private = Rows(1, "changed")
    bad = [
        lambda: QuantileChoice(private, 1, 2, F(1), "inverse"),
        lambda: QuantileChoice(REPLACED, 2, 4, F(1), "exponential"),
        lambda: QuantileChoice(REPLACED, 3, 2, F(1), "exponential"),
        lambda: QuantileChoice(REPLACED, 1, 2, F(0), "exponential"),
        lambda: QuantileChoice(REPLACED, 1, 2, F(1), "other"),
        lambda: noise("student", 10, "pure", 1, 1),
        lambda: noise("student", F(3, 2), "pure", 1, 1),
        lambda: noise("cauchy", 3, "pure", 1, 1),
        lambda: noise("gaussian", 1, "pure", 1, 1),
        lambda: noise("lln", 1, "approx", 1, 1),
        lambda: noise("cauchy", 2, "pure", 2**-50, 1),
        lambda: SmoothNoise(private, 1, 2, "cauchy", F(2), "pure", F(1), F(1)),
        lambda: ProposeTestRelease(private, 1, 2, 1, F(1), 5, F(1), 10),
        lambda: ProposeTestRelease(REPLACED, 1, 2, 0, F(1), 5, F(1), 10),
        lambda: ProposeTestRelease(REPLACED, 1, 2, -1, F(1), 5, F(1), 10),
        lambda: ProposeTestRelease(REPLACED, 1, 2, 1, F(1), 0, F(1), 10),
        lambda: loss_of(noise("laplace", 1, "approx", 0.9, 2.0)),
        lambda: loss_of(noise("gaussian", 1, "approx", 0.99, 2.0)),
    ]
    for make in bad:
        with pytest.raises((DiscreetError, NoTheorem)):
            make()
    assert not within_spend(noise("cauchy", 2, "pure", 0.5, 2.0), PureDP(1.0))
    assert within_spend(noise("cauchy", 2, "pure", 0.5, 2.01), PureDP(1.0))


def price_box(spec: object) -> object:
    """A box that can hold a mechanism: zCDP where it is known by that alone."""
    from discreet.trusted.losses.pricing import Price

    return (
        Price(rho=F(100), delta=F(1))
        if getattr(spec, "charged", "") == "zcdp"
        else Price(mu_squared=F(100), delta=F(1))
    )
