"""Selection and thresholding: exact output laws for all neighbours, read from the code that runs,
against what is charged; with controls that must be caught.
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
import discreet.trusted.extensions.selection as samplers
from discreet.sensitivity import LInf
from discreet.specs.mechanisms.selection import (
    AboveThreshold,
    ExponentialChoice,
    NoisyMax,
    PermuteAndFlip,
    TopChoices,
)
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.source import take_bits

TOP = 1 << 64
ONE_WAY, BOTH_WAYS = LInf(Fraction(1), True), LInf(Fraction(1), False)
SENSITIVITIES = pytest.mark.parametrize(
    "sensitivity", [ONE_WAY, BOTH_WAYS], ids=["one way", "both ways"]
)
VECTORS = list(itertools.product(range(4), repeat=3))


class Script:
    """A source that gives the words it is told."""

    secure = False

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def uint64(self, count: int) -> np.ndarray:
        taken, self.words = self.words[:count], self.words[count:]
        return np.array(taken, dtype=np.uint64)

    def bits(self, count: int) -> int:
        return take_bits(self, count)


def neighbors(scores, sensitivity):
    """All score vectors that one unit can turn `scores` into, both directions."""
    steps = [
        itertools.product((0, 1), repeat=len(scores)),
        itertools.product((0, -1), repeat=len(scores)),
    ]
    if not sensitivity.one_way:
        steps = [itertools.product((-1, 0, 1), repeat=len(scores))]
    return {
        tuple(score + move for score, move in zip(scores, moves, strict=True))
        for moves in itertools.chain(*steps)
    }


def worst(law, sensitivity, vectors=VECTORS):
    """(largest |log-ratio|, largest range of the log-ratios) over all neighbours and outcomes."""
    known = {}

    def of(scores):
        if scores not in known:
            known[scores] = law(scores)
        return known[scores]

    largest = spread = 0.0
    for scores in vectors:
        for other in neighbors(scores, sensitivity):
            first, second = of(scores), of(other)
            assert first.keys() == second.keys()
            ratios = [math.log(first[outcome] / second[outcome]) for outcome in first]
            largest, spread = (
                max(largest, *map(abs, ratios)),
                max(spread, max(ratios) - min(ratios)),
            )
    return largest, spread


# -- laws, read from the samplers ------------------------------------------------------------------


def edge(falls):
    """The least word for which a falling condition fails: 64 steps of bisection."""
    low, high = 0, TOP
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falls(middle) else (low, middle)
    return low


def exponential_law(mechanism, scores):
    # a common shift changes no gap
    return _exponential_law(mechanism, tuple(score - max(scores) for score in scores))


@cache
def _exponential_law(mechanism, scores):
    """Probabilities from the words at which the sampler's answer changes; exact to 2**-64."""
    rest = [0] * 20
    edges = [
        edge(
            lambda word, place=place: (
                samplers.exponential_choice(mechanism, list(scores), Script(word, *rest))[0]
                <= place
            )
        )
        for place in range(len(scores))
    ]
    return {
        place: Fraction(high - low, TOP)
        for place, (low, high) in enumerate(itertools.pairwise([0, *edges]))
    }


@cache
def heads_of(gap, rate):
    """The probability of a coin, from the word at which it turns."""
    return Fraction(
        edge(
            lambda word: bool(
                samplers.bernoulli_exp(np.array([gap]), rate, Script(word, *[TOP - 1] * 9))[0]
            )
        ),
        TOP,
    )


def flip_law(mechanism, scores):
    return _flip_law(mechanism, tuple(score - max(scores) for score in scores))


@cache
def _flip_law(mechanism, scores):
    """Every pattern of coins, with its probability from the words at which each coin turns, and
    every way to pick one of the heads.
    """
    heads = [heads_of(gap, mechanism.rate) for gap in samplers._gaps(list(scores)).tolist()]
    law = dict.fromkeys(range(len(scores)), Fraction(0))
    for pattern in itertools.product((True, False), repeat=len(scores)):
        chance = math.prod(
            (p if head else 1 - p for p, head in zip(heads, pattern, strict=True)),
            start=Fraction(1),
        )
        if not chance:
            continue
        words = [0 if head else TOP - 1 for head in pattern]
        count = sum(pattern)
        picks = [
            samplers.permute_and_flip(
                mechanism,
                list(scores),
                Script(*words, pick << (64 - max((count - 1).bit_length(), 1))),
            )[0]
            for pick in range(count)
        ]
        for pick in picks:
            law[pick] += chance / count
    return law


def geometric(spread, reach=400):
    """{k: P(k)} of two-sided geometric noise, the tails left out."""
    ratio = math.exp(-1 / float(spread))
    ks = range(-reach, reach + 1)
    return {k: (1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in ks}


def survival(spread, k):
    """P(N ≥ k)."""
    ratio = math.exp(-1 / float(spread))
    return ratio**k / (1 + ratio) if k >= 0 else 1 - ratio ** (1 - k) / (1 + ratio)


def noisy_max_law(mechanism, scores):
    law = {}
    for place, score in enumerate(scores):
        total = 0.0
        for k, chance in geometric(mechanism.spread, 60).items():
            for other, rival in enumerate(scores):
                if other != place:
                    chance *= 1 - survival(
                        mechanism.spread, score + k - rival + (0 if other < place else 1)
                    )
            total += chance
        law[place] = total
    return law


def threshold_law(mechanism, scores, *, query_spread=None):
    """The probability of every sequence of answers:
    sums over the threshold's noise, run by run where it is renewed.
    """
    spread = mechanism.query_spread if query_spread is None else query_spread
    noise = geometric(mechanism.threshold_spread, 60)
    states = {((), mechanism.positives): dict(noise)}
    law = {}
    for score in scores:
        following = {}
        for (answers, left), weights in states.items():
            yes = {
                r: weight * survival(spread, mechanism.threshold + r - score)
                for r, weight in weights.items()
            }
            following[(*answers, 0), left] = {r: weight - yes[r] for r, weight in weights.items()}
            total = sum(yes.values())
            if left == 1:
                law[(*answers, 1)] = total
            else:
                following[(*answers, 1), left - 1] = (
                    {r: total * chance for r, chance in noise.items()} if mechanism.renewed else yes
                )
        states = following
    return law | {answers: sum(weights.values()) for (answers, _), weights in states.items()}


# -- the theorems ----------------------------------------------------------------------------------


@pytest.mark.slow
@SENSITIVITIES
def test_exponential_choice_keeps_its_bounded_range(sensitivity):
    mechanism = ExponentialChoice(sensitivity, Fraction(3, 5))
    claimed = float(loss_of(mechanism).bounded_range[0])
    largest, spread = worst(lambda scores: exponential_law(mechanism, scores), sensitivity)
    assert spread <= claimed * (1 + 1e-12)
    assert spread >= claimed * (1 - 1e-12)  # attained
    assert largest <= guarantee_of(mechanism).epsilon
    assert exponential_law(mechanism, (0, 3, 1))[1] == pytest.approx(
        math.exp(1.8) / (1 + math.exp(1.8) + math.exp(0.6)), abs=1e-15
    )


@pytest.mark.slow
def test_an_exponential_choice_without_the_factor_two_is_caught():
    """The rate that scores moving one way allow, used where they move both ways."""
    priced = ExponentialChoice(ONE_WAY, Fraction(3, 5))
    largest, spread = worst(lambda scores: exponential_law(priced, scores), BOTH_WAYS)
    assert spread > 1.9 * float(loss_of(priced).bounded_range[0])
    assert largest > 1.3 * guarantee_of(priced).epsilon


@SENSITIVITIES
def test_permute_and_flip_keeps_epsilon(sensitivity):
    mechanism = PermuteAndFlip(sensitivity, Fraction(3, 5))
    epsilon = float(loss_of(mechanism).pure[0])
    largest, _ = worst(lambda scores: flip_law(mechanism, scores), sensitivity)
    assert 0.9 * epsilon < largest <= epsilon * (1 + 1e-12)
    assert largest <= guarantee_of(mechanism).epsilon


def test_permute_and_flip_without_the_factor_two_is_caught():
    mechanism = PermuteAndFlip(ONE_WAY, Fraction(3, 5))
    assert (
        worst(lambda scores: flip_law(mechanism, scores), BOTH_WAYS)[0]
        > 1.5 * guarantee_of(mechanism).epsilon
    )


def test_flipping_all_coins_is_permuting_and_flipping():
    """The law of the sampler against that of a random order in which the first head is taken,
    with all permutations.
    """
    mechanism, scores = PermuteAndFlip(ONE_WAY, Fraction(2, 5)), (5, 3, 4, 1)
    heads = [math.exp(-0.4 * (5 - score)) for score in scores]
    law = dict.fromkeys(range(4), 0.0)
    for order in itertools.permutations(range(4)):
        left = 1 / 24
        for place in order:
            law[place] += left * heads[place]
            left *= 1 - heads[place]
    assert [float(value) for value in flip_law(mechanism, scores).values()] == pytest.approx(
        list(law.values()), abs=1e-15
    )


@SENSITIVITIES
def test_noisy_max_keeps_epsilon_with_ties(sensitivity):
    mechanism = NoisyMax(sensitivity, Fraction(3, 2))
    epsilon = float(loss_of(mechanism).pure[0])
    largest, _ = worst(lambda scores: noisy_max_law(mechanism, scores), sensitivity)
    assert 0.85 * epsilon < largest <= epsilon * (1 + 1e-9)
    if sensitivity.one_way:
        # the control
        assert worst(lambda scores: noisy_max_law(mechanism, scores), BOTH_WAYS)[0] > 1.5 * epsilon


def test_noisy_max_takes_the_first_of_equal_sums(monkeypatch):
    mechanism = NoisyMax(ONE_WAY, Fraction(1))
    for noise in itertools.product(range(-2, 3), repeat=3):
        monkeypatch.setattr(
            samplers, "draw", lambda law, size, source, noise=noise: np.array(noise)
        )
        for scores in itertools.product(range(2), repeat=3):
            sums = [score + step for score, step in zip(scores, noise, strict=True)]
            assert samplers.noisy_max(mechanism, list(scores), SeededSource(0)) == (
                min(place for place in range(3) if sums[place] == max(sums)),
            )


@pytest.mark.few(2)
@SENSITIVITIES
@pytest.mark.parametrize("step", ["exponential", "permute and flip"])
def test_top_choices_keep_their_parts(sensitivity, step):
    """Two of three in order: each step, given the first choice, keeps its own part;
    so the pairs keep the sum of both.
    """
    mechanism = TopChoices(sensitivity, Fraction(3, 5), 2, step)
    loss = loss_of(mechanism)
    parts = loss.bounded_range or loss.pure
    one, law_of_one = (
        (ExponentialChoice, exponential_law)
        if step == "exponential"
        else (PermuteAndFlip, flip_law)
    )
    single = one(sensitivity, mechanism.rate)

    def law(scores):
        first = law_of_one(single, scores)
        pairs = {}
        for place, chance in first.items():
            left = [other for other in range(3) if other != place]
            for second, given in law_of_one(single, tuple(scores[other] for other in left)).items():
                pairs[place, left[second]] = chance * given
        return pairs

    vectors = [scores for scores in itertools.product(range(3), repeat=3) if min(scores) == 0]
    largest, _ = worst(law, sensitivity, vectors)
    assert parts == (mechanism.rate * sensitivity.span,) * 2
    # one part would not be enough
    assert float(parts[0]) < largest <= float(sum(parts)) * (1 + 1e-12)
    assert all(
        len(set(samplers.top_choices(mechanism, [4, 4, 4], SeededSource(seed)))) == 2
        for seed in range(20)
    )


THRESHOLDS = {
    "one positive": (1, False, Fraction(2), Fraction(2)),
    "two, renewed": (2, True, Fraction(2), Fraction(3)),
    "two from one threshold": (2, False, Fraction(2), Fraction(4)),
}


@pytest.mark.few(2)
@SENSITIVITIES
@pytest.mark.parametrize("design", THRESHOLDS)
def test_above_threshold_keeps_epsilon_for_all_answers(sensitivity, design):
    positives, renewed, first, second = THRESHOLDS[design]
    mechanism = AboveThreshold(sensitivity, 2, positives, first, second, renewed)
    epsilon = float(sum(loss_of(mechanism).pure))
    laws = {
        scores: threshold_law(mechanism, scores)
        for scores in itertools.product(range(-1, 6), repeat=3)
    }
    assert all(abs(sum(law.values()) - 1) < 1e-9 for law in laws.values())
    largest, _ = worst(
        laws.__getitem__,
        sensitivity,
        [scores for scores in laws if all(0 <= score <= 4 for score in scores)],
    )
    assert 0.3 * epsilon < largest <= epsilon * (1 + 1e-9)
    assert largest <= guarantee_of(mechanism).epsilon * (1 + 1e-9)


def log_chance(mechanism, scores, answers, reach=2000):
    """ln P(answers) of a run that draws its threshold once."""
    total = -math.inf
    ratio = math.exp(-1 / float(mechanism.threshold_spread))
    for r in range(-reach, reach + 1):
        term = math.log((1 - ratio) / (1 + ratio)) + abs(r) * math.log(ratio)
        for score, answer in zip(scores, answers, strict=True):
            above = survival(mechanism.query_spread, mechanism.threshold + r - score)
            term += math.log(above) if answer else math.log1p(-above) if above < 1 else -math.inf
        total = np.logaddexp(total, term)
    return float(total)


def long_run_ratio(mechanism, *, zeros, hits, both_ways):
    """|log-ratio| of many zeros and then ones, where a neighbour raises what was below,
    and lowers the rest or leaves it.
    """
    answers = (0,) * zeros + (1,) * hits
    scores, other = (
        (40,) * zeros + (-40,) * hits,
        (41,) * zeros + (-41 if both_ways else -40,) * hits,
    )
    return abs(
        log_chance(mechanism, scores, answers, 300) - log_chance(mechanism, other, answers, 300)
    )


@pytest.mark.parametrize("positives", [1, 2])
def test_the_loss_of_above_threshold_is_needed(positives):
    """After many zeros, which show that the threshold is high, the ratios come close to what is
    charged; and beyond any smaller price.
    """
    both = AboveThreshold(BOTH_WAYS, 0, positives, Fraction(4), Fraction(4), False)
    one = AboveThreshold(ONE_WAY, 0, positives, Fraction(4), Fraction(4), False)
    charged = {mechanism: float(loss_of(mechanism).pure[0]) for mechanism in (one, both)}
    assert (
        0.97 * charged[both]
        < long_run_ratio(both, zeros=30, hits=positives, both_ways=True)
        <= charged[both] * (1 + 1e-9)
    )
    assert (
        0.97 * charged[one]
        < long_run_ratio(one, zeros=30, hits=positives, both_ways=False)
        <= charged[one] * (1 + 1e-9)
    )
    # the control: half the noise where scores move both ways
    assert long_run_ratio(one, zeros=30, hits=positives, both_ways=True) > 1.2 * charged[one]


def test_above_threshold_without_noise_on_the_scores_is_caught():
    mechanism = AboveThreshold(ONE_WAY, 2, 1, Fraction(2), Fraction(2), False)
    law = {
        scores: threshold_law(mechanism, scores, query_spread=Fraction(1, 100))
        for scores in itertools.product(range(-1, 6), repeat=2)
    }
    pairs = [
        (law[scores], law[other])
        for scores in law
        if all(0 <= s <= 4 for s in scores)
        for other in neighbors(scores, ONE_WAY)
    ]
    assert (
        max(
            first[outcome] / max(second[outcome], 1e-300)
            for first, second in pairs
            for outcome in first
        )
        > 1e6
    )


def test_above_threshold_that_pays_for_one_positive_and_gives_two_is_caught():
    """The noisy threshold is kept after the first one and a second one is given,
    as if the price were that of a single one.
    """
    paid = AboveThreshold(ONE_WAY, 0, 1, Fraction(4), Fraction(4), False)
    assert long_run_ratio(paid, zeros=30, hits=1, both_ways=False) <= float(
        loss_of(paid).pure[0]
    ) * (1 + 1e-9)
    assert long_run_ratio(paid, zeros=30, hits=2, both_ways=False) > 1.2 * float(
        loss_of(paid).pure[0]
    )


@pytest.mark.parametrize("design", THRESHOLDS)
def test_the_sampler_compares_stops_and_renews_as_its_law_says(monkeypatch, design):
    positives, renewed, first, second = THRESHOLDS[design]
    mechanism = AboveThreshold(BOTH_WAYS, 1, positives, first, second, renewed)
    for noise in itertools.product((-1, 0, 1), repeat=6):
        queue = list(noise)
        monkeypatch.setattr(
            samplers, "draw", lambda law, size, source, queue=queue: np.array([queue.pop(0)])
        )
        found = samplers.above_threshold(mechanism, [0, 2, 1], SeededSource(0))
        left, bound, answers, words = positives, 1 + noise[0], [], list(noise[1:])
        for score in (0, 2, 1):
            if not left:
                break
            above = score + words.pop(0) >= bound
            answers.append(int(above))
            left -= above
            if above and left and renewed:
                bound = 1 + words.pop(0)
        assert found == tuple(answers)


# -- the samplers follow the laws ------------------------------------------------------------------

SAMPLED = {
    "exponential": (ExponentialChoice(ONE_WAY, Fraction(1, 2)), (3, 5, 4, 0), exponential_law),
    "permute and flip": (PermuteAndFlip(ONE_WAY, Fraction(1, 2)), (3, 5, 4, 0), flip_law),
    "noisy max": (NoisyMax(ONE_WAY, Fraction(2)), (3, 5, 4, 4), noisy_max_law),
    "above threshold": (
        AboveThreshold(ONE_WAY, 3, 2, Fraction(1), Fraction(2), True),
        (3, 1, 4),
        threshold_law,
    ),
    "above one threshold": (
        AboveThreshold(ONE_WAY, 3, 2, Fraction(1), Fraction(2), False),
        (3, 1, 4),
        threshold_law,
    ),
}


def too_far(seen, law, draws):
    """Whether counts differ from a law by more than a chi-square limit at 1e-9."""
    statistic = sum(
        (seen.get(outcome, 0) - draws * float(p)) ** 2 / (draws * float(p))
        for outcome, p in law.items()
    )
    return statistic > stats.chi2.isf(1e-9, len(law) - 1)


@pytest.mark.few(2)
@pytest.mark.parametrize("name", SAMPLED)
def test_samplers_follow_their_laws(name):
    mechanism, scores, law = SAMPLED[name]
    source, draws, seen = SeededSource(f"selection {name}"), 2500, {}
    for _ in range(draws):
        answer = apply(mechanism, list(scores), source).integers
        outcome = answer if isinstance(mechanism, AboveThreshold) else answer[0]
        seen[outcome] = seen.get(outcome, 0) + 1
    assert not too_far(seen, law(mechanism, scores), draws)
    wrong = tuple(score + (place == 1) for place, score in enumerate(scores))
    assert too_far(seen, law(mechanism, wrong), draws)


@pytest.mark.slow
def test_a_watch_has_the_law_of_its_mechanism():
    """Many watches on one data set, each asked the same three filters,
    against the exact law of the answers.
    """
    data = dp.from_arrays(
        {"g": ["a"] * 3 + ["b"] + ["c"] * 4},
        schema={"g": dp.Category(["a", "b", "c"])},
        neighbors=dp.AddRemove(),
    )
    session = seeded_session(data, dp.PureDP(10**6), "watch")
    seen, draws = {}, 500
    for _ in range(draws):
        watch, answers = dp.watch(session, 3, spend=dp.PureDP(2.0), positives=2), []
        for level in "abc":
            if watch.left:
                answers.append(int(watch.above({"g": level})))
        seen[tuple(answers)] = seen.get(tuple(answers), 0) + 1
    mechanism = watch._noisy.question.mechanism
    assert not too_far(seen, threshold_law(mechanism, (3, 1, 4)), draws)
    assert too_far(seen, threshold_law(mechanism, (3, 4, 4)), draws)


@pytest.mark.parametrize("positives", [1, 2, 5])
def test_a_renewed_run_costs_every_one_of_its_runs(positives):
    """Answers up to a 1, and those after it, are runs of their own: their law is the product."""
    one = AboveThreshold(ONE_WAY, 2, 1, Fraction(2), Fraction(3), True)
    many = dataclasses.replace(one, positives=positives)
    assert loss_of(many).pure == loss_of(one).pure * positives
    law, twice = threshold_law(one, (1, 3)), dataclasses.replace(one, positives=2)
    assert threshold_law(twice, (1, 3, 1, 3))[(0, 1, 0, 1)] == pytest.approx(law[(0, 1)] ** 2)
