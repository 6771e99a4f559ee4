"""The reports that are drawn follow their law: exactly at the edges of the sampler's whole numbers,
and by χ² over many seeded draws.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb
from scipy.stats import chi2

from discreet import client
from discreet.enclosure import precision
from discreet.specs.mechanisms.local import Chance, LocalSpec
from discreet.testing import SeededSource
from discreet.trusted.extensions.local.draw import (
    _ball,
    _cells,
    coins,
    randomize,
    threshold,
    uniforms,
)

F = Fraction
ALPHA = 1e-9  # false alarms; seeded besides
DRAWS = 120_000


class Bits:
    """A source of given words; it counts how often further bits were asked for."""

    secure = False

    def __init__(self, words: list[int], further: int = 0) -> None:
        self._words, self._further, self.description = words, further, 0

    def uint64(self, count: int) -> Any:
        given, self._words = self._words[:count], self._words[count:]
        return np.array(given, dtype=np.uint64)

    def bits(self, count: int) -> int:
        self.description += 1
        return (1 << count) - 1 if self._further else 0


CHANCES = (
    [
        client.RandomizedResponse(client.Integer(0, 9), e).kept
        for e in (F(1, 10**9), F(1), F(30), F(700), F(10**6))
    ]
    + [
        client.UnaryResponse(client.Boolean(), e).other
        for e in (F(1, 10**9), F(1), F(30), F(10**6))
    ]
    + [client.TwoCoinResponse(client.Boolean()).kept, Chance((1, 0), (3, 0), F(0))]
)


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_a_coin_is_decided_by_its_exact_threshold(chance: Chance) -> None:
    level = threshold(chance)
    with precision(4000):
        exact = _ball(chance) * arb(2) ** 32
        assert level <= exact or level == 2**32 - 1
        # there the ball is too wide; the chance is below 1 by its form
        assert exact < level + 1 or chance.exponent == 10**6
    sides = [half for half in (level - 1, level + 1) if 0 <= half < 2**32]
    quiet = Bits([])
    assert coins(chance, np.array(sides, dtype=np.uint32), quiet).tolist() == [
        half < level for half in sides
    ]
    assert quiet.description == 0
    edge = np.array([level], dtype=np.uint32)
    if chance.exponent < 700:  # beyond, ever more zeros or ones would have to be read
        assert coins(chance, edge, Bits([], further=0))[0] == (chance.below != (2, 0)), (
            "U at the lower end of the cell: below the chance, unless that is the end itself"
        )
        assert not coins(chance, edge, Bits([], further=1))[0], "U at the upper end of the cell"


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 10, 641, 65_537, 1 << 20, (1 << 31) + 11, 2**32 - 2])
def test_every_number_below_a_bound_has_equally_many_halves(bound: int) -> None:
    """The halves that lead to r are a run: its ends are computed, and tried."""
    equal, refused = 2**32 // bound, 2**32 % bound
    for r in {0, min(1, bound - 1), bound // 3, bound - 1}:
        first = -(-(r * 2**32 + refused) // bound)
        last = ((r + 1) * 2**32 - 1) // bound
        assert last - first + 1 == equal
        quiet = Bits([])
        assert uniforms(bound, np.array([first, last], dtype=np.uint32), quiet).tolist() == [r, r]
        assert quiet.description == 0
    if refused:
        asked = Bits([0] * 8)
        assert uniforms(bound, np.array([0], dtype=np.uint32), asked).tolist() == [0]
        assert asked.description > 0


@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(4)], ids=str)
def test_kept_and_uniform_reports_mix_to_the_law(epsilon: Fraction) -> None:
    specs: list[Any] = [
        client.RandomizedResponse(client.Integer(0, 6), epsilon),
        client.TwoCoinResponse(client.Boolean()),
    ]
    specs += [
        client.HadamardResponse(client.Integer(1, 11), epsilon, blocks)
        for blocks in (1, 2, 4, 8, 16)
    ]
    with precision(300):
        for spec in specs:
            outputs = getattr(spec, "outputs", spec.size)
            for code in range(spec.size):
                own = kept_outputs(spec, code)
                for report, chance in enumerate(spec.law(code)):
                    mixed = (
                        _ball(spec.kept) * own.count(report) / len(own)
                        + (1 - _ball(spec.kept)) / outputs
                    )
                    assert abs(float((mixed - _ball(chance)).mid())) < 1e-80


def kept_outputs(spec: Any, code: int) -> list[int]:
    """What the sampler makes of every uniform output when the coin keeps it."""
    if not isinstance(spec, client.HadamardResponse):
        return [code]
    # the first half that leads to each output
    drawn = [-(-(r << 32) // spec.outputs) for r in range(spec.outputs)]
    words = np.array([0] * spec.outputs + drawn, dtype=np.uint32).view(np.uint64).tolist()
    return _cells(spec, np.full(spec.outputs, code), Bits(words)).tolist()  # type: ignore[arg-type]


def pearson(counts: np.ndarray, law: list[float]) -> float:
    """The p-value of X²."""
    expected = np.array(law) * counts.sum()
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(law) - 1))


CHOSEN: list[Any] = [
    lambda e: client.RandomizedResponse(client.Boolean(), e),
    lambda e: client.RandomizedResponse(client.Integer(0, 4), e),
    lambda e: client.HadamardResponse(client.Integer(1, 5), e, 1),
    lambda e: client.HadamardResponse(client.Integer(1, 5), e, 2),
    lambda e: client.OneBitResponse(client.Integer(0, 4), e),
]


@pytest.mark.parametrize("number", range(len(CHOSEN)))
def test_the_sampler_follows_the_law_and_not_another(number: int) -> None:
    spec, wrong = CHOSEN[number](F(1)), CHOSEN[number](F(13, 10))
    for code in (-1, 0, 1) if not isinstance(spec, client.OneBitResponse) else (-4, 2, 4):
        drawn = randomize(spec, np.full(DRAWS, code), SeededSource(f"{number}/{code}"))
        counts = np.bincount(drawn, minlength=len(spec.law(code)))
        assert pearson(counts, [float(chance) for chance in spec.law(code)]) > ALPHA
        if code >= 0 and not (isinstance(spec, client.OneBitResponse) and code == 0):
            assert pearson(counts, [float(chance) for chance in wrong.law(code)]) < ALPHA


def test_unary_reports_follow_the_law_and_not_another() -> None:
    spec, wrong = (
        client.UnaryResponse(client.Integer(0, 2), 1),
        client.UnaryResponse(client.Integer(0, 2), F(13, 10)),
    )
    for code in (-1, 0, 2):
        rows = np.unpackbits(
            randomize(spec, np.full(DRAWS, code), SeededSource(f"unary/{code}")), axis=1, count=3
        )
        counts = np.bincount(rows @ np.array([4, 2, 1]), minlength=8)
        for asked, fits in ((spec, True), (wrong, False)):
            bits = [float(chance) for chance in asked.bit_law(code)]
            law = [
                float(np.prod([b if one else 1 - b for b, one in zip(bits, report, strict=True)]))
                for report in itertools.product((0, 1), repeat=3)
            ]
            assert (pearson(counts, law) > ALPHA) == fits


def test_two_coin_reports_follow_their_law() -> None:
    spec = client.TwoCoinResponse(client.Boolean())
    counts = np.bincount(
        randomize(spec, np.ones(DRAWS, dtype=np.int64), SeededSource("coins")), minlength=2
    )
    assert pearson(counts, [0.25, 0.75]) > ALPHA
    assert pearson(counts, [0.3, 0.7]) < ALPHA


@pytest.mark.parametrize(
    "spec",
    [
        client.LaplaceResponse(client.Integer(0, 10), 1),
        client.GaussianResponse(client.Integer(0, 10), mu=1),
    ],
    ids=lambda spec: spec.kind,
)
def test_noisy_reports_are_the_code_plus_exact_noise(spec: LocalSpec) -> None:
    from discreet.trusted.noise.sampling import draw

    noise = spec.noise  # type: ignore[attr-defined]
    codes = np.resize(np.arange(-10, 11), 3000)
    drawn = randomize(spec, codes, SeededSource(5))
    assert (drawn - (codes << noise.refinement) == draw(noise, 3000, SeededSource(5))).all()


def test_extreme_epsilons() -> None:
    codes = np.resize(np.arange(5), 20_000)
    for epsilon in (F(60), F(800), F(10**6)):
        assert (
            randomize(
                client.RandomizedResponse(client.Integer(0, 4), epsilon), codes, SeededSource(1)
            )
            == codes
        ).all()
    counts = np.bincount(
        randomize(
            client.RandomizedResponse(client.Integer(0, 4), F(1, 10**9)),
            np.zeros(DRAWS, dtype=np.int64),
            SeededSource(2),
        )
    )
    assert pearson(counts, [0.2] * 5) > ALPHA
    assert (
        randomize(
            client.RandomizedResponse(client.Category(["x"]), F(1)),
            np.array([0, -1]),
            SeededSource(3),
        )
        == 0
    ).all()
