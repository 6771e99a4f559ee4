"""A search by noisy counts never loses more than its budget, whatever its policy does."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.search import policies
from discreet.search.policies import POLICIES, Bisection, Count, History, policy_from_dict
from discreet.search.quantile_ends import QuantileEnds
from discreet.sensitivity import L1, L2, Rows
from discreet.specs.mechanisms import search as search_module
from discreet.specs.mechanisms.in_turn import InTurn
from discreet.specs.mechanisms.quantiles import QuantileChoice
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.registry import mechanism_from_dict
from discreet.specs.statistics import Histogram, histogram_of_cells
from discreet.testing import SeededSource
from discreet.trusted.losses.loss import Loss
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.search import converse, search

ONE = Rows(1, "replaced")


@plain.kept()
@dataclass(frozen=True, slots=True)
class Erratic:
    """An adversary: places and shares jump about with the answers; it also asks for more than there
    is and for places off the grid.
    """

    seed: int
    kind: ClassVar[str] = "erratic"

    def next(self, history: History) -> tuple[int, int] | None:
        last = history.counts[-1].value if history.counts else 0.5
        word = hash((self.seed, len(history.counts), round(last * 1000)))
        if word % 11 == 0:
            return None
        return word % (history.cells + 9) - 4, (word >> 8) % (
            history.left + (2 if word % 7 == 0 else 1)
        )

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "seed": self.seed}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Erratic:
        return cls(record["seed"])


@pytest.fixture
def erratic(monkeypatch: pytest.MonkeyPatch) -> type[Erratic]:
    """The adversary, registered as a policy for one test."""
    monkeypatch.setattr(policies, "POLICIES", (*POLICIES, Erratic))
    monkeypatch.setattr(search_module, "POLICIES", (*POLICIES, Erratic))
    return Erratic


def loss_of_transcript(mechanism: CountSearch, transcript: tuple[int, ...], shift: int) -> Fraction:
    """What a transcript can lose at most when every statistic moves by `shift`: Σ(shift/σ)² or Σ
    shift/b, from the noise that was drawn.
    """
    total = Fraction(0)
    for share in transcript[1::3]:
        ratio = shift / mechanism.noise(share).spread
        total += ratio**2 if mechanism.law == "gaussian" else ratio
    return total


def neighbours(cells: int, rows: int, change: str) -> list[tuple[Histogram, Histogram]]:
    """All pairs of neighbouring histograms of up to `rows` values on a tiny grid."""

    def histogram(values: tuple[int, ...]) -> Histogram:
        return histogram_of_cells(cells, np.array(values, dtype=np.int64))

    pairs = []
    for values in itertools.combinations_with_replacement(range(cells), rows):
        for place in range(rows):
            rest = values[:place] + values[place + 1 :]
            if change == "added or removed":
                pairs.append((histogram(values), histogram(rest)))
            else:
                pairs += [(histogram(values), histogram((*rest, new))) for new in range(cells)]
    return pairs


@pytest.mark.few(3)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("change", ["replaced", "added or removed"])
@pytest.mark.parametrize(("below", "above"), [(1, 1), (3, 1), (1, 0)])
def test_transcripts_lose_no_more_than_the_budget(
    erratic: type[Erratic], law: str, change: str, below: int, above: int
) -> None:
    """For all neighbours on a tiny grid: the statistics along a transcript differ by so little that
    Σμ_i² ≤ μ², or Σε_i ≤ ε.
    """
    for seed in range(4):
        for policy in (erratic(seed), Bisection(3, 2)):
            mechanism = CountSearch(Rows(1, change), below, above, law, Fraction(7, 10), 37, policy)
            for one, other in neighbours(4, 3, change)[:: 3 if change == "replaced" else 1]:
                transcript = search(mechanism, one, SeededSource(f"{seed} {below}"))
                lost = Fraction(0)
                for place, share in zip(transcript[::3], transcript[1::3], strict=True):
                    moved = [
                        below * histogram.below(place)
                        - above * (histogram.rows - histogram.below(place))
                        for histogram in (one, other)
                    ]
                    ratio = abs(moved[0] - moved[1]) / mechanism.noise(share).spread
                    lost += ratio**2 if law == "gaussian" else ratio
                assert lost <= mechanism.budget
                worst = mechanism.sensitivity.weighted(below, above)
                assert loss_of_transcript(mechanism, transcript, worst) <= mechanism.budget


def test_the_loss_check_catches_an_interpreter_that_forgets_to_charge() -> None:
    """Positive control: asking twice and charging once exceeds the budget,
    and the check above sees it.
    """
    mechanism = CountSearch(ONE, 1, 1, "gaussian", Fraction(1), 64, Bisection(6))
    histogram = histogram_of_cells(100, np.arange(100))
    honest = search(mechanism, histogram, SeededSource(1))
    forgetful = (*honest, *honest[-3:])
    assert (
        loss_of_transcript(mechanism, honest, 2)
        <= mechanism.budget
        < loss_of_transcript(mechanism, forgetful, 2)
    )


def test_every_answer_pays_for_its_noise() -> None:
    for law, units, share in itertools.product(
        ("gaussian", "laplace"), (1, 7, 1 << 16), (1, 3, 7, 1000)
    ):
        if share > units:
            continue
        mechanism = CountSearch(Rows(2, "changed"), 2, 3, law, Fraction(1, 3), units, Bisection(2))
        noise = mechanism.noise(share)
        part = mechanism.budget * share / units
        moved = mechanism.sensitivity.weighted(2, 3)
        assert moved == 10
        lost = (moved / noise.spread) ** 2 if law == "gaussian" else moved / noise.spread
        assert lost <= part < lost * (1 + Fraction(1, 10**9))
        assert noise.sensitivity == (
            L2(Fraction(moved**2)) if law == "gaussian" else L1(Fraction(moved))
        )
        assert mechanism.deviation(share) == pytest.approx(math.sqrt(noise.variance))


def test_units_are_never_overspent(erratic: type[Erratic]) -> None:
    histogram = histogram_of_cells(50, np.arange(50).repeat(3))
    lengths = set()
    for seed in range(300):
        transcript = search(
            CountSearch(ONE, 1, 2, "laplace", Fraction(1), 100, erratic(seed)),
            histogram,
            SeededSource(seed),
        )
        assert sum(transcript[1::3]) <= 100
        assert all(share >= 1 for share in transcript[1::3])
        assert all(0 <= place <= 50 for place in transcript[::3])
        lengths.add(len(transcript))
    assert len(lengths) > 5


def test_answers_have_the_law_of_their_noise() -> None:
    """Standardised answers at a fixed place are normal;
    noise off by 30 % would be seen (α = 1e-9).
    """
    mechanism = CountSearch(ONE, 1, 1, "gaussian", Fraction(1), 9, Bisection(1))
    histogram = histogram_of_cells(10, np.array([1, 2, 3, 8]))
    source = SeededSource("law")
    truth = 2 * histogram.below(5) - histogram.rows
    values = np.array([search(mechanism, histogram, source)[2] for _ in range(2000)])
    noise = mechanism.noise(9)
    standard = (values / (1 << noise.refinement) - truth) / float(noise.spread)
    squares = float((standard**2).sum())
    assert stats.chi2.ppf(5e-10, 2000) < squares < stats.chi2.ppf(1 - 5e-10, 2000)
    for factor in (0.7, 1.3):
        assert (
            not stats.chi2.ppf(5e-10, 2000) < squares * factor**2 < stats.chi2.ppf(1 - 5e-10, 2000)
        )


def test_mechanisms_in_turn_cost_the_sum() -> None:
    choice = QuantileChoice(ONE, 1, 2, Fraction(1, 8), "exponential")
    counts = CountSearch(ONE, 1, 1, "gaussian", Fraction(1, 5), 64, Bisection(4))
    pure = CountSearch(ONE, 1, 1, "laplace", Fraction(1, 3), 64, Bisection(4))
    assert loss_of(InTurn((choice, counts, pure))) == Loss(
        mu_squared=Fraction(1, 5),
        pure=(Fraction(1, 3),),
        bounded_range=loss_of(choice).bounded_range,
    )
    one, two, three, five = (Fraction(1, number) for number in (1, 2, 3, 5))
    assert Loss(one, (two,), (three,), five, one / 7) + Loss(two, (five,), (), one, two) == Loss(
        one + two, (two, five), (three,), five + one, one / 7 + two
    )
    assert loss_of(counts) == Loss(mu_squared=Fraction(1, 5))
    assert loss_of(pure) == Loss(pure=(Fraction(1, 3),))


def test_a_search_sees_what_was_released_before_it() -> None:
    choice = QuantileChoice(ONE, 1, 2, Fraction(5), "exponential")
    counts = CountSearch(
        ONE, 1, 1, "gaussian", Fraction(1, 5), 1 << 12, QuantileEnds(1, 1, Fraction(95, 100), 400)
    )
    mechanism = InTurn((choice, counts))
    answer = apply(
        mechanism, histogram_of_cells(1000, np.arange(300, 700)), SeededSource(3)
    ).integers
    chosen, transcript = mechanism.split(answer)
    assert len(chosen) == 1
    assert abs(chosen[0] - 500) < 20
    places = transcript[::3]
    assert places
    assert places[0] < chosen[0]


def test_specs_round_trip_and_refuse_nonsense() -> None:
    specs = [
        CountSearch(
            Rows(3, "changed"),
            1,
            3,
            "laplace",
            Fraction(1, 7),
            1000,
            QuantileEnds(1, 3, Fraction(9, 10), None, 3),
        ),
        InTurn(
            (
                QuantileChoice(ONE, 1, 4, Fraction(1, 8), "exponential"),
                CountSearch(ONE, 3, 1, "gaussian", Fraction(1, 5), 64, Bisection(4)),
            )
        ),
    ]
    for spec in specs:
        assert mechanism_from_dict(spec.to_dict()) == spec
    assert policy_from_dict(Bisection(3, 2).to_dict()) == Bisection(3, 2)
    good = {
        "sensitivity": ONE,
        "below": 1,
        "above": 1,
        "law": "gaussian",
        "budget": Fraction(1),
        "units": 8,
        "policy": Bisection(2),
    }
    for bad in (
        {"below": -1},
        {"below": 0, "above": 0},
        {"law": "cauchy"},
        {"budget": Fraction(0)},
        {"budget": 1.0},
        {"units": 0},
        {"units": True},
        {"policy": None},
        {"sensitivity": L1(Fraction(1))},
        {"budget": Fraction(1, 10**60)},
    ):
        with pytest.raises(InvalidParameter):
            CountSearch(**(good | bad))
    with pytest.raises(InvalidParameter):
        InTurn(())
    with pytest.raises(InvalidParameter):
        Bisection(0)
    with pytest.raises(InvalidParameter):
        QuantileEnds(1, 1, Fraction(2), 10)


def test_the_loop_takes_any_statistic() -> None:
    """`converse` with a statistic that is no histogram:
    the bisection finds where it changes sign, with little noise.
    """
    mechanism = CountSearch(ONE, 1, 1, "gaussian", Fraction(10**6), 1 << 10, Bisection(20))
    transcript = converse(mechanism, 1 << 16, lambda place: 10 * (place - 12_345), SeededSource(5))
    assert abs(transcript[-3] - 12_345) <= 1


def test_the_search_for_ends_never_fails_whatever_the_answers() -> None:
    """Statistics that no data could give (not monotone, huge, constant): the policy stays within
    the grid and the units, and the ends are in order.
    """
    rng = np.random.default_rng(11)
    for trial in range(300):
        cells, rows = int(rng.integers(1, 3000)), (None, 0, 1, 50, 10**6)[trial % 5]
        law = ("gaussian", "laplace")[trial % 2]
        policy = QuantileEnds(
            int(rng.integers(1, 4)),
            int(rng.integers(1, 4)),
            Fraction(95, 100),
            rows,
            1 + trial % 3,
            law,
        )
        mechanism = CountSearch(
            ONE,
            policy.below,
            policy.above,
            law,
            Fraction(1, 10 ** int(rng.integers(0, 5))),
            1 << int(rng.integers(0, 17)),
            policy,
        )
        table = (
            (rng.standard_cauchy(cells + 1) * 10.0 ** int(rng.integers(0, 7)))
            .clip(-1e12, 1e12)
            .astype(np.int64)
        )
        transcript = converse(
            mechanism,
            cells,
            lambda place, table=table: int(table[place]),  # type: ignore[misc]
            SeededSource(trial),
            known=(int(rng.integers(0, cells)),),
        )
        assert sum(transcript[1::3]) <= mechanism.units
        counts = [
            Count(
                place,
                share,
                steps / (1 << mechanism.noise(share).refinement),
                mechanism.deviation(share),
            )
            for place, share, steps in zip(
                transcript[::3], transcript[1::3], transcript[2::3], strict=True
            )
        ]
        for level in (0.5, 0.95, 0.999999):
            low, high = policy.ends(counts, cells, 100.0, level)
            assert 0 <= low <= cells
            assert 0 <= high <= cells
