"""Formulas: the same columns as a statistician's model matrix, from declared facts alone,
and a closed grammar.
"""

from __future__ import annotations

import time

import numpy as np
import pandas
import pytest
from formulaic import model_matrix as oracle

import discreet as dp
from discreet.asking.formula import design_of
from discreet.schema import Schema
from discreet.specs.estimating.components import (
    RESPONSE_BITS,
    UNIT,
    LevelComponent,
    NumberComponent,
)
from discreet.specs.estimating.model import model_from_dict
from discreet.testing import seeded_session
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.extensions.estimating.reading import model_codes

SCHEMA = Schema(
    {
        "y": dp.Real(0, 100),
        "x": dp.Real(1, 9),
        "z": dp.Integer(-3, 5),
        "d": dp.Category(["a", "b", "c"], missing="a"),
        "e": dp.Category(["p", "q"], missing="p"),
        "f": dp.Boolean(),
    }
)
ROWS = 300
RNG = np.random.default_rng(3)
DATA = {
    "y": RNG.uniform(1, 99, ROWS),
    "x": RNG.uniform(1, 9, ROWS),
    "z": RNG.integers(-3, 6, ROWS),
    "d": RNG.choice(["a", "b", "c"], ROWS),
    "e": RNG.choice(["p", "q"], ROWS),
    "f": RNG.random(ROWS) < 0.5,
}


def user_scale(column, codes):
    """A model column on the user's scale, from its whole numbers component by component."""
    product = np.ones(ROWS)
    for component in column.components:
        scaled = component.values(codes[component][:]) / UNIT
        product = product * (
            scaled
            if isinstance(component, LevelComponent)
            else scaled * component.half + component.middle
        )
    return product


def ours(formula):
    design = design_of(formula, SCHEMA)
    codes, _, _ = model_codes(memory_engine_from_arrays(DATA, SCHEMA, dp.Replace()), design.model())
    return design, np.stack([user_scale(column, codes) for column in design.columns], axis=1)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x",
        "y ~ x + z",
        "y ~ x * z",
        "y ~ d",
        "y ~ x + d",
        "y ~ d - 1",
        "y ~ 0 + d + x",
        "y ~ x:d",
        "y ~ d * e",
        "y ~ x * d + f",
        "y ~ (x + z + d)**2",
        "y ~ log(x) + square(z)",
        "y ~ x:z - 1",
        "log(x) ~ z",
        "y ~ d + d:e",
        "y ~ x + x:d:e",
        "y ~ x:d - 1",
        "y ~ d*e*f",
        "y ~ d:e",
        "y ~ d:e - 1",
    ],
)
def test_columns_are_those_of_a_statistician(formula):
    design, matrix = ours(formula)
    frame = pandas.DataFrame(DATA)
    theirs = oracle(formula.replace("square(z)", "{z**2}").split("~")[1], frame).to_numpy(
        dtype=float
    )
    assert matrix.shape == theirs.shape
    fitted = [
        columns @ np.linalg.lstsq(columns, DATA["y"], rcond=None)[0] for columns in (matrix, theirs)
    ]
    np.testing.assert_allclose(*fitted, atol=0.05)  # the same space, but for the 16-bit grid
    assert len(set(design.names)) == len(design.names)


def test_names_and_values():
    design, matrix = ours("y ~ x + d + x:d + f")
    assert design.names == ("intercept", "x", "d[b]", "d[c]", "f[true]", "x:d[b]", "x:d[c]")
    np.testing.assert_allclose(matrix[:, 1], DATA["x"], atol=8 / 2**14)
    np.testing.assert_array_equal(matrix[:, 2], DATA["d"] == "b")
    assert model_from_dict(design.model().to_dict()) == design.model()
    summed = design_of("y ~ C(d, 'sum')", SCHEMA)
    assert [component.contrast for column in summed.columns for component in column.components] == [
        (-1, 1, 0),
        (-1, 0, 1),
    ]
    based = design_of("y ~ C(d, base='b')", SCHEMA)
    assert based.names == ("intercept", "d[a]", "d[c]")


def test_splines_add_to_one_and_match_scipy():
    from scipy.interpolate import BSpline

    design, matrix = ours("y ~ bs(x, knots=(3, 5.5)) - 1")
    assert matrix.shape[1] == 6
    np.testing.assert_allclose(matrix.sum(axis=1), 1, atol=1e-3)
    knots = np.array(design.columns[0].components[0].knots)
    expected = BSpline.design_matrix(np.clip(DATA["x"], 1, 9 - 1e-12), knots, 3).toarray()
    np.testing.assert_allclose(matrix, expected, atol=1e-3)
    # the intercept stands for the first
    assert len(design_of("y ~ bs(x, knots=(3, 5.5))", SCHEMA).columns) == 6


def test_numbers_are_centred_only_where_the_shift_can_be_undone():
    centred = design_of("y ~ x", SCHEMA).columns[1].components[0]
    assert isinstance(centred, NumberComponent)
    assert (centred.middle, centred.half) == (5.0, 4.0)
    through_zero = design_of("y ~ x - 1", SCHEMA).columns[0].components[0]
    assert (through_zero.middle, through_zero.half) == (0.0, 9.0)
    alone = design_of("y ~ x:z", SCHEMA).columns[1]
    assert [component.middle for component in alone.components] == [0.0, 0.0]


def test_responses():
    engine = memory_engine_from_arrays(DATA, SCHEMA, dp.Replace())
    for formula, values in (("y ~ 1", DATA["y"]), ("log(x) ~ 1", np.log(DATA["x"]))):
        model = design_of(formula, SCHEMA).model()
        _, codes, _ = model_codes(engine, model)
        read = (
            model.response.steps(codes) / 2**RESPONSE_BITS * model.response.half
            + model.response.middle
        )
        np.testing.assert_allclose(read, values, atol=1e-4)
    assert design_of("f ~ x", SCHEMA).response.level == ("f", 1)
    assert design_of("e ~ x", SCHEMA).response.level == ("e", 1)
    assert design_of("C(d, base='c') ~ x", SCHEMA).response.level == ("d", 2)
    with pytest.raises(dp.DiscreetError, match="3 levels"):
        design_of("d ~ x", SCHEMA)


@pytest.mark.parametrize(
    "formula",
    [
        "x",
        "y ~ x ~ z",
        "y ~ exp(x)",
        "y ~ x + __import__('os')",
        "y ~ {x + z}",
        "y ~ x.real",
        "y ~ bs(x, knots=(9, 3))",
        "y ~ bs(x, knots=(0.5,))",
        "y ~ log(z)",
        "y ~ C(x)",
        "y ~ log(d)",
        "y ~ nobody",
        "y + z ~ x",
        3,
        None,
        "",
        "y ~ C(d, base='nobody')",
        "y ~ C(d, 'poly')",
        "y ~ log(x, 2)",
        "y ~ bs(x, knots=[nan])",
        "y ~ (lambda: 1)()",
        "y ~ x if z else d",
        "square(y) ~ x",
        "log(z) ~ x",
    ],
)
def test_everything_else_is_refused(formula):
    with pytest.raises(dp.DiscreetError) as caught:
        design_of(formula, SCHEMA)
    assert "Traceback" not in str(caught.value)


FOUR_PARTS = ("Why it matters:", "What to do:")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ x | z", "'|' is not an operator"),
        ("y ~ x %in% d", "is not an operator"),
        ("y ~ .", "is not an operator"),
        ("y ~ sqrt(x)", "none of the functions that formulas know (log, square, bs, C)"),
        ("y ~ log(log(x))", "does not name a column"),
        ("y ~ log(3)", "does not name a column"),
        ("y ~ log(*x)", "does not name a column"),
        ("y ~ bs(x, **{})", "these options"),
        ("y ~ C(d, base=['a'])", "these options"),
        ("y ~ C(d, base=b)", "not literals"),
        ("y ~ bs(x, knots=(3,)*10**9)", "not literals"),
        ("y ~ ", "right side is empty"),
        ("y ~ x.__class__", "not in the schema"),
        ("y ~ __import__", "not in the schema"),
        ("y ~ x.__class__.__mro__[1]", "is not"),
        ("y ~ {x.real}", "not in the grammar"),
        ("y ~ {x}", "not in the grammar"),
        ("y ~ eval('x')", "none of the functions"),
        ("y ~ np.log(x)", "not in the grammar"),
        ("y ~ log(`no such`)", "not in the schema"),
    ],
)
def test_errors_say_what_is_wrong(formula, words):
    with pytest.raises(dp.DiscreetError) as caught:
        design_of(formula, SCHEMA)
    text = str(caught.value)
    assert words in text
    assert all(part in text for part in FOUR_PARTS)


HUGE = {
    "a power": "y ~ (x + z + d + e + f)**30",
    "a huge power": "y ~ (x + z)**999999999999",
    "a chain of products": "y ~ " + "*".join(f"a{place}" for place in range(60)),
    "many terms": "y ~ " + " + ".join(["x"] * 4000),
    "a long name": "y ~ " + "a" * 10**6,
    "nested calls": "y ~ " + "log(" * 2000 + "x" + ")" * 2000,
    "a high interaction": "y ~ x:z:d:e:f:log(x):square(x)",
    "many knots": "y ~ bs(x, knots=("
    + ",".join(str(1 + place / 1000) for place in range(1, 2000))
    + "))",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", HUGE)
def test_huge_formulas_are_refused_at_once(name):
    start = time.process_time()
    with pytest.raises(dp.DiscreetError) as caught:
        design_of(HUGE[name], SCHEMA)
    assert time.process_time() - start < 1.0
    assert len(str(caught.value)) < 1000 or name == "a long name"


@pytest.mark.slow
def test_deep_parentheses_and_many_signs_are_read():
    assert design_of("y ~ " + "(" * 2000 + "x" + ")" * 2000, SCHEMA).names == ("intercept", "x")
    assert design_of("y ~ " + "+" * 2000 + "x", SCHEMA).names == ("intercept", "x")
    assert design_of("y ~ ((x) + ((z)))", SCHEMA).names == ("intercept", "x", "z")


def test_too_many_columns_are_refused_before_they_are_made():
    wide = Schema(
        {
            "y": dp.Real(0, 1),
            "a": dp.Category([f"l{place}" for place in range(90)]),
            "b": dp.Category([f"m{place}" for place in range(90)]),
        }
    )
    assert len(design_of("y ~ a + b", wide).names) == 179
    with pytest.raises(dp.InvalidParameter, match="more than 200 columns"):
        design_of("y ~ a * b", wide)


def test_names_in_backticks_may_hold_anything():
    odd = Schema(
        {
            "y": dp.Real(1, 2),
            "odd name": dp.Real(1, 9),
            "a+b": dp.Category(["p", "q"]),
            "class": dp.Real(0, 1),
            "x.y": dp.Real(0, 1),
        }
    )
    design = design_of(
        "y ~ `odd name` + log(`odd name`) + C(`a+b`, base='q') + `class` + x.y + `odd name`:`a+b`",
        odd,
    )
    assert design.names[:6] == ("intercept", "odd name", "log(odd name)", "a+b[p]", "class", "x.y")
    assert design_of("log(`odd name`) ~ y", odd).response.transform == "log"


def test_nothing_is_run():
    """No name of a formula is looked up in Python:
    a column called like a function is a column, and a function is none.
    """
    schema = Schema(
        {
            "y": dp.Real(0, 1),
            "open": dp.Real(0, 1),
            "__import__": dp.Real(0, 1),
            "log": dp.Real(0, 1),
        }
    )
    assert design_of("y ~ open + __import__ + log", schema).names == (
        "intercept",
        "open",
        "__import__",
        "log",
    )
    with pytest.raises(dp.DiscreetError):
        design_of("y ~ __import__('os')", schema)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("formula", "theirs"),
    [
        ("y ~ x * z", "y ~ x * z"),
        ("y ~ x * d", "y ~ x * C(d)"),
        ("y ~ d * e", "y ~ C(d) * C(e)"),
        ("y ~ C(d, 'sum') + x", "y ~ C(d, Sum(omit=True)) + x"),
        ("y ~ C(d, 'sum') * x", "y ~ C(d, Sum) * x"),
        ("y ~ x + d - 1", "y ~ x + C(d) - 1"),
        ("y ~ log(x) + square(z) - 1", "y ~ np.log(x) + I(z**2) - 1"),
        ("log(x) ~ z:d", "np.log(x) ~ z:C(d)"),
        ("log(x) ~ z - 1", "np.log(x) ~ z - 1"),
        ("y ~ x - 1", "y ~ x - 1"),
        ("y ~ d / x", "y ~ C(d) / x"),
        ("y ~ (x + z + d)**2", "y ~ (x + z + C(d))**2"),
    ],
)
def test_fits_of_interactions_codings_and_transforms_predict_as_statsmodels_does(formula, theirs):
    """The moments fit at a huge budget: fitted values of all rows agree whatever the coding,
    to a small part of their spread.
    """
    import statsmodels.formula.api as smf

    fit = dp.ols(
        seeded_session(
            dp.from_arrays(DATA, schema=SCHEMA, neighbors=dp.Replace()), dp.GDP(1000), formula
        ),
        formula,
        spend=dp.GDP(1000),
        method="moments",
    )
    usual = smf.ols(theirs.replace("Sum(omit=True)", "Sum"), pandas.DataFrame(DATA)).fit()
    _, matrix = ours(formula)
    assert matrix.shape[1] == len(usual.params)
    predicted = fit.predict(matrix)[:, 0]
    assert np.abs(predicted - usual.fittedvalues.to_numpy()).max() < 0.25 * np.sqrt(usual.scale)
    assert fit.names == design_of(formula, SCHEMA).names


@pytest.mark.slow
@pytest.mark.parametrize("solver", [None, "newton"], ids=str)
@pytest.mark.parametrize(
    "formula", ["y ~ d - 1", "y ~ 0 + x", "y ~ x:d - 1", "y ~ bs(x, knots=(5,)) - 1"]
)
def test_models_without_an_intercept_pass_through_zero(formula, solver):
    """The response is centred only where some columns make up for it: the private fit predicts as
    least squares on the same columns does.
    """
    rng = np.random.default_rng(8)
    n = 6000
    x, d = rng.uniform(1, 9, n), rng.choice(["a", "b", "c"], n)
    data = {
        "y": np.clip(40 + 4 * x + 8 * (d == "b") + 4 * rng.normal(size=n), 0, 100),
        "x": x,
        "z": np.zeros(n, int),
        "d": d,
        "e": np.array(["p"] * n),
        "f": np.zeros(n, bool),
    }
    fit = dp.ols(
        seeded_session(
            dp.from_arrays(data, schema=SCHEMA, neighbors=dp.Replace()), dp.GDP(50), formula
        ),
        formula,
        spend=dp.GDP(50),
        solver=solver,
    )
    columns = oracle(
        formula.split("~")[1].replace(
            "bs(x, knots=(5,))",
            "bs(x, knots=[5], lower_bound=1, upper_bound=9, include_intercept=True)",
        ),
        pandas.DataFrame(data),
    ).to_numpy(dtype=float)
    beta = np.linalg.lstsq(columns, data["y"], rcond=None)[0]
    assert fit.params == pytest.approx(beta, abs=0.15 * np.abs(beta).max())
    assert "intercept" not in fit.names
