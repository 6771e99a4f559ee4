"""The law of every local report, in exact numbers, over all pairs of inputs:
its greatest log ratio is the ε that is claimed.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from discreet import client, local
from discreet.enclosure import precision
from discreet.errors import InvalidParameter, NoTheorem
from discreet.specs.mechanisms.local import LOCAL, Chance, LocalSpec, spec_from_dict
from discreet.trusted.extensions.local.draw import _ball
from discreet.trusted.losses.losses import loss_of

F = Fraction
EPSILONS = (F(1, 10**9), F(1, 10), F(1), F(5, 2), F(40))
ABC = client.Category(["a", "b", "c"])


def integer(low: int, high: int) -> client.Integer:
    return client.Integer(low, high)


def odds(epsilon: Fraction) -> arb:
    return arb(fmpq(epsilon.numerator, epsilon.denominator)).exp()


def laws(spec: LocalSpec) -> list[list[arb]]:
    """The probability of every report for every input, the one without a level included,
    as balls.
    """
    if isinstance(spec, client.OneBitResponse):
        grid = spec.column.encoding()
        return [
            [_ball(chance) for chance in spec.law(code)] for code in range(grid.low, grid.high + 1)
        ]
    codes = range(-1, spec.size)  # type: ignore[attr-defined]
    if isinstance(spec, client.UnaryResponse):
        found = []
        for code in codes:
            bits = [_ball(chance) for chance in spec.bit_law(code)]
            found.append(
                [
                    math.prod(
                        (b if one else 1 - b for b, one in zip(bits, report, strict=True)),
                        start=arb(1),
                    )
                    for report in itertools.product((0, 1), repeat=spec.size)
                ]
            )
        return found
    return [[_ball(chance) for chance in spec.law(code)] for code in codes]


def greatest_ratio(found: list[list[arb]]) -> arb:
    """The greatest P(report | x)/P(report | y), by its middle;
    balls are far sharper than what is compared.
    """
    return max(
        (
            one / other
            for x, y in itertools.permutations(found, 2)
            for one, other in zip(x, y, strict=True)
        ),
        key=lambda ball: ball.mid(),
    )


SPECS = [
    lambda e: client.RandomizedResponse(client.Boolean(), e),
    lambda e: client.RandomizedResponse(ABC, e),
    lambda e: client.RandomizedResponse(integer(0, 9), e),
    lambda e: client.UnaryResponse(ABC, e),
    lambda e: client.UnaryResponse(client.Boolean(), e),
    lambda e: client.HadamardResponse(integer(1, 7), e),
    lambda e: client.HadamardResponse(integer(1, 6), e, 1),
    lambda e: client.HadamardResponse(integer(1, 11), e, 4),
    lambda e: client.OneBitResponse(integer(0, 4), e),
    lambda e: client.OneBitResponse(client.Boolean(), e),
]


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("make", SPECS)
def test_every_report_law_has_its_epsilon(make: object, epsilon: Fraction) -> None:
    spec = make(epsilon)  # type: ignore[operator]
    with precision(400):
        found = laws(spec)
        for law in found:
            assert abs(float((sum(law, arb(0)) - 1).mid())) < 1e-80
        gap = (greatest_ratio(found) / odds(epsilon)).log()
        assert abs(float(gap.mid())) < 1e-80, "ε is attained, and never exceeded"
    assert loss_of(spec).pure == (epsilon,)
    assert local.guarantee(spec).epsilon == float(epsilon)


def test_two_coins_are_exactly_ln_3() -> None:
    """rr_estimator (ε)."""
    spec = client.TwoCoinResponse(client.Boolean())
    with precision(200):
        found = laws(spec)
        assert found[1:] == [[arb(3) / 4, arb(1) / 4], [arb(1) / 4, arb(3) / 4]]
        assert greatest_ratio(found) == 3
    (epsilon,) = loss_of(spec).pure
    with precision(200):
        assert odds(epsilon) >= 3
    assert float(epsilon) == pytest.approx(1.0986122886681098, abs=1e-12)


def test_reference_probabilities() -> None:
    """krr."""
    spec = client.RandomizedResponse(integer(1, 5), 1)
    assert [float(spec.own), float(spec.other)] == pytest.approx(
        [0.40460967519168967, 0.14884758120207758], abs=1e-12
    )


def test_one_level_says_nothing() -> None:
    for spec in (
        client.RandomizedResponse(client.Category(["x"]), 1),
        client.HadamardResponse(client.Category(["x"]), 1),
    ):
        assert spec.size == 1
    with precision(100):
        assert greatest_ratio(laws(client.RandomizedResponse(client.Category(["x"]), 1))) == 1


@pytest.mark.parametrize(
    ("levels", "epsilon", "true"), [(2, 1.0, 1.862), (5, 1.0, 1.481), (10, 0.5, 1.041)]
)
def test_the_printed_law_is_caught(levels: int, epsilon: float, true: float) -> None:
    """Positive control (reference.md L2): the printed probability of truth,
    but "otherwise" uniform over all K.
    """
    truth = math.exp(epsilon) / (levels - 1 + math.exp(epsilon))
    law = [
        [
            arb(truth + (1 - truth) / levels) if x == y else arb((1 - truth) / levels)
            for y in range(levels)
        ]
        for x in range(levels)
    ]
    found = float(greatest_ratio(law).log().mid())
    assert found == pytest.approx(true, abs=6e-4)
    assert found > epsilon + 0.4


def test_a_wrong_bit_of_unary_encoding_is_caught() -> None:
    """Positive control: own bits at the probability of randomised response would cost twice ε."""
    q = 1 / (1 + math.e)
    law = [[arb(1)] * 0 for _ in range(2)]
    for own in range(2):
        for bits in itertools.product((0, 1), repeat=2):
            chances = [1 - q if bit == own else q for bit in range(2)]
            law[own].append(
                arb(math.prod(c if one else 1 - c for c, one in zip(chances, bits, strict=True)))
            )
    assert float(greatest_ratio(law).log().mid()) == pytest.approx(2)


@pytest.mark.parametrize(
    "column",
    [client.Real(-3, 5), client.Real(0, 1, bits=32), client.Integer(18, 90), client.Boolean()],
    ids=str,
)
@pytest.mark.parametrize("size", [F(1, 100), F(1), F(3)], ids=str)
def test_noise_specs_are_calibrated_to_the_whole_range(column: object, size: Fraction) -> None:
    grid = column.encoding()  # type: ignore[attr-defined]
    laplace, gaussian = (
        client.LaplaceResponse(column, size),
        client.GaussianResponse(column, mu=size),
    )
    assert laplace.noise.sensitivity.value == grid.high - grid.low
    assert gaussian.noise.sensitivity.squared == (grid.high - grid.low) ** 2
    (epsilon,) = loss_of(laplace).pure
    assert size * (1 - F(1, 2**50)) <= epsilon <= size
    assert size**2 * (1 - F(1, 2**49)) <= loss_of(gaussian).mu_squared <= size**2
    assert min(laplace.noise.steps, gaussian.noise.steps) >= 1024


def test_ten_reports_compose_to_the_exact_trade_off() -> None:
    """rr10_tradeoff: the likelihood-ratio test between ten answers of one person,
    from the law of one report.
    """
    spec = client.RandomizedResponse(client.Boolean(), 1 / math.sqrt(10))
    p, q = float(spec.own), float(spec.other)
    # k ones where the truth is 0
    null = [math.comb(10, k) * q**k * p ** (10 - k) for k in range(11)]
    other = null[::-1]
    wanted = {0.05: 0.7504091024765683, 0.1: 0.6187528018456876, 0.5: 0.16309165466483275}
    for alpha, missed in wanted.items():
        left, power = alpha, 0.0
        for k in range(10, -1, -1):
            part = min(1.0, left / null[k])
            power += part * other[k]
            left -= part * null[k]
        assert 1 - power == pytest.approx(missed, abs=1e-10)


def test_chances_are_stable_floats() -> None:
    for exponent in (F(1, 10**9), F(1), F(29), F(31), F(800), F(10**6)):
        spec = client.RandomizedResponse(integer(0, 9), exponent)
        for chance in (spec.kept, spec.own, spec.other):
            with precision(300):
                exact = float(_ball(chance).mid())
            assert float(chance) == pytest.approx(exact, rel=1e-14, abs=1e-300)
    assert float(Chance((1, 0), (4, 0), F(0))) == 0.25


@pytest.mark.parametrize(
    "spec",
    [make(F(1, 3)) for make in SPECS]
    + [
        client.TwoCoinResponse(client.Boolean()),
        client.LaplaceResponse(client.Real(0, 1), 1),
        client.GaussianResponse(client.Real(0, 1), mu=F(1, 7)),
    ],
    ids=lambda spec: spec.kind,
)
def test_specs_are_json(spec: LocalSpec) -> None:
    text = json.dumps(spec.to_dict())
    assert client.read_spec(text) == spec == spec_from_dict(json.loads(text))
    assert client.read_spec(text).id == spec.id
    assert type(spec) in LOCAL


def test_ids_tell_specs_apart() -> None:
    specs = [make(e) for make in SPECS for e in EPSILONS]
    assert len({spec.id for spec in specs}) == len(set(specs))


BAD = [
    lambda: client.RandomizedResponse(ABC, 0),
    lambda: client.RandomizedResponse(ABC, -1),
    lambda: client.RandomizedResponse(ABC, math.nan),
    lambda: client.RandomizedResponse(ABC, math.inf),
    lambda: client.RandomizedResponse(ABC, True),
    lambda: client.RandomizedResponse(ABC, "1"),
    lambda: client.RandomizedResponse(ABC, 1e-12),
    lambda: client.RandomizedResponse(ABC, 1e9),
    lambda: client.RandomizedResponse(client.Real(0, 1), 1),
    lambda: client.RandomizedResponse(["a", "b"], 1),
    lambda: client.RandomizedResponse(integer(0, 1 << 20), 1),
    lambda: client.TwoCoinResponse(ABC),
    lambda: client.TwoCoinResponse(client.Boolean(), 1),
    lambda: client.HadamardResponse(ABC, 1, 3),
    lambda: client.HadamardResponse(ABC, 1, True),
    lambda: client.OneBitResponse(ABC, 1),
    lambda: client.LaplaceResponse(ABC, 1),
    lambda: client.LaplaceResponse(client.Real(0, 1), 0),
    lambda: client.GaussianResponse(client.Real(0, 1), mu=0),
    lambda: client.GaussianResponse(client.Real(0, 1), 1),
    lambda: client.LaplaceResponse(client.Real(0, 1, bits=32), 1e-9),
]


@pytest.mark.parametrize("make", BAD)
def test_bad_specs_are_refused(make: object) -> None:
    with pytest.raises(InvalidParameter, match="Why it matters"):
        make()  # type: ignore[operator]


class Fake(client.RandomizedResponse):
    """A subclass: it could say anything of itself."""


def test_only_proven_specs_draw_and_are_priced() -> None:
    fake = Fake(ABC, F(1))
    with pytest.raises(InvalidParameter):
        client.report(fake, "a")
    with pytest.raises(InvalidParameter):
        client.reports(fake, ["a"])
    with pytest.raises(InvalidParameter):
        local.collect(fake, [])
    with pytest.raises(NoTheorem):
        loss_of(fake)


def test_hadamard_blocks_are_the_best_of_all() -> None:
    for size, epsilon in ((5, 1), (1000, 1), (1000, 3), (1000, 6)):
        chosen = client.HadamardResponse(integer(1, size), epsilon)
        rare = {}
        for power in range(11):
            spec = client.HadamardResponse(integer(1, size), epsilon, 1 << power)
            own_block = min(1.0, (spec.width - 1) / size)
            kept = float(spec.kept)
            rare[spec.blocks] = (
                own_block * (kept + (1 - kept) / spec.blocks)
                + (1 - own_block) * (1 - kept) / spec.blocks
            ) / kept**2
        assert rare[chosen.blocks] <= min(rare.values()) * (1 + 1e-12)
    assert np.isclose(rare[chosen.blocks], min(rare.values()))
