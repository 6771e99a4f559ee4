"""Claim: gradients of a loss are within their stated error however they are computed, and the
solver certifies its answer wherever it begins, whatever curvature it is lent.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.claims.test_compiled_bounds import longer, with_number
from tests.claims.test_perturbed_minimisers import exact_gradient, query_of
from tests.claims.test_perturbed_minimisers import rows_of as one_column

import discreet as dp
from discreet.accounting.calibration.minimiser import Room, perturbed_minimiser
from discreet.asking.formula import design_of
from discreet.errors import InvalidParameter
from discreet.specs.estimating.batches import plain_metric
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.families import Huber, HuberHinge, Logistic
from discreet.specs.estimating.metric import metric_of
from discreet.specs.estimating.minimand import Minimand
from discreet.specs.estimating.model import EstimatingPlan, Point
from discreet.specs.estimating.tables import GRID, PSI
from discreet.specs.mechanisms.mechanism import ends_over
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.testing import seeded_session
from discreet.trusted.extensions.estimating.kernels import ModelData, row_weights
from discreet.trusted.learning.minimiser import draw as solver
from discreet.trusted.learning.minimiser import rows as passes
from discreet.trusted.learning.minimiser.loops import product_loop, sum_loop, value_loop
from discreet.trusted.learning.minimiser.rows import SUM_BITS, LossRows
from discreet.trusted.release import Description, Question
from discreet.trusted.scale.spill import StoredRows

FAMILIES = (Logistic(), HuberHinge(), Huber(1.345))
compiled_and_not = pytest.mark.parametrize(
    "compiled", [pytest.param(True, marks=pytest.mark.compiled), False], ids=["compiled", "numpy"]
)


def reader_of(family, columns, yes, sigma=0.5):
    """A reader of rows in a metric that is not diagonal."""
    rng = np.random.default_rng(7)
    width = columns.shape[1]
    metric = metric_of(np.eye(width) + 0.3 * rng.normal(size=(width, width)), 1.2)
    model = query_of(family, width).model
    per_scale = GRID / (sigma * 2.0**43) if family.residual else GRID / 2.0**20
    plan = EstimatingPlan(model, metric, "minimand", family, Point((0,) * width, 20, per_scale))
    matrix = np.rint(columns * UNIT).astype(np.int16)
    unit = 2**23 if family.residual else PSI
    response = np.rint(np.asarray(yes, dtype=float) * unit).astype(np.int32)
    return LossRows(ModelData(matrix, response), row_weights(matrix, metric), plan)


def made_up(rng, n, width=3):
    columns = rng.uniform(-1, 1, (n, width))
    columns[::5] = 0
    columns[1::5] = 1
    return columns, rng.integers(0, 2, n)


def in_metric(reader, sums):
    """A·S/(R·2**SUM_BITS) in fractions."""
    unit = 1 / (reader.metric.bound * (1 << SUM_BITS))
    return [value * unit for value in reader.metric.matrix @ sums]


def evaluated(reader, theta, compiled, monkeypatch):
    loop = value_loop() if compiled else None
    assert (loop is not None) == compiled
    monkeypatch.setattr(passes, "where_it_pays", lambda factory, rows: loop)
    return reader.gradient(theta)


@pytest.mark.few(2)
@compiled_and_not
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_every_pass_is_within_its_error(family, compiled, monkeypatch):
    rng = np.random.default_rng(1)
    monkeypatch.setattr(passes, "PASS_ROWS", 16)
    monkeypatch.setattr(passes, "LOOP_ROWS", 64)
    for size in (0, 1, 200):
        reader = reader_of(family, *made_up(rng, size))
        for scale in (0.0, 1e-9, 0.1, 1.0, 50.0, 1e6):
            theta = [Fraction(float(value)) for value in rng.normal(size=3) * scale]
            sums, error, _ = evaluated(reader, theta, compiled, monkeypatch)
            exact = in_metric(reader, reader.exactly(theta))
            off = [one - other for one, other in zip(in_metric(reader, sums), exact, strict=True)]
            assert sum(value**2 for value in off) <= error**2
            assert error <= size * Fraction(2) ** -38
            # the error is not idle: a table entry aside is far outside
            assert size < 200 or sum(value**2 for value in exact) > (1000 * error) ** 2


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.kind)
def test_the_exact_pass_is_the_definition(family):
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = int(rng.integers(0, 6))
        x = np.rint(rng.uniform(-1, 1, n) * UNIT) / UNIT
        y = rng.integers(0, 2, n).astype(float)
        reader, query = one_column(family, x[:, None] if n else np.zeros((0, 1)), y)
        theta = Fraction(float(rng.normal() * 10 ** rng.uniform(-3, 3)))
        found = Fraction(reader.exactly([theta])[0]) / (query.metric.bound * (1 << SUM_BITS))
        assert found == exact_gradient(family, x, y, theta)


def test_a_part_is_spread_over_the_rows():
    columns, _ = made_up(np.random.default_rng(3), 1000)
    reader = reader_of(Logistic(), columns, np.arange(1000) >= 500)  # sorted by class
    assert reader.part(251) is None
    few = reader.part(100)
    assert few.count == 100
    at = [Fraction(1, 3)] * 3
    halves = reader_of(Logistic(), columns[::10], np.arange(1000)[::10] >= 500)
    assert list(few.gradient(at)[0]) == list(halves.gradient(at)[0])


def stored(array):
    rows = StoredRows(None, array.dtype, array.shape[1] if array.ndim > 1 else None)
    for number, part in enumerate(np.array_split(array, 3)):
        rows.put(number, part)
    return rows.sealed()


def test_rows_on_disk_are_read_alike():
    reader = reader_of(Logistic(), *made_up(np.random.default_rng(9), 1000))
    data = ModelData(stored(reader._data.matrix), stored(reader._data.response))
    other = LossRows(data, stored(reader._weights), reader._plan)
    at = [Fraction(1, 3), Fraction(-2), Fraction(1, 7)]
    for one, same in ((reader, other), (reader.part(100), other.part(100))):
        assert one.count == same.count
        assert list(one.gradient(at)[0]) == list(same.gradient(at)[0])
        assert list(one.exactly(at)) == list(same.exactly(at))


def counted(monkeypatch):
    """How many gradients are taken from here on."""
    asked = []
    plain = LossRows.gradient

    def gradient(self, theta, *, curved=False):
        asked.append(self.count)
        assert len(asked) < 1000, "it does not end"
        return plain(self, theta, curved=curved)

    monkeypatch.setattr(LossRows, "gradient", gradient)
    return asked


def certified(reader, theta, linear, penalty, tolerance):
    left = [
        one + penalty * value + given
        for one, value, given in zip(
            in_metric(reader, reader.exactly(theta)), theta, linear, strict=True
        )
    ]
    return sum(value**2 for value in left) <= tolerance**2


def misleading(kind):
    """900 rows, of which every ninth tells something else, or nothing, about all."""
    rng = np.random.default_rng(4)
    columns, yes = rng.uniform(-1, 1, (900, 3)), rng.integers(0, 2, 900)
    if kind == "nothing":
        columns[::9] = 0
    if kind == "one class":
        yes[::9] = 1
    if kind == "far away":
        columns[::9], yes[::9] = 1.0, 1
        yes[columns[:, 0] < 1] = 0
    return columns, yes


@pytest.mark.few(2)
@compiled_and_not
@pytest.mark.parametrize("kind", ["alike", "nothing", "one class", "far away"])
def test_wherever_it_begins_it_certifies(kind, compiled, monkeypatch):
    monkeypatch.setattr(solver, "PART_ROWS", 100)
    loop = value_loop() if compiled else None
    monkeypatch.setattr(passes, "where_it_pays", lambda factory, rows: loop)
    asked = counted(monkeypatch)
    for family in FAMILIES:
        reader = reader_of(family, *misleading(kind))
        curvature = query_of(family).sensitivity(dp.AddRemove()).curvature
        linear = [Fraction(5), Fraction(-40), Fraction(1, 7)]
        tolerance = Fraction(1, 10**6)
        theta = solver.solved(reader, linear, curvature, tolerance, curvature)
        assert certified(reader, theta, linear, curvature, tolerance)
    assert {100, 900} == set(asked)
    assert asked.count(900) < 100


@pytest.mark.parametrize("sigma", [0.5, 2.0**-6, 2.0**-12])
@pytest.mark.parametrize("size", [50, 900])
def test_residuals_far_beyond_their_scale_take_few_passes(size, sigma, monkeypatch):
    """All alike, and a thousand scales away: no row bends the objective where the search begins.
    Steps that only gradients decide would be in proportion to the rows.
    """
    columns = np.random.default_rng(8).uniform(-1, 1, (size, 3))
    columns[:, 0] = 1
    reader = reader_of(Huber(1.345), columns, np.ones(size), sigma=sigma)
    curvature = query_of(Huber(1.345)).sensitivity(dp.AddRemove()).curvature
    curvature *= Fraction(0.5) / Fraction(sigma)
    asked = counted(monkeypatch)
    theta = solver.solved(reader, [Fraction(1)] * 3, curvature, Fraction(1, 10**6), curvature)
    assert certified(reader, theta, [Fraction(1)] * 3, curvature, Fraction(1, 10**6))
    assert len(asked) < 60


def test_a_lent_curvature_that_misleads_is_given_up(monkeypatch):
    """None so small that steps with it would be lost, none that is no number of use."""
    asked = counted(monkeypatch)
    reader = reader_of(Logistic(), *misleading("alike"))
    problem = solver._Problem(reader, [Fraction(3)] * 3, Fraction(1, 4), Fraction(1, 4))
    for lent in (np.eye(3) * 1e-12, np.eye(3) * 1e12, -np.eye(3), np.zeros((3, 3))):
        theta, _ = solver._descended(problem, [Fraction(0)] * 3, Fraction(1, 10**6), lent)
        assert certified(reader, theta, [Fraction(3)] * 3, Fraction(1, 4), Fraction(1, 10**6))
    # from afar no whole step halves the gradient, whatever its curvature
    for family in FAMILIES:
        reader = reader_of(family, *misleading("alike"))
        bound = query_of(family).sensitivity(dp.AddRemove()).curvature
        problem = solver._Problem(reader, [Fraction(1)] * 3, bound, bound)
        theta, _ = solver._descended(problem, [Fraction(30)] * 3, Fraction(1, 10**6), np.eye(3))
        assert certified(reader, theta, [Fraction(1)] * 3, bound, Fraction(1, 10**6))
    assert len(asked) < 200


def test_a_tolerance_below_the_error_of_a_pass_is_met_exactly(monkeypatch):
    """3000 rows are off by 2·10⁻¹⁰: no pass could certify less, and the search would not end."""
    asked = counted(monkeypatch)
    reader = reader_of(Logistic(), *made_up(np.random.default_rng(5), 3000))
    linear, penalty, tolerance = (
        [Fraction(1), Fraction(2), Fraction(-1)],
        Fraction(1, 4),
        Fraction(1, 10**12),
    )
    assert reader.gradient([Fraction(1)] * 3)[1] > 100 * tolerance
    theta = solver.solved(reader, linear, penalty, tolerance, Fraction(1, 4))
    assert certified(reader, theta, linear, penalty, tolerance)
    assert len(asked) < 60


@pytest.mark.slow
def test_tolerances_leave_room_for_the_errors_of_passes():
    """As calibrated, whatever the scale of residuals: no exact pass is needed."""
    for family, sigma in [(one, 0.5) for one in FAMILIES] + [(Huber(1.345), 2.0**-12)]:
        reader = reader_of(family, *made_up(np.random.default_rng(6), 1), sigma=sigma)
        error = reader.gradient([Fraction(1)] * 3)[1]
        plan = reader._plan
        row = query_of(family).sensitivity(dp.Replace())
        bent = row.curvature * Fraction(0.5) / Fraction(sigma) if family.residual else row.curvature
        row = type(row)(row.steepness, bent, row.one_signed, 1, "replaced")
        room = Room(epsilon=Fraction(1)) if family.residual else Room(mu_squared=Fraction(1))
        assert plan.family is family
        for rows in (1e3, 1e6, 1e8, 1e10):
            made = perturbed_minimiser(row, 3, room, way="objective", penalty=None, rows=rows)
            assert made.tolerance >= solver.CLEAR * int(rows) * error


def test_a_tolerance_that_no_grid_has_is_refused():
    row = query_of(Logistic()).sensitivity(dp.Replace())
    made = perturbed_minimiser(
        row, 3, Room(mu_squared=Fraction(1)), way="objective", penalty=None, rows=1e3
    )
    given = {name: getattr(made, name) for name in PerturbedMinimiser.__slots__}
    with pytest.raises(InvalidParameter, match="grid"):
        PerturbedMinimiser(**(given | {"tolerance": Fraction(1, 2**31)}))


def test_a_tolerance_that_no_pass_can_tell_is_refused_before_the_debit():
    """From the public number of rows: Python's whole numbers would pass over all rows."""
    schema = dp.Schema({"x": dp.Real(-1, 1), "b": dp.Boolean()})
    query = Minimand(
        design_of("b ~ x", schema, counts=True).model(()),
        plain_metric(2, 1.3),
        Logistic(),
        Point((0, 0), 20, GRID / 2.0**20),
        False,
    )
    made = perturbed_minimiser(
        query.sensitivity(dp.Replace()),
        2,
        Room(mu_squared=Fraction(1)),
        way="objective",
        penalty=None,
        rows=1e3,
    )
    fine = replace(made, tolerance=Fraction(1, 2**30))
    rows = 1 << 22
    data = {"x": np.zeros(rows), "b": np.zeros(rows, dtype=bool)}
    opened = dp.from_arrays(data, schema=dict(schema), neighbors=dp.Replace())
    session = seeded_session(opened, dp.GDP(1), 1)
    asked = Question(Description("logistic", "b"), query, fine, dp.GDP(1))
    with pytest.raises(dp.InvalidParameter, match="finer than a pass"):
        session.release(asked)
    assert [entry.kind for entry in session.ledger.entries()] == ["open"]
    for mechanism, count, ends in ((fine, 1000, True), (fine, None, True), (made, rows, True)):
        assert ends_over(mechanism, count) == ends


# ── arguments of the compiled passes ──────────────────────────────────────────────────────────────


def value_arguments(family):
    tables, residual = family.tables(), family.residual
    held = (
        (tables.psi, tables.slope, tables.slope, np.zeros(1, dtype=np.int64))
        if residual
        else (tables.slope, tables.mean, tables.shift, tables.gain)
    )
    return {
        "place": np.array([0.0, np.inf, -np.inf, np.nan, 1e300, 3.5, -2.5, 7.0]),
        "rest": np.array([0.0, 0.0, 0.0, np.nan, -np.inf, 0.5, -0.25, np.inf]),
        "response": np.full(8, 1 << 13, dtype=np.int32),
        "weights": np.ones(8, dtype=np.int32),
        "numbers": (2.0**-20 if residual else 0.0, float(tables.reach), tables.clip, tables.top),
        "tables": held,
        "digits": np.zeros((3, 8)),
    }


def product_arguments():
    return {
        "matrix": np.ones((8, 3), dtype=np.int16),
        "high": np.ones(3),
        "low": np.ones(3),
        "place": np.zeros(8),
        "rest": np.zeros(8),
    }


def sum_arguments():
    return {
        "matrix": np.ones((8, 3), dtype=np.int16),
        "digits": np.ones((3, 8)),
        "sums": np.zeros((3, 3)),
    }


TABLES = [lambda t, place=place: with_number(t, place, t[place][:-1]) for place in (1, 2, 3)]
LOOPS = {
    "values": (
        value_loop,
        lambda: value_arguments(Logistic()),
        {
            "place": [lambda p: p[:7], lambda p: p[None]],
            "rest": [longer],
            "response": [longer, lambda r: r.astype(np.int64)],
            "weights": [lambda w: w[:7], lambda w: w.astype(np.int64)],
            "digits": [lambda d: d[:2], lambda d: d[:, :7]],
            "tables": TABLES,
            "numbers": [
                lambda n: with_number(n, 1, n[1] + 1),
                lambda n: with_number(n, 1, 2.5),
                lambda n: with_number(n, 1, np.nan),
            ],
        },
    ),
    "values of residuals": (
        value_loop,
        lambda: value_arguments(Huber(1.345)),
        {"tables": [lambda t: with_number(t, 0, t[0][:-1])]},
    ),
    "products": (
        product_loop,
        product_arguments,
        {
            "matrix": [longer, lambda m: m.astype(np.int32), lambda m: m[0]],
            "high": [longer],
            "low": [lambda v: v[:2]],
            "place": [lambda p: p[:7]],
            "rest": [lambda p: p.astype(np.int64)],
        },
    ),
    "sums": (
        sum_loop,
        sum_arguments,
        {
            "matrix": [longer, lambda m: m.astype(float)],
            "digits": [lambda d: d[:, :7], lambda d: d[:2]],
            "sums": [lambda s: s[:2], lambda s: s[:, :2]],
        },
    ),
}


@pytest.mark.compiled
@pytest.mark.parametrize("name", LOOPS)
def test_compiled_passes_are_called_with_arguments_that_fit_and_with_no_others(name):
    """Places that are no numbers stay inside the tables too."""
    factory, arguments, changes = LOOPS[name]
    factory()(*arguments().values())
    for argument, ways in changes.items():
        for way in ways:
            given = arguments()
            given[argument] = way(given[argument])
            with pytest.raises((IndexError, ValueError)):
                pytest.fail(f"{argument}: {factory()(*given.values())}")
