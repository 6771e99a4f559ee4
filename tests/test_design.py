"""Formulas: the same columns as a statistician's model matrix, from declared facts alone, and a closed grammar."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from formulaic import model_matrix as oracle

import discreet as dp
from discreet.design import design_of
from discreet.engines import memory_engine_from_arrays
from discreet.queries.model import model_from_dict
from discreet.queries.pieces import RESPONSE_BITS, UNIT, LevelPiece, NumberPiece
from discreet.schema import Schema

SCHEMA = Schema({
    "y": dp.Real(0, 100), "x": dp.Real(1, 9), "z": dp.Integer(-3, 5), "d": dp.Category(["a", "b", "c"], missing="a"), "e": dp.Category(["p", "q"], missing="p"), "f": dp.Boolean(),
})
ROWS = 300
RNG = np.random.default_rng(3)
DATA = {
    "y": RNG.uniform(1, 99, ROWS), "x": RNG.uniform(1, 9, ROWS), "z": RNG.integers(-3, 6, ROWS), "d": RNG.choice(["a", "b", "c"], ROWS),
    "e": RNG.choice(["p", "q"], ROWS), "f": RNG.random(ROWS) < 0.5,
}


def user_scale(column, codes):
    """A model column on the user's scale, from its whole numbers piece by piece."""
    product = np.ones(ROWS)
    for piece in column.pieces:
        scaled = piece.values(codes[piece]) / UNIT
        product = product * (scaled if isinstance(piece, LevelPiece) else scaled * piece.half + piece.middle)
    return product


def ours(formula):
    design = design_of(formula, SCHEMA)
    codes, _, _ = memory_engine_from_arrays(DATA, SCHEMA, dp.Replace()).model_codes(design.model())
    return design, np.stack([user_scale(column, codes) for column in design.columns], axis=1)


@pytest.mark.parametrize("formula", [
    "y ~ x", "y ~ x + z", "y ~ x * z", "y ~ d", "y ~ x + d", "y ~ d - 1", "y ~ 0 + d + x", "y ~ x:d", "y ~ d * e", "y ~ x * d + f", "y ~ (x + z + d)**2",
    "y ~ log(x) + square(z)", "y ~ x:z - 1", "log(x) ~ z", "y ~ d + d:e", "y ~ x + x:d:e", "y ~ x:d - 1", "y ~ d*e*f", "y ~ d:e", "y ~ d:e - 1",
])
def test_columns_are_those_of_a_statistician(formula):
    design, matrix = ours(formula)
    frame = pandas.DataFrame(DATA)
    theirs = oracle(formula.replace("square(z)", "{z**2}").split("~")[1], frame).to_numpy(dtype=float)
    assert matrix.shape == theirs.shape
    fitted = [columns @ np.linalg.lstsq(columns, DATA["y"], rcond=None)[0] for columns in (matrix, theirs)]
    np.testing.assert_allclose(*fitted, atol=0.05)  # the same space, but for the 16-bit grid
    assert len(set(design.names)) == len(design.names)


def test_names_and_values():
    design, matrix = ours("y ~ x + d + x:d + f")
    assert design.names == ("intercept", "x", "d[b]", "d[c]", "f[true]", "x:d[b]", "x:d[c]")
    np.testing.assert_allclose(matrix[:, 1], DATA["x"], atol=8 / 2**14)
    np.testing.assert_array_equal(matrix[:, 2], DATA["d"] == "b")
    assert model_from_dict(design.model().to_dict()) == design.model()
    summed = design_of("y ~ C(d, 'sum')", SCHEMA)
    assert [piece.contrast for column in summed.columns for piece in column.pieces] == [(-1, 1, 0), (-1, 0, 1)]
    based = design_of("y ~ C(d, base='b')", SCHEMA)
    assert based.names == ("intercept", "d[a]", "d[c]")


def test_splines_add_to_one_and_match_scipy():
    from scipy.interpolate import BSpline

    design, matrix = ours("y ~ bs(x, knots=(3, 5.5)) - 1")
    assert matrix.shape[1] == 6
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-3)
    knots = np.array(design.columns[0].pieces[0].knots)
    expected = BSpline.design_matrix(np.clip(DATA["x"], 1, 9 - 1e-12), knots, 3).toarray()
    np.testing.assert_allclose(matrix, expected, atol=1e-3)
    assert len(design_of("y ~ bs(x, knots=(3, 5.5))", SCHEMA).columns) == 6  # the intercept stands for the first


def test_numbers_are_centred_only_where_the_shift_can_be_undone():
    centred = design_of("y ~ x", SCHEMA).columns[1].pieces[0]
    assert isinstance(centred, NumberPiece)
    assert (centred.middle, centred.half) == (5.0, 4.0)
    through_zero = design_of("y ~ x - 1", SCHEMA).columns[0].pieces[0]
    assert (through_zero.middle, through_zero.half) == (0.0, 9.0)
    alone = design_of("y ~ x:z", SCHEMA).columns[1]
    assert [piece.middle for piece in alone.pieces] == [0.0, 0.0]


def test_responses():
    engine = memory_engine_from_arrays(DATA, SCHEMA, dp.Replace())
    for formula, values in (("y ~ 1", DATA["y"]), ("log(x) ~ 1", np.log(DATA["x"]))):
        model = design_of(formula, SCHEMA).model()
        _, codes, _ = engine.model_codes(model)
        read = model.response.steps(codes) / 2**RESPONSE_BITS * model.response.half + model.response.middle
        np.testing.assert_allclose(read, values, atol=1e-4)
    assert design_of("f ~ x", SCHEMA).response.level == ("f", 1)
    assert design_of("e ~ x", SCHEMA).response.level == ("e", 1)
    assert design_of("C(d, base='c') ~ x", SCHEMA).response.level == ("d", 2)
    with pytest.raises(dp.DiscreetError, match="3 levels"):
        design_of("d ~ x", SCHEMA)


@pytest.mark.parametrize("formula", [
    "x", "y ~ x ~ z", "y ~ exp(x)", "y ~ x + __import__('os')", "y ~ {x + z}", "y ~ x.real", "y ~ bs(x, knots=(9, 3))", "y ~ bs(x, knots=(0.5,))", "y ~ log(z)", "y ~ C(x)",
    "y ~ log(d)", "y ~ nobody", "y + z ~ x", 3, None, "", "y ~ C(d, base='nobody')", "y ~ C(d, 'poly')", "y ~ log(x, 2)", "y ~ bs(x, knots=[nan])", "y ~ (lambda: 1)()", "y ~ x if z else d",
    "square(y) ~ x", "log(z) ~ x",
])
def test_everything_else_is_refused(formula):
    with pytest.raises(dp.DiscreetError) as caught:
        design_of(formula, SCHEMA)
    assert "Traceback" not in str(caught.value)
