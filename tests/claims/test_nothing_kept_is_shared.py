"""Whatever a caller does to what was handed out, later answers, prices and accounts are as if
nothing had been done: keys and values of caches, and what ledgers keep, are nobody else's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import plain
from discreet.errors import InvalidParameter
from discreet.schema import Schema
from discreet.search.policies import Bisection
from discreet.sensitivity import L1, Rows
from discreet.specs.estimating.components import ModelColumn, NumberComponent, number_table
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.families import Huber, Logistic, Poisson, SmoothHuber
from discreet.specs.estimating.metric import Metric
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.tabulated import TabulatedMean, TabulatedResidual
from discreet.specs.mechanisms.additive import GeometricNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.moments import DESIGNS, Moments
from discreet.specs.queries.plans import Factor
from discreet.testing import seeded_session
from discreet.trusted.engines.execution import execute
from discreet.trusted.engines.memory import memory_engine_from_arrays
from discreet.trusted.noise.laws import law_of

SCHEMA = {
    "x": dp.Real(0, 1),
    "y": dp.Real(0, 1),
    "n": dp.Integer(0, 20),
    "c": dp.Category(["a", "b"]),
    "k": dp.Open(),
}
GDP = dp.GDP(0.5)
ASKED: dict[str, Callable[[Any], Any]] = {
    "count": lambda s: dp.count(s, spend=GDP),
    "mean": lambda s: dp.mean(s, "x", spend=GDP),
    "median": lambda s: dp.median(s, "n", spend=GDP),
    "variance": lambda s: dp.variance(s, "x", spend=GDP),
    "ols": lambda s: dp.ols(s, "y ~ x + c", spend=GDP),
    "robust": lambda s: dp.robust(s, "y ~ x", spend=GDP),
    "keys": lambda s: dp.table(s, by="k", spend=GDP, delta=1e-6),
    "histogram": lambda s: dp.histogram(s, "x", bins=4, spend=GDP),
    "above": lambda s: dp.above_threshold(s, [{"c": "a"}, {"c": "b"}], 30, spend=GDP),
}


def vandalised(held: Any, seen: set[int]) -> None:
    """Every part of what was handed out, down to its Fractions, is changed in place."""
    if id(held) in seen or isinstance(held, (str, int, float, type(None))):
        return
    seen.add(id(held))
    if isinstance(held, Fraction):
        object.__setattr__(held, "_numerator", held.numerator + 7)
    elif isinstance(held, (list, tuple)):
        for member in held:
            vandalised(member, seen)
    elif dataclasses.is_dataclass(held):
        for field in dataclasses.fields(held):
            part = getattr(held, field.name)
            vandalised(part, seen)
            if type(part) in (int, float, str):
                object.__setattr__(held, field.name, part + type(part)(7))


def releases_of(result: Any) -> list[Any]:
    return list(getattr(result, "releases", None) or [result.release])


def answers(asked: Callable[[Any], Any], *, spoilt: bool) -> list[Any]:
    """What three questions in a row release, and what they cost."""
    rng = np.random.default_rng(1)
    data = {
        "x": rng.uniform(0, 1, 60),
        "y": rng.uniform(0, 1, 60),
        "n": rng.integers(0, 21, 60),
        "c": rng.choice(["a", "b"], 60),
        "k": ["often"] * 60,
    }
    declared = dp.from_arrays(data, schema=SCHEMA, neighbors=dp.AddRemove())
    session, found = seeded_session(declared, dp.ApproxDP(50, 1e-3), "shared"), []
    for _ in range(3):
        result = asked(session)
        releases = releases_of(result)
        found.append([list(release.integers) for release in releases])
        found.append([release.mechanism.to_dict() for release in releases])
        found.append(str(session.ledger.spent()))
        if spoilt:
            if hasattr(result, "to_json"):
                vandalised(dp.from_json(result.to_json()), set())
            vandalised(releases, set())
            ledger = session.ledger
            for shown in (ledger.entries(), ledger.spent(), ledger.remaining(), ledger.budget):
                vandalised(shown, set())
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ASKED)
def test_what_was_handed_out_changes_nothing_later(name: str) -> None:
    assert answers(ASKED[name], spoilt=True) == answers(ASKED[name], spoilt=False)
    assert answers(ASKED[name], spoilt=False) == answers(ASKED[name], spoilt=True)


def test_the_proven_designs_cannot_be_changed() -> None:
    read = Moments.from_dict(
        Moments((), Factor("x", dp.Real(0, 1).encoding()), DESIGNS["mean-add-l2"], True).to_dict()
    )
    for design in (read.design, DESIGNS["mean-add-l2"], *DESIGNS.values()):
        object.__setattr__(design, "same", Fraction(1, 10**12))
        object.__setattr__(design.add, "_numerator", 0)
    assert DESIGNS["mean-add-l2"].add == 5
    assert DESIGNS["mean-add-l2"].same == 16
    with pytest.raises(InvalidParameter):
        Moments((), read.factor, read.design, True)


def test_a_law_is_not_found_by_an_edited_key() -> None:
    # hashes of these Fractions are equal, so only a comparison tells them apart
    dear, cheap = Fraction(2**32 + 1, 2**32), Fraction(2**29 + 1)
    assert hash(dear) == hash(cheap)
    paid = GeometricNoise(L1(Fraction(1)), dear, 0)
    assert law_of(paid).steps == float(dear)
    object.__setattr__(paid, "spread", cheap)
    assert law_of(GeometricNoise(L1(Fraction(1)), cheap, 0)).steps == float(cheap)


def test_rows_are_not_weighed_by_an_edited_metric() -> None:
    # below the session, which hands out copies
    def sums(engine: Any, metric: Metric) -> int:
        model = Model((ModelColumn("one", ()),), None)
        found = execute(engine, WeightedGram(model, metric, "metric", True).plan())
        return int(found[0, 0])

    kept = Schema({"x": dp.Real(0, 1)})
    engine, fresh = (
        memory_engine_from_arrays({"x": np.zeros(9)}, kept, dp.AddRemove()) for _ in range(2)
    )
    metric = Metric(((1,),), 0, 1 << 28)
    assert sums(engine, metric) != sums(fresh, Metric(((1,),), 0, 4))
    object.__setattr__(metric, "radius_squared", 4)
    assert sums(engine, Metric(((1,),), 0, 4)) == sums(fresh, Metric(((1,),), 0, 4))


def test_a_remembered_function_keeps_neither_arguments_nor_answers_of_callers() -> None:
    made: list[Fraction] = []

    @plain.remembered(4)
    def doubled(number: Fraction) -> tuple[Fraction, str]:
        made.append(number)
        return 2 * number, "twice"

    asked = Fraction(1, 3)
    first = doubled(asked)
    object.__setattr__(first[0], "_numerator", 99)
    object.__setattr__(asked, "_numerator", 5)
    assert doubled(Fraction(1, 3)) == (Fraction(2, 3), "twice")
    assert doubled(Fraction(5, 3)) == (Fraction(10, 3), "twice")
    assert len(made) == 2
    for number in range(10):
        assert doubled(Fraction(number, 7))[0] == Fraction(2 * number, 7)
    with pytest.raises(TypeError):
        plain.exact_key([1])
    assert plain.exact_key(1) != plain.exact_key(1.0) != plain.exact_key(True)
    for other in ((1, 1.0), (1, True), ("1", 1), (1, Fraction(1)), ((1, 1),), (1,)):
        assert plain.exact_key(other) != plain.exact_key((1, 1))


# -- arrays ----------------------------------------

RISING = tuple(range(-64 << 10, (64 << 10) + 1, 1 << 10))
FAMILIES = {
    "huber": lambda: Huber(1.5),
    "smooth": lambda: SmoothHuber(1.5),
    "logistic": Logistic,
    "poisson": lambda: Poisson(5.0),
    "own": lambda: TabulatedResidual(RISING),
    "own mean": lambda: TabulatedMean(tuple(value + (64 << 10) for value in RISING)),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_the_tables_of_a_family_cannot_be_written(name: str) -> None:
    tables = FAMILIES[name]().tables()
    for field in ("psi", "slope", "mean", "shift", "gain"):
        array = getattr(tables, field)
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1 << 20
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        object.__setattr__(tables, field, np.ones(3))
    again = FAMILIES[name]().tables()
    assert all(
        len(getattr(again, field)) != 3 for field in ("psi", "slope", "mean", "shift", "gain")
    )


def test_the_table_of_a_component_cannot_be_written() -> None:
    table = number_table(NumberComponent(Factor("x", dp.Real(0, 1).encoding())))
    with pytest.raises(ValueError, match="WRITEABLE"):
        table.flags.writeable = True


def test_the_noise_of_a_search_is_a_new_object_each_time() -> None:
    rows = Rows(1, "added or removed")
    mechanism = CountSearch(rows, 1, 1, "gaussian", Fraction(1, 10**6), 64, Bisection(1))
    noise = mechanism.noise(1)
    before = noise.spread
    object.__setattr__(noise, "spread", Fraction(1, 2**40))
    object.__setattr__(before, "_numerator", 1)
    assert mechanism.noise(1).spread > 1
