"""The client: reports of one form whatever the value, read by the schema's rules, with nothing but
the answer in them; and a light import.
"""

from __future__ import annotations

import datetime
import json
import math
import subprocess
import sys
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from discreet import client, local
from discreet.testing import seeded_reports
from discreet.trusted.engines.cells import boolean_codes, category_codes, numbers
from discreet.trusted.engines.columns import cells_from_sequence
from discreet.trusted.extensions.local.values import codes_of, place_of, places_of

LEVELS = client.Category(["red", "green", 3, True])
NAMED = client.Category(["red", "green", "none"], missing="none")
SPECS: dict[str, Any] = {
    "binary": client.RandomizedResponse(client.Boolean(), 1),
    "levels": client.RandomizedResponse(LEVELS, 1),
    "named": client.RandomizedResponse(NAMED, 1),
    "whole": client.RandomizedResponse(client.Integer(-3, 3), 1),
    "coins": client.TwoCoinResponse(client.Boolean()),
    "unary": client.UnaryResponse(client.Integer(0, 10), 1),
    "hadamard": client.HadamardResponse(client.Integer(0, 99), 2),
    "bit": client.OneBitResponse(client.Real(0, 10), 1),
    "laplace": client.LaplaceResponse(client.Real(0, 10), 1),
    "gaussian": client.GaussianResponse(client.Integer(18, 90), mu=1),
}
VALUES: list[Any] = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    0,
    -0.0,
    1,
    True,
    False,
    2.5,
    -2.5,
    1e308,
    5e-324,
    10**400,
    -(10**400),
    "red",
    " 3 ",
    "3",
    "nonsense",
    "",
    "true",
    " FALSE",
    b"red",
    [1, 2],
    {"a": 1},
    object(),
    datetime.date(2020, 1, 1),
    uuid.UUID(int=1),
    Decimal("2.5"),
    Decimal("NaN"),
    Decimal("sNaN"),
    np.float32(2.5),
    np.int8(3),
    np.bool_(True),
    np.array([1, 2]),
    complex(1, 2),
    "é" * 1000,
    "\ud800",
]


class Angry(float):
    """A number that does not want to be read."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    __hash__ = float.__hash__


@pytest.mark.parametrize("name", SPECS)
def test_every_value_gives_a_report_of_one_form(name: str) -> None:
    spec = SPECS[name]
    texts = [client.report(spec, value) for value in [*VALUES, Angry(2.0)]]
    for text in texts:
        record = json.loads(text)
        assert set(record) == {"discreet", "spec", "answer"}
        assert (record["discreet"], record["spec"]) == ("report/1", spec.id)
        assert type(record["answer"]) is (str if name == "unary" else int)
    made = local.collect(spec, texts)
    assert (made.reports, made.invalid) == (len(texts), 0)
    assert len({len(text) for text in texts}) == 1 or name in ("laplace", "gaussian", "hadamard"), (
        "a report's length tells nothing"
    )


def test_values_are_read_like_the_engines_read_them() -> None:
    cells = cells_from_sequence(VALUES)
    assert places_of(LEVELS, VALUES).tolist() == category_codes(cells, LEVELS).tolist()
    assert places_of(NAMED, VALUES).tolist() == category_codes(cells, NAMED).tolist()
    for missing in (False, True):
        assert (
            places_of(client.Boolean(missing), VALUES).tolist()
            == boolean_codes(cells, client.Boolean(missing)).tolist()
        )
    for column in (
        client.Real(-3, 5),
        client.Real(-3, 5, missing=1.0),
        client.Integer(-3, 5),
        client.Real(0, 1e5, bits=32),
    ):
        grid = column.encoding()
        read = numbers(cells)
        read = np.where(np.isnan(read), column.fill, read)
        with np.errstate(all="ignore"):
            wanted = np.clip(
                np.floor((read - grid.center) * grid.per_unit + 0.5), grid.low, grid.high
            )
        assert codes_of(column, VALUES).tolist() == wanted.tolist()


def test_whole_numbers_stand_for_levels() -> None:
    column = client.Integer(-3, 3, missing=2)
    assert [
        place_of(column, value)
        for value in (-3, 3, 0, 2.4, 2.5, -2.5, "1", 99, -99, math.inf, None, math.nan, "x")
    ] == [0, 6, 3, 5, 6, 1, 4, 6, 0, 6, 5, 5, 5]


@pytest.mark.parametrize(
    "column",
    [
        client.Integer(-3, 3),
        client.Integer(100, 300),
        client.Integer(0, 1),
        client.Boolean(),
        client.Boolean(True),
        LEVELS,
        NAMED,
        client.Category([1, "1.0", "2.5", "true", "x"]),
    ],
    ids=str,
)
def test_arrays_are_read_like_single_values(column: Any) -> None:
    arrays = [
        np.array([0, 1, 250, 127, 128], dtype=np.uint8),
        np.array([-128, 0, 1, 127], dtype=np.int8),
        np.array([2**64 - 1, 0, 2], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1, 1]),
        np.array([math.nan, math.inf, -math.inf, 1.5, -0.0, 1e300]),
        np.array([1.5, math.nan], dtype=np.float32),
        np.array([True, False]),
        np.array(["1", "x"]),
        np.array([1, None, "2"], dtype=object),
        np.array([]),
        np.ma.masked_array([1, 2], mask=[True, False]),
    ]
    for array in arrays:
        before = array.copy()
        single = list(array) if isinstance(array, np.ma.MaskedArray) else array.tolist()
        assert places_of(column, array).tolist() == [place_of(column, value) for value in single]
        if not isinstance(column, client.Category):
            assert codes_of(column, array).tolist() == codes_of(column, single).tolist()
        assert np.array_equal(before, array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("name", SPECS)
def test_many_reports_at_once(name: str) -> None:
    spec, rng = SPECS[name], np.random.default_rng(1)
    values = rng.integers(0, 11, 1000)
    answers = client.reports(spec, values)
    assert len(answers) == 1000
    made = local.collect(spec, answers)
    assert (made.reports, made.invalid) == (1000, 0)
    assert np.array_equal(seeded_reports(spec, values, 7), seeded_reports(spec, values.tolist(), 7))
    assert not np.array_equal(seeded_reports(spec, values, 7), seeded_reports(spec, values, 8))
    assert len(client.reports(spec, [])) == 0


def test_long_arrays_are_read_in_parts() -> None:
    spec = client.RandomizedResponse(client.Integer(0, 4), 60)
    values = np.resize(np.arange(5), (1 << 18) + 777)
    assert (client.reports(spec, values) == values).all()
    unary = client.UnaryResponse(client.Boolean(), 1)
    assert client.reports(unary, np.zeros((1 << 18) + 3, dtype=bool)).shape == ((1 << 18) + 3, 1)


def test_reports_do_not_repeat_and_hold_no_value() -> None:
    spec = client.LaplaceResponse(client.Real(0, 10), 1)
    texts = {client.report(spec, 3.25) for _ in range(50)}
    assert len(texts) > 40
    secret = client.RandomizedResponse(client.Category(["quokka", "numbat"]), 1)
    assert not any("quokka" in client.report(secret, "quokka") for _ in range(50))


FRESH = "import sys; {}; print(' '.join(sorted(sys.modules)))"


def loaded(code: str) -> set[str]:
    return set(
        subprocess.run(
            [sys.executable, "-c", FRESH.format(code)], check=True, capture_output=True, text=True
        ).stdout.split()
    )


ALL_REPORTS = """
from discreet import client
yes, number = client.Boolean(), client.Real(0, 1)
for spec in (client.RandomizedResponse(yes, 1), client.TwoCoinResponse(yes), \
client.UnaryResponse(yes, 1), client.HadamardResponse(client.Integer(0, 99), 2)):
    client.report(spec, True)
for spec in (client.OneBitResponse(number, 1), client.LaplaceResponse(number, 1), \
client.GaussianResponse(number, mu=1)):
    client.report(spec, 0.5), client.reports(spec, [0.1, 0.2])
"""
OF_THE_LIBRARY = {
    "asking",
    "asking.records",  # the table of public names, texts alone
    "client",
    "enclosure",
    "errors",
    "errors.devices",
    "errors.noise",
    "exact",
    "neighbors",
    "plain",
    "plain.kinds",
    "plain.values",
    "schema",
    "sensitivity",
    "specs",
    "specs.mechanisms",
    "specs.mechanisms.additive",
    "specs.mechanisms.gradient_requests",
    "specs.mechanisms.local",
    "specs.mechanisms.mechanism",
    "trusted",
    "dates",
    "encoding",
    "errors.calls",
    "errors.data",
    "plain.calls",
    "plain.copies",
    "trusted.compiled",
    "trusted.extensions",
    "trusted.extensions.local",
    "trusted.extensions.local.client",
    "trusted.extensions.local.draw",
    "trusted.extensions.local.gradients",
    "trusted.extensions.local.values",
    "trusted.noise",
    "trusted.noise.choice",
    "trusted.noise.kernels",
    "trusted.noise.laws",
    "trusted.noise.sampling",
    "trusted.noise.source",
    "trusted.noise.tables",
    "trusted.values",
}


@pytest.mark.slow
def test_the_client_loads_specs_and_draws_and_nothing_else() -> None:
    """After a report of every kind: these modules of the library, and numpy, cryptography, flint
    (with what they load) of all others.
    """
    found = loaded(f"exec({ALL_REPORTS!r})")
    assert {
        name.removeprefix("discreet.") for name in found if name.startswith("discreet.")
    } <= OF_THE_LIBRARY
    heavy = {
        "scipy",
        "pandas",
        "polars",
        "pyarrow",
        "duckdb",
        "numba",
        "matplotlib",
        "narwhals",
        "rich",
        "typer",
        "formulaic",
        "joblib",
        "sklearn",
    }
    assert not {name.split(".")[0] for name in found} & heavy


@pytest.mark.parametrize(
    ("column", "value", "answer"),
    [
        (client.Integer(3, 7), 5, 2),
        (client.Integer(-4, 4), -4, 0),
        (client.Integer(3, 7), "99", 4),
        (client.Boolean(), True, 1),
        (client.Category(["a", "b"]), "b", 1),
    ],
)
def test_a_report_is_about_the_place_of_the_value(column, value, answer) -> None:
    """At ε = 40 a report is the truth, but for one in 10¹⁶."""
    spec = client.RandomizedResponse(column, epsilon=40)
    assert json.loads(client.report(spec, value))["answer"] == answer
    assert client.reports(spec, [value]).tolist() == [answer]
