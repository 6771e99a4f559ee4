"""Claim: compiled loops read and write inside their arrays, and a mechanism of another size than
its statistic is refused before the debit.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, symmetric_noise
from discreet.sensitivity import L2, Frobenius
from discreet.specs.estimating.batches import ETA_BITS, SampledGradients, plain_metric
from discreet.specs.estimating.components import ModelColumn, Response
from discreet.specs.estimating.families import Huber, Logistic
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.mechanisms.mechanism import fits_in_size
from discreet.testing.seeded import seeded_session
from discreet.trusted.engines import kernels
from discreet.trusted.extensions import unit_sums
from discreet.trusted.extensions.estimating import loops as model_loops
from discreet.trusted.extensions.estimating.kernels import ModelData, row_weights
from discreet.trusted.extensions.sgd.batches import RowGradients
from discreet.trusted.noise import kernels as noise_kernels
from discreet.trusted.noise.tables import ROWS, tables
from discreet.trusted.release import Description, Question

REPOSITORY = Path(__file__).parents[2]

# ── sizes of mechanisms and statistics ────────────────────────────────────────────────────────


def descent_question(session, length):
    """A descent on two columns whose start has `length` coordinates, calibrated and priced as it
    should be.
    """
    fit = dp.logistic(session, "b ~ x", spend=dp.ApproxDP(3, 1e-6), solver="sgd")
    release = next(one for one in fit.releases if one.mechanism.kind == "noisy sgd")
    mechanism = dataclasses.replace(
        release.mechanism, start=(0,) * length, steps=4, every=4, averaged=1
    )
    return Question(Description("logistic"), release.query, mechanism, release.spend, release.delta)


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 3, 64])
def test_a_start_of_another_length_than_the_model_is_refused_before_the_debit(length):
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, 300)
    schema = {"x": dp.Real(-1, 1), "b": dp.Boolean()}
    data = dp.from_arrays({"x": x, "b": x > 0}, schema=schema, neighbors=dp.Replace())
    session = seeded_session(data, dp.ApproxDP(20, 1e-4), 1)
    right, wrong = descent_question(session, 2), descent_question(session, length)
    entries = len(list(session.ledger.entries()))
    with pytest.raises(dp.InvalidParameter, match="size"):
        session.release(wrong)
    assert len(list(session.ledger.entries())) == entries
    assert len(session.release(right).integers) == 4


def logistic_reader(rows=1 << 14, columns=3):
    """A reader of so many rows that it uses the compiled loop."""
    rng = np.random.default_rng(2)
    matrix = rng.integers(-(2**14), 2**14, (rows, columns)).astype(np.int16)
    model = Model(
        tuple(ModelColumn(f"x{place}", ()) for place in range(columns)), Response(level=("b", 1))
    )
    point = Point((0,) * columns, ETA_BITS, GRID / 2.0**ETA_BITS)
    query = SampledGradients(model, plain_metric(columns, 1.3), Logistic(), point, False, rows)
    response = rng.integers(0, 2, rows).astype(np.int32) << 13
    return RowGradients(
        ModelData(matrix, response.astype(np.int32)),
        row_weights(matrix, query.metric),
        Logistic(),
        point,
    ), query


@pytest.mark.slow
def test_one_row_moves_a_sum_no_further_than_stated_whatever_the_coefficients():
    """With 1024 coordinates for 3 columns the loop went on into the rows that follow: the change
    grew with their number.
    """
    reader, query = logistic_reader()
    bound = query.sensitivity(dp.Replace()).squared
    for length in (1, 2, 4, 1024):
        with pytest.raises(IndexError):
            reader.gradient(np.array([5]), np.zeros(length))
    assert sum(int(value) ** 2 for value in reader.gradient(np.array([5]), np.zeros(3))) <= bound


@pytest.mark.parametrize("chosen", [[-1], [1 << 14], [0, 1 << 40], [3, -(1 << 14)]])
def test_rows_that_are_not_there_are_refused(chosen):
    with pytest.raises(IndexError):
        logistic_reader()[0].gradient(np.array(chosen), np.zeros(3))


def test_mechanisms_say_which_sizes_they_read():
    matrix, vector = (
        symmetric_noise(Frobenius(3, Fraction(4)), Fraction(1)),
        gaussian_noise(L2(Fraction(4)), Fraction(1)),
    )
    assert [fits_in_size(matrix, size) for size in (5, 6, 7)] == [False, True, True]
    assert all(fits_in_size(vector, size) for size in (1, 5, 600))


# ── arguments of every loop ───────────────────────────────────────────────────────────────────


def gradient_arguments():
    tables_of = Huber(1.345).tables()
    numbers = (4.0, 2.0**-10, float(tables_of.reach), tables_of.clip, tables_of.top)
    return {
        "matrix": np.ones((8, 3), dtype=np.int16),
        "response": np.ones(8, dtype=np.int32),
        "weights": np.ones(8, dtype=np.int32),
        "beta": np.ones(3),
        "numbers": numbers,
        "tables": (tables_of.psi, tables_of.slope, tables_of.slope, np.zeros(1, dtype=np.int64)),
        "sums": np.zeros(3),
    }


def mean_arguments():
    tables_of = Logistic().tables()
    numbers = (0.0, 2.0**-10, float(tables_of.reach), tables_of.clip, tables_of.top)
    return gradient_arguments() | {
        "numbers": numbers,
        "tables": (tables_of.slope, tables_of.mean, tables_of.shift, tables_of.gain),
    }


def place_arguments():
    given = gradient_arguments()
    return {name: given[name] for name in ("matrix", "response", "beta")} | {
        "numbers": given["numbers"][:3],
        "places": np.zeros(8, dtype=np.int64),
    }


def encode_arguments():
    return {
        "values": np.linspace(-2, 2, 5),
        "limits": (-1.0, 1.0, 0.0, 0.0, 4.0, -4.0, 4.0),
        "table": np.arange(9, dtype=np.int16),
        "matrix": np.zeros((8, 3), dtype=np.int16),
        "start": 3,
        "place": 2,
    }


def gram_arguments():
    return {
        "matrix": np.ones((8, 3), dtype=np.int16),
        "multiplier": np.ones(8),
        "block": np.zeros((4, 5)),
        "moved": np.zeros((4, 5)),
        "sums": np.zeros((4, 4)),
    }


def scatter_arguments():
    return {
        "running": np.zeros(4, dtype=np.int64),
        "cells": np.arange(4),
        "part": np.ones(4, dtype=np.int64),
    }


def noise_arguments():
    return {
        "words": np.arange(5, dtype=np.uint64),
        "table": tables()[0],
        "steps": 1024.0,
        "offset": 0.5,
        "slack": 2.0**-51,
        "out": np.zeros(5, dtype=np.int64),
    }


def longer(array, axis=0):
    return np.concatenate([array, array], axis=axis)


def with_number(numbers, place, value):
    return (*numbers[:place], value, *numbers[place + 1 :])


LOOPS = {
    "gradient": (
        model_loops.gradient_loop,
        gradient_arguments,
        {
            "beta": [
                longer,
                lambda b: b[:2],
                lambda b: b * np.nan,
                lambda b: b * 1e305,
                lambda b: b.astype(np.float32),
            ],
            "sums": [lambda s: s[:2]],
            "response": [lambda r: r[:7], lambda r: r.astype(np.int64)],
            "weights": [lambda w: w[:7]],
            "matrix": [longer, lambda m: m[0], lambda m: m.astype(np.int32)],
            "tables": [lambda t: (t[0][:-1], *t[1:]), lambda t: (t[0].astype(np.int64), *t[1:])],
            "numbers": [
                lambda n: with_number(n, 2, n[2] + 1),
                lambda n: with_number(n, 1, 1e308),
                lambda n: with_number(n, 2, 2.5),
                lambda n: with_number(n, 0, -1.0),
                lambda n: with_number(n, 1, np.nan),
            ],
        },
    ),
    "mean gradient": (
        model_loops.gradient_loop,
        mean_arguments,
        {
            "tables": [
                lambda t, place=place: with_number(t, place, t[place][:-1]) for place in (1, 2, 3)
            ]
        },
    ),
    "place": (
        model_loops.place_loop,
        place_arguments,
        {
            "places": [lambda p: p[:7], lambda p: p.astype(np.int32)],
            "beta": [longer, lambda b: b + np.inf],
            "response": [lambda r: r[:7]],
            "numbers": [lambda n: with_number(n, 2, np.inf)],
        },
    ),
    "norm": (
        model_loops.norm_loop,
        lambda: {"z": np.ones((8, 3)), "norms": np.zeros(8)},
        {"norms": [longer], "z": [lambda z: z[:7], lambda z: z[0]]},
    ),
    "gram": (
        model_loops.gram_loop,
        gram_arguments,
        {
            "multiplier": [lambda m: m[:7], lambda m: m.astype(np.int64)],
            "block": [lambda b: b[:3], lambda b: b[:, :4], lambda b: b[:, :0]],
            "moved": [lambda b: b[:3], lambda b: b[:, :4]],
            "sums": [lambda s: s[:3], lambda s: s[:, :3]],
            "matrix": [longer, lambda m: longer(m, 1), lambda m: m.astype(np.int32)],
        },
    ),
    "encode": (
        model_loops.encode_loop,
        encode_arguments,
        {
            "start": [lambda s: 4, lambda s: -1],
            "place": [lambda p: 3, lambda p: -1],
            "table": [lambda t: t[:-1]],
            "matrix": [lambda m: m[:7]],
            "limits": [
                lambda n: with_number(n, 6, 5.0),
                lambda n: with_number(n, 4, np.inf),
                lambda n: with_number(n, 2, np.nan),
                lambda n: with_number(n, 0, 3.0),
            ],
        },
    ),
    "scatter": (
        kernels.numba_scatter,
        scatter_arguments,
        {
            "part": [lambda p: p[:3], lambda p: p.astype(float)],
            "cells": [longer, lambda c: c.astype(float), lambda c: c.reshape(2, 2)],
            "running": [lambda r: r.astype(np.int32), lambda r: r.reshape(2, 2)],
        },
    ),
    "products": (
        kernels.numba_scatter,
        lambda: scatter_arguments() | {"second": np.ones(4, dtype=np.int16)},
        {"second": [longer, lambda s: s.astype(float)], "part": [longer]},
    ),
    "counts": (
        kernels.numba_scatter,
        lambda: {name: scatter_arguments()[name] for name in ("running", "cells")},
        {"cells": [lambda c: c.astype(float)]},
    ),
    "units": (
        unit_sums.numba_units,
        lambda: {
            "units": np.array([0, 0, 2, 5], dtype=np.int32),
            "cells": np.array([0, 9, -1, 1], dtype=np.int32),
            "codes": np.ones(4, dtype=np.int16),
            "running": np.zeros((2, 6), dtype=np.int64),
        },
        {
            "units": [longer, lambda u: u.astype(float)],
            "cells": [lambda c: c[:3], lambda c: c.reshape(2, 2)],
            "codes": [lambda c: c[:3], lambda c: c.astype(float)],
            "running": [lambda r: r[:, :5], lambda r: r.astype(np.int32), lambda r: r[0]],
        },
    ),
    "codes": (
        kernels.numba_encode,
        lambda: {
            "values": np.zeros(4),
            "limits": (0.0, 1.0, 0.5, 0.5, 2.0, -1.0, 1.0),
            "out": np.zeros(4, dtype=np.int16),
        },
        {
            "values": [lambda v: v[:3], lambda v: v.astype(np.float32)],
            "limits": [lambda pair: pair[:6], lambda pair: (*pair[:6], 1)],
            "out": [longer],
        },
    ),
    "noise": (
        noise_kernels.compiled_kernel,
        noise_arguments,
        {
            "out": [lambda o: o[:4], lambda o: o.astype(np.int32)],
            "table": [lambda t: t[: ROWS - 1], lambda t: t[:, :7]],
            "words": [longer, lambda w: w.astype(np.int64)],
        },
    ),
}


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", LOOPS)
def test_every_loop_is_called_with_arguments_that_fit_and_with_no_others(name):
    factory, arguments, changes = LOOPS[name]
    factory()(*arguments().values())
    for argument, ways in changes.items():
        for way in ways:
            given = arguments()
            given[argument] = way(given[argument])
            with pytest.raises(IndexError):
                pytest.fail(f"{argument}: {factory()(*given.values())}")


@pytest.mark.compiled
def test_cells_outside_are_no_cells():
    running, cells = np.zeros(3, dtype=np.int64), np.array([0, 1, 2, 3, -1, 2**40, -(2**40)])
    for part in ((), (np.ones(7, dtype=np.int64),), (np.ones(7, dtype=np.int16),) * 2):
        running[:] = 0
        kernels.numba_scatter()(running, cells, *part)
        assert running.tolist() == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.compiled
def test_extreme_words_stay_inside_the_table():
    words = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1, 2**20, 2**20 - 1, 2**62], dtype=np.uint64)
    out = np.zeros(len(words), dtype=np.int64)
    noise_kernels.compiled_kernel()(words, tables()[0], 1024.0, 0.5, 2.0**-51, out)
    assert out[2] == 0


# ── the tests of compiled loops once more, with bounds checks in the compiled code ────────────


def run_with_bounds_checks(source, folder, *arguments):
    """pytest on the package in `source`, in a process whose compiled code checks every index."""
    paths = os.pathsep.join([str(source), str(REPOSITORY)])
    environment = os.environ | {
        "NUMBA_BOUNDSCHECK": "1",
        "NUMBA_CACHE_DIR": str(folder),
        "PYTHONPATH": paths,
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "compiled",
        *arguments,
    ]
    return subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=600
    )


COMPILED_TESTS = tuple(
    f"tests/claims/test_{name}.py"
    for name in (
        "compiled_bounds",
        "model_blocks",
        "sgd",
        "estimating_equations",
        "exact_sums",
        "noise_uniforms",
    )
)


@pytest.mark.slow
def test_the_tests_of_compiled_loops_pass_with_bounds_checks(tmp_path):
    found = run_with_bounds_checks(Path(dp.__file__).parents[1], tmp_path, *COMPILED_TESTS)
    assert found.returncode == 0, found.stdout[-3000:]
    assert int(found.stdout.split(" passed")[0].split()[-1]) >= 80


PLANTED = {
    "a loop that goes one row too far": (
        "trusted/extensions/estimating/loops.py",
        "arguments_that_fit and norm",
        "for row in range(norms.size)",
        "for row in range(norms.size + 1)",
    ),
    "a place one beyond its array": (
        "trusted/extensions/estimating/loops.py",
        "arguments_that_fit and place",
        "places[row] = ",
        "places[row + 1] = ",
    ),
    "a tile that is one place too far": (
        "trusted/extensions/estimating/loops.py",
        "arguments_that_fit and gram",
        "sums[i + down, j + along] += tile",
        "sums[i + down, j + along + 1] += tile",
    ),
    "a code that is not cut": (
        "trusted/extensions/estimating/loops.py",
        "arguments_that_fit and encode",
        "code = min(max(np.floor((value - center) * per_unit + 0.5), first), last)",
        "code = np.floor((value - center) * per_unit * 99 + 0.5)",
    ),
    "a cell that is not looked at": (
        "trusted/engines/kernels.py",
        "cells_outside",
        "if 0 <= cells[row] < running.size:\n            running[cells[row]] += part[row]",
        "if cells[row] >= 0:\n            running[cells[row]] += part[row]",
    ),
    "a row beyond the noise table": (
        "trusted/noise/kernels.py",
        "extreme_words",
        "radius = steps * table[row, MARGIN] + slack",
        "radius = steps * table[row + 1, MARGIN] + slack",
    ),
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory):
    """What pytest says of each failed test, in one process with all faults planted: no test below
    runs two of the changed loops.
    """
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(
        Path(dp.__file__).parent,
        folder / "discreet",
        ignore=shutil.ignore_patterns("*.nbi", "*.nbc"),
    )
    for module, _, old, new in PLANTED.values():
        changed = folder / "discreet" / module
        assert changed.read_text().count(old) == 1
        changed.write_text(changed.read_text().replace(old, new))
    wanted = " or ".join(f"({wanted})" for _, wanted, _, _ in PLANTED.values())
    found = run_with_bounds_checks(folder, folder / "cache", "-k", wanted, __file__)
    assert found.returncode == 1, found.stdout[-2000:]
    return re.split(r"^_+ (?=test_)", found.stdout, flags=re.MULTILINE)[1:]


@pytest.mark.slow
@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_loop_that_reads_outside_is_noticed_with_bounds_checks(planted, failures):
    _, wanted, _, _ = PLANTED[planted]
    told = [
        text
        for text in failures
        if all(word in text.split("\n")[0] for word in wanted.split(" and "))
    ]
    assert len(told) == 1
    assert "out of bounds" in told[0]
