"""Joint moments: the reach of every design,
on exact grids and on the whole square by interval arithmetic.
"""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq

from discreet.encoding import Encoding
from discreet.neighbors import AddRemove, Replace
from discreet.schema import Real
from discreet.sensitivity import L1, L2
from discreet.specs.queries.moments import DESIGNS, Moments
from discreet.specs.queries.plans import Factor

HEIGHT = 24


def psi(design, c):
    """ψ(c) for c a number, a Fraction or a ball."""
    count = [design.count + 0 * c] if design.count else []
    if design.degree == 2:
        b, even = design.weights
        return [*count, b * c, even * (1 - c * c)]
    b, square, third, fourth = design.weights
    return [*count, b * c, square * c * c, third * c * (1 - c * c), fourth * c * c * (1 - c * c)]


def power(design, vector):
    return sum(abs(x) if design.norm == 1 else x * x for x in vector)


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)
def test_reach_on_an_exact_grid_is_within_the_claim_and_close_to_it(design):
    grid = [Fraction(code, HEIGHT) for code in range(-HEIGHT, HEIGHT + 1)]
    add = max(power(design, psi(design, c)) for c in grid)
    same = max(
        power(design, [x - y for x, y in zip(psi(design, c), psi(design, d), strict=True)])
        for c, d in itertools.combinations(grid, 2)
    )
    assert add <= design.add
    assert same <= design.same
    assert add >= Fraction(98, 100) * design.add
    assert same >= Fraction(98, 100) * design.same


def proven(design, claim, both):
    """Whether sup ≤ claim on [−1, 1] (or its square) follows from ball arithmetic on ever smaller
    boxes.
    """
    todo = [
        (Fraction(-1), Fraction(1), Fraction(-1), Fraction(1))
        if both
        else (Fraction(-1), Fraction(1), Fraction(0), Fraction(0))
    ]
    limit = arb(fmpq(claim.numerator, claim.denominator))
    for _ in range(400_000):
        if not todo:
            return True
        a, b, c, d = todo.pop()
        first, second = ball(a, b), ball(c, d)
        values = psi(design, first)
        if both:
            values = [x - y for x, y in zip(values, psi(design, second), strict=True)]
        if power(design, values) < limit:
            continue
        if max(b - a, d - c) < Fraction(1, 4096):
            return False
        middle, center = (a + b) / 2, (c + d) / 2
        if b - a >= d - c:
            todo += [(a, middle, c, d), (middle, b, c, d)]
        else:
            todo += [(a, b, c, center), (a, b, center, d)]
    return False


def ball(low, high):
    middle, radius = (low + high) / 2, (high - low) / 2
    return arb(
        fmpq(middle.numerator, middle.denominator), arb(fmpq(radius.numerator, radius.denominator))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["variance-l2", "variance-public-l2", "variance-l1", "variance-public-l1"]
)
def test_variance_designs_are_proven_on_the_whole_square(name):
    """sup ‖ψ(c) − ψ(c′)‖ᵖ ≤ same, for every real pair; and a claim 2 % lower cannot be proven."""
    design = DESIGNS[name]
    with ctx.workprec(64):
        assert proven(design, design.same, both=True)
        assert not proven(design, design.same * Fraction(98, 100), both=True)


@pytest.mark.parametrize("name", ["variance-l1", "variance-public-l1"])
def test_variance_designs_in_l1_are_proven_for_one_row(name):
    design = DESIGNS[name]
    with ctx.workprec(64):
        assert proven(design, design.add, both=False)
        assert not proven(design, design.add * Fraction(98, 100), both=False)


@pytest.mark.parametrize(
    "design",
    [design for design in DESIGNS.values() if design.norm == 2],
    ids=lambda design: design.name,
)
def test_l2_reach_of_one_row_is_attained_at_the_end_or_the_middle(design):
    """‖ψ‖² ≤ add on a fine grid of reals, with equality at |c| = 1 or c = 0:
    the closed forms in the docstring.
    """
    c = np.linspace(-1, 1, 200_001)
    values = sum(np.asarray(x) ** 2 for x in psi(design, c))
    assert values.max() == pytest.approx(float(design.add), rel=1e-12)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=lambda design: design.name)
@pytest.mark.parametrize(
    "neighbors",
    [Replace(), AddRemove(), Replace(unit="u", max_rows=3), AddRemove(unit="u", max_rows=3)],
    ids=str,
)
def test_integer_statistic_is_the_real_one_scaled(design, neighbors):
    """assemble() gives h^degree · Σψ(c) exactly,
    and the sensitivity scales with it and with the rows of a unit.
    """
    query = Moments((), Factor("x", Encoding(0.0, 1.0, -7, 7)), design, False)
    codes = np.array([-7, -3, 0, 2, 7, 7])
    sums = np.array([[int((codes**p).sum()) for p in range(design.degree + 1)]], dtype=object)
    expected = [
        sum(psi(design, Fraction(int(code), 7))[i] for code in codes) * 7**design.degree
        for i in range(query.size)
    ]
    assert query.assemble(sums) == expected
    sensitivity = query.sensitivity(neighbors)
    bound = design.bound(neighbors, cells=1, optional=False)
    scale = neighbors.rows * 7**design.degree
    assert sensitivity == (L1(bound * scale) if design.norm == 1 else L2(bound * scale**2))
    assert query.unit_values()[-1] * design.weights[-1] * 7**design.degree == pytest.approx(1)


def test_second_moments_are_free_under_replace():
    """The ℓ₂ sensitivity of (mean, spread) is that of the mean alone, 2h:
    nothing is paid for the standard error.
    """
    factor = Factor("x", Real(0, 1).encoding(16))
    query = Moments((), factor, DESIGNS["mean-public-l2"], False)
    alone = 5 * factor.largest * (2 * factor.largest)  # weight 5, unit h, range 2h
    assert query.sensitivity(Replace()).value == alone
