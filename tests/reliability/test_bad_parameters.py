"""Cases 1–19: refused with a typed error, from public inputs alone,
before a cell is read and before anything is debited.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from reliability_cases import ESTIMATORS, SCHEMA

import discreet as dp
from discreet.testing import SeededSource, seeded_session

NAN, INFINITY = float("nan"), float("inf")
PLANTED = {
    "x": [7.319573125, 4.417911],
    "k": [5, 6],
    "b": [True, False],
    "c": ["planted-4417", "planted-9902"],
    "id": ["person-5561", "person-7782"],
}
SECRETS = ("7.3195", "4.4179", "planted", "person-")
NEIGHBORS = {
    "replace": dp.Replace(),
    "add_remove": dp.AddRemove(),
    "units": dp.AddRemove(unit="id", max_rows=3),
}


def kind_of(value: object) -> str:
    """The name of a parameter in a test's name: no addresses, and no number of 5000 digits."""
    return type(value).__name__


class Watched(list):
    """A column that notes when its cells are read."""

    def __init__(self, cells: Any) -> None:
        super().__init__(cells)
        self.reads = 0

    def __iter__(self) -> Any:
        self.reads += 1
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return super().__getitem__(place)


class Guarded:
    """A session on planted values, and what must hold after a refusal."""

    def __init__(self, neighbors: Any, **ledger: Any) -> None:
        self.columns = {name: Watched(cells) for name, cells in PLANTED.items()}
        self.data = dp.from_arrays(self.columns, schema=SCHEMA, neighbors=neighbors)
        self.session = self.data.open(**(ledger or {"budget": dp.ApproxDP(1, 1e-6), "pure": 0.5}))

    @property
    def reads(self) -> int:
        return sum(column.reads for column in self.columns.values())

    def assert_refused(
        self, call: Callable[[Any], Any], kind: type[dp.DiscreetError] = dp.DiscreetError
    ) -> dp.DiscreetError:
        before, reads = self.session.ledger.entries(), self.reads
        with pytest.raises(kind) as caught:
            call(self.session)
        error = caught.value
        four_parts(error)
        assert self.session.ledger.entries() == before
        assert not self.session.ledger.spent()
        assert not self.session.ledger.reserved()
        assert self.reads == reads == 0
        return error


def four_parts(error: dp.DiscreetError) -> None:
    assert isinstance(error, dp.DiscreetError)
    text = str(error)
    for part in (error.asked, error.found, error.why, error.remedy):
        assert isinstance(part, str)
        assert part.strip()
        assert part in text
    assert not any(secret in text for secret in SECRETS)
    assert len(text) < 2000
    assert error.__cause__ is None
    assert str(pickle.loads(pickle.dumps(error))) == text


def assert_declaration_refused(call: Callable[[], Any]) -> dp.DiscreetError:
    with pytest.raises(dp.InvalidParameter) as caught:
        call()
    four_parts(caught.value)
    return caught.value


@pytest.fixture(params=NEIGHBORS)
def guarded(request):
    return Guarded(NEIGHBORS[request.param])


def assert_spend_refused(
    guarded: Guarded, spend: Callable[[], Any], kind: type[dp.DiscreetError] = dp.InvalidParameter
) -> None:
    """A spend that cannot be made, or that every estimator refuses."""
    for ask in ESTIMATORS.values():
        guarded.assert_refused(lambda session, ask=ask: ask(session, spend()), kind)


def test_the_guard_sees_a_debit_and_a_read(guarded):
    """The checks of this file can fail: a sound question debits and reads."""
    dp.mean(guarded.session, "x", spend=dp.GDP(0.1))
    assert guarded.reads > 0
    assert guarded.session.ledger.spent()
    with pytest.raises(AssertionError):
        guarded.assert_refused(lambda session: dp.mean(session, "nobody", spend=dp.GDP(0.1)))


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, Fraction(0), Decimal("0e999999999")], ids=kind_of)
def test_case_01_epsilon_zero(guarded, zero):
    assert_spend_refused(guarded, lambda: dp.PureDP(zero))
    assert_spend_refused(guarded, lambda: dp.ApproxDP(zero, 1e-6))
    assert_spend_refused(guarded, lambda: dp.GDP(zero))


@pytest.mark.parametrize(
    "negative", [-1, -1e-300, -INFINITY, Fraction(-1, 3), -(10**400)], ids=kind_of
)
def test_case_02_epsilon_negative(guarded, negative):
    assert_spend_refused(guarded, lambda: dp.PureDP(negative))
    assert_spend_refused(guarded, lambda: dp.GDP(negative))


@pytest.mark.parametrize(
    "nan", [NAN, np.nan, np.float32("nan"), Decimal("nan"), Decimal("sNaN")], ids=kind_of
)
def test_case_03_epsilon_nan(guarded, nan):
    assert_spend_refused(guarded, lambda: dp.PureDP(nan))
    assert_spend_refused(guarded, lambda: dp.GDP(nan))


@pytest.mark.parametrize(
    "endless",
    [
        INFINITY,
        np.inf,
        Decimal("inf"),
        1e7,
        10**400,
        10**5000,
        Fraction(10**400, 3),
        Decimal("1e999999999"),
    ],
    ids=kind_of,
)
def test_case_04_epsilon_infinite(guarded, endless):
    assert_spend_refused(guarded, lambda: dp.PureDP(endless))
    assert_spend_refused(guarded, lambda: dp.GDP(endless))


@pytest.mark.parametrize(
    "other",
    [
        True,
        False,
        np.bool_(True),
        "1",
        b"1",
        None,
        [1],
        (1,),
        {},
        1j,
        np.array([1.0]),
        np.array(1.0),
        object(),
        dp.PureDP,
    ],
    ids=kind_of,
)
def test_case_05_epsilon_of_another_type(guarded, other):
    assert_spend_refused(guarded, lambda: dp.PureDP(other))
    assert_spend_refused(guarded, lambda: dp.GDP(other))


@pytest.mark.parametrize(
    "spend", [0.1, "0.1", None, True, (1, 1e-6), {"epsilon": 1}, dp.PureDP, NAN], ids=kind_of
)
def test_case_05_spend_that_is_no_guarantee(guarded, spend):
    assert_spend_refused(guarded, lambda: spend)


@pytest.mark.parametrize(
    "tiny",
    [5e-324, 1e-10, Fraction(1, 10**400), Decimal("1e-999999999"), Fraction(1, 10**5000)],
    ids=kind_of,
)
def test_case_06_epsilon_below_the_floor(guarded, tiny):
    assert_spend_refused(guarded, lambda: dp.PureDP(tiny))
    assert_spend_refused(guarded, lambda: dp.GDP(tiny))


def test_case_06_a_spend_too_small_for_the_grid(guarded):
    error = guarded.assert_refused(
        lambda session: dp.variance(session, "x", spend=dp.GDP(1e-6)), dp.InvalidParameter
    )
    assert "spend more" in error.remedy


@pytest.mark.parametrize(
    "delta",
    [
        -1e-9,
        0,
        0.0,
        1,
        1.5,
        1e-18,
        NAN,
        INFINITY,
        None,
        True,
        "1e-6",
        10**400,
        Decimal("1e-999999999"),
    ],
    ids=kind_of,
)
def test_case_07_delta_outside_its_domain(guarded, delta):
    assert_spend_refused(guarded, lambda: dp.ApproxDP(0.1, delta))
    for option in (
        {"budget": lambda: dp.ApproxDP(1, delta)},
        {"budget": lambda: dp.ApproxDP(1, 1e-6), "delta0": delta},
    ):
        if option.get("delta0", 1) in (0, 1e-18, None):
            continue  # admissible parts of δ = 1e-6
        guarded.assert_refused(
            lambda _, option=option: guarded.data.open(
                budget=option["budget"](),
                **({"delta0": option["delta0"]} if "delta0" in option else {}),
            ),
            dp.InvalidParameter,
        )


def test_case_07_no_delta_where_one_is_needed():
    """A pure ledger opens no Gaussian part: a Gaussian spend is refused, whatever its size."""
    guarded = Guarded(dp.AddRemove(), budget=dp.PureDP(1))
    for spend in (dp.GDP(0.1), dp.ApproxDP(0.1, 1e-8)):
        error = guarded.assert_refused(
            lambda session, spend=spend: dp.mean(session, "x", spend=spend), dp.BudgetExceeded
        )
        assert "dp.PureDP" in error.remedy


@pytest.mark.parametrize(
    "column",
    [
        "xx",
        "",
        "X",
        "id",
        None,
        5,
        ["x"],
        ("x",),
        {"xx": 1},
        b"x",
        10**5000,
        dp.Real,
        "x\0",
        "y" * 5000,
    ],
    ids=kind_of,
)
def test_case_13_unknown_column(guarded, column):
    spend = dp.GDP(0.1)
    for ask in (dp.mean, dp.sum, dp.variance, dp.histogram):
        guarded.assert_refused(
            lambda session, ask=ask: ask(session, column, spend=spend), dp.UndeclaredColumn
        )
    guarded.assert_refused(
        lambda session: dp.proportion(session, column, level="N", spend=spend), dp.UndeclaredColumn
    )
    guarded.assert_refused(
        lambda session: dp.table(session, by=[column], spend=spend), dp.UndeclaredColumn
    )
    guarded.assert_refused(
        lambda session: dp.preview(session, dp.mean, column, spend=spend), dp.UndeclaredColumn
    )
    if column is not None:
        guarded.assert_refused(
            lambda session: dp.table(session, column, by="c", spend=spend), dp.UndeclaredColumn
        )
    if not isinstance(column, (list, dict)):
        guarded.assert_refused(
            lambda session: dp.count(session, where={column: (0, 1)}, spend=spend),
            dp.UndeclaredColumn,
        )


def test_case_13_a_near_miss_is_named():
    schema = {"income": dp.Real(0, 1), "age": dp.Integer(0, 9)}
    session = dp.from_arrays(
        {"income": [1], "age": [1]}, schema=schema, neighbors=dp.Replace()
    ).open(budget=dp.GDP(1))
    with pytest.raises(dp.UndeclaredColumn, match=r"did you mean 'age'\?"):
        dp.mean(session, "agee", spend=dp.GDP(0.1))


def test_case_13_unknown_estimator_or_option(guarded):
    spend = dp.GDP(0.1)
    for thing in (print, None, [], "mean", dp.Real):
        guarded.assert_refused(
            lambda session, thing=thing: dp.preview(session, thing, "x", spend=spend),
            dp.InvalidParameter,
        )
    before = guarded.session.ledger.entries()
    with pytest.raises(AttributeError, match="no attribute 'mediane'"):
        dp.mediane(guarded.session, "x", spend=spend)
    for ask in (
        dp.mean,
        dp.sum,
        dp.variance,
        dp.histogram,
        dp.proportion,
        dp.mode,
        dp.ecdf,
        dp.density,
        dp.unbounded_mean,
        dp.iqr,
    ):
        with pytest.raises(dp.InvalidParameter, match="clip= is none of its parameters"):
            ask(guarded.session, "x", spend=spend, clip=True)
        with pytest.raises(dp.InvalidParameter, match="spend was not given"):
            ask(guarded.session, "x")
    assert guarded.session.ledger.entries() == before
    assert guarded.reads == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: dp.proportion(session, "c", spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "c", level="Q", spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "c", level=["N"], spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "c", level=10**5000, spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "x", spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "b", level="yes", spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "b", level=0, spend=dp.GDP(0.1)),
        lambda session: dp.proportion(session, "b", level=np.array([True]), spend=dp.GDP(0.1)),
        lambda session: dp.mean(session, "c", spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where="x > 0", spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"x": 1}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"x": (1, 0)}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"x": (NAN, 1)}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"x": (0, 10**400)}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"c": "planned"}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"c": [["N"]]}, spend=dp.GDP(0.1)),
        lambda session: dp.count(session, where={"b": "yes"}, spend=dp.GDP(0.1)),
        lambda session: dp.mean(session, "x", key="", spend=dp.GDP(0.1)),
        lambda session: dp.mean(session, "x", key=5, spend=dp.GDP(0.1)),
        lambda session: dp.mean(session, "x", key="a" * 201, spend=dp.GDP(0.1)),
        lambda session: dp.mean(session, "x", key="a\0b", spend=dp.GDP(0.1)),
        lambda session: dp.Assumptions(rows=10**400),
        lambda session: dp.Assumptions(share=2),
        lambda session: dp.from_json("no json"),
        lambda session: dp.from_json('{"format": "discreet-release", "version": 1}'),
        lambda session: dp.from_json(None),
        lambda session: dp.Category([]),
        lambda session: dp.Category("NS"),
        lambda session: dp.Category(["N", "N"]),
        lambda session: dp.Category([1, "1"]),
        lambda session: dp.Category([1.5]),
        lambda session: dp.Category([10**5000]),
        lambda session: dp.Category(None),
    ],
    ids=range(34),
)
def test_case_13_unknown_level_filter_or_key(guarded, ask):
    guarded.assert_refused(ask)


@pytest.mark.slow
@pytest.mark.parametrize(
    "level",
    [0, 1, -0.5, 1.5, 95, NAN, None, "0.95", True, 1e-300, 1 - 1e-16, 1 - Fraction(1, 10**400)],
    ids=kind_of,
)
def test_case_14_a_level_that_is_no_probability(level):
    """Quantiles are not offered yet; the level of an interval is the one probability that is asked
    for.
    """
    result = dp.mean(
        dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.Replace()).open(budget=dp.PureDP(1)),
        "x",
        spend=dp.PureDP(1),
    )
    for call in (result.confidence_interval, result.summary, result.records, result.to_frame):
        assert_declaration_refused(lambda call=call: call(level))
    for edge in (1e-4, 1 - 1e-9):
        assert np.isfinite(result.confidence_interval(edge)).all()
        assert np.isfinite(result.confidence_interval(edge, target="data")).all()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "bins",
    [
        0,
        -1,
        4097,
        10**400,
        10**5000,
        True,
        2.5,
        "10",
        [],
        [1],
        [1, 1],
        [2, 1],
        [0, NAN],
        [0, INFINITY],
        [0, None],
        [0, "1"],
        [0, 10**400],
        np.array(5),
        np.eye(2),
        {1: 2},
        list(range(4099)),
        [[0, 1], [1, 2]],
        object(),
    ],
    ids=range(23),
)
def test_case_15_bins_not_increasing_or_too_many(guarded, bins):
    guarded.assert_refused(
        lambda session: dp.histogram(session, "x", bins=bins, spend=dp.GDP(0.1)),
        dp.InvalidParameter,
    )
    guarded.assert_refused(
        lambda session: dp.table(session, by={"x": bins}, spend=dp.GDP(0.1)), dp.InvalidParameter
    )


def test_case_15_bins_of_levels_and_too_many_cells(guarded):
    guarded.assert_refused(
        lambda session: dp.histogram(session, "c", bins=3, spend=dp.GDP(0.1)), dp.InvalidParameter
    )
    guarded.assert_refused(
        lambda session: dp.table(session, by={"x": 4096, "k": 4096}, spend=dp.GDP(0.1)),
        dp.InvalidParameter,
    )
    for by in ([], None, 5, ["c", "c"]):
        guarded.assert_refused(lambda session, by=by: dp.table(session, by=by, spend=dp.GDP(0.1)))


def test_case_16_group_keys_not_declared(guarded):
    for by in ("x", ["c", "x"], {"x": None}, "k"):
        error = guarded.assert_refused(
            lambda session, by=by: dp.table(session, by=by, spend=dp.GDP(0.1)), dp.InvalidParameter
        )
        assert "delta" in error.why
        assert "dp.Category" in error.remedy
    guarded.assert_refused(
        lambda session: dp.table(session, by="id", spend=dp.GDP(0.1)), dp.UndeclaredColumn
    )


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "id"},
        {"unit": "id", "max_rows": 0},
        {"unit": "id", "max_rows": -1},
        {"unit": "id", "max_rows": None},
        {"unit": "id", "max_rows": True},
        {"unit": "id", "max_rows": 1.5},
        {"unit": "id", "max_rows": "3"},
        {"unit": "id", "max_rows": 2**21},
        {"unit": "id", "max_rows": NAN},
        {"unit": "id", "max_rows": 10**5000},
        {"max_rows": 3},
        {"unit": "", "max_rows": 1},
        {"unit": 5, "max_rows": 1},
        {"unit": ["id"], "max_rows": 1},
    ],
    ids=range(14),
)
def test_case_17_contribution_bound_zero_or_absent(options):
    for relation in (dp.AddRemove, dp.Replace):
        assert_declaration_refused(lambda relation=relation: relation(**options))


@pytest.mark.parametrize(
    "neighbors", [None, "replace", True, dp.Replace, dp.AddRemove, {"relation": "replace"}, 1]
)
def test_case_18_neighbours_not_given(neighbors, tmp_path):
    frame = pl.DataFrame({"x": PLANTED["x"]})
    frame.write_csv(tmp_path / "data.csv")
    frame.write_parquet(tmp_path / "data.parquet")
    column = Watched(PLANTED["x"])
    schema = {"x": SCHEMA["x"]}
    for read, data in (
        (dp.from_arrays, {"x": column}),
        (dp.from_frame, frame),
        (dp.read_csv, tmp_path / "data.csv"),
        (dp.read_parquet, tmp_path / "data.parquet"),
    ):
        with pytest.raises(dp.NeighborsMissing) as caught:
            read(data, schema=schema, neighbors=neighbors)
        four_parts(caught.value)
        with pytest.raises(dp.NeighborsMissing):
            read(data, schema=schema)
    assert column.reads == 0


def test_case_19_no_seed_can_be_given(guarded):
    with pytest.raises(dp.InvalidParameter, match="it has no seed"):
        guarded.data.open(budget=dp.GDP(1), seed=1)
    for ask in (dp.mean, dp.sum, dp.variance, dp.histogram):
        with pytest.raises(dp.InvalidParameter, match="it has no seed"):
            ask(guarded.session, "x", spend=dp.GDP(0.1), seed=1)
    assert not guarded.session.ledger.spent()
    assert guarded.reads == 0


def test_case_19_seeding_the_interpreter_repeats_no_noise():
    data = dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.AddRemove())
    seen = set()
    for _ in range(4):
        random.seed(1)
        np.random.seed(1)
        seen.add(
            dp.table(data.open(budget=dp.GDP(1)), "k", by="c", spend=dp.GDP(0.1)).release.integers
        )
    assert len(seen) == 4


def test_case_19_a_ledger_file_refuses_seeded_noise(tmp_path):
    columns = {name: Watched(cells) for name, cells in PLANTED.items()}
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=dp.AddRemove())
    ledger = dp.Ledger.open(dp.GDP(1), path=tmp_path / "production.ledger")
    session, before = seeded_session(data, ledger, 1), ledger.entries()
    for ask in ESTIMATORS.values():
        with pytest.raises(dp.InsecureNoise) as caught:
            ask(session, dp.GDP(0.1))
        four_parts(caught.value)
    assert ledger.entries() == before
    assert not any(column.reads for column in columns.values())


def test_case_19_seeded_releases_say_so():
    data = dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.AddRemove())
    first, again, other = (
        dp.mean(seeded_session(data, dp.GDP(1), seed), "x", spend=dp.GDP(0.1)) for seed in (1, 1, 2)
    )
    assert first.release.integers == again.release.integers != other.release.integers
    assert first.release.secure is SeededSource.secure is False
    assert "NOT PRIVATE" in str(first.summary())
    assert dp.from_json(first.to_json()).release.secure is False
    assert dp.mean(data.open(budget=dp.GDP(1)), "x", spend=dp.GDP(0.1)).release.secure is True
