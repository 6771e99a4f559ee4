"""Claim: between a debit and its answer nothing is seen but the answer.

An observer keeps all that a program can see of a release. What is said in the engine, in the draw
or in one of their threads must not change it; whatever is raised there must look the same.
"""

from __future__ import annotations

import contextlib
import importlib
import types
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.claims.watchers import (
    METHODS,
    RAISES,
    SAYS,
    SCHEMA,
    SECRET,
    question_for,
    raises,
    release_seen,
    say_everything,
    seen_of,
)

import discreet as dp
from discreet import seclusion
from discreet.seclusion import FAILED, Sealed, Secluded
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID
from discreet.testing.seeded import seeded_session
from discreet.trusted import session
from discreet.trusted.engines import kernels
from discreet.trusted.extensions.selection import ThresholdRun


@pytest.fixture(scope="module")
def data_sets(tmp_path_factory):
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 100, 200)
    columns = {
        "x": x,
        "y": x > 50,
        "g": rng.choice(["a", "b"], 200),
        "k": rng.choice(["p", "q"], 200),
    }
    path = tmp_path_factory.mktemp("seen") / "data.parquet"
    pq.write_table(pa.table(columns), path)
    return {
        "memory": dp.from_arrays(columns, schema=SCHEMA, neighbors=dp.Replace()),
        "files": dp.read_parquet(path, schema=SCHEMA, neighbors=dp.Replace()),
    }


ENGINES = ("memory", "files")
MODES = ("error", "always", "default")


@pytest.mark.few(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", [*METHODS, "draw"])
@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_said_changes_nothing_that_is_seen(engine, method, mode, data_sets, monkeypatch):
    plain = release_seen(data_sets[engine], method, mode, monkeypatch=monkeypatch)
    assert plain[0][0] == "returned"
    assert plain[1:] == ([], "", "")
    one_by_one = SAYS if engine == "memory" and method in ("sums", "estimating", "draw") else {}
    for name, injected in {**one_by_one, "all of it": say_everything}.items():
        assert (
            release_seen(data_sets[engine], method, mode, injected, monkeypatch=monkeypatch)
            == plain
        ), name


@pytest.mark.parametrize("flags", ["raise", "warn", "print", "ignore"])
def test_no_state_of_numpy_lets_a_flag_out(flags, data_sets, monkeypatch):
    plain = release_seen(
        data_sets["memory"], "sums", "error", flags="ignore", monkeypatch=monkeypatch
    )
    for name in ("overflow", "divide", "invalid", "underflow", "overflow in a pool"):
        assert (
            release_seen(
                data_sets["memory"],
                "sums",
                "error",
                SAYS[name],
                flags=flags,
                monkeypatch=monkeypatch,
            )
            == plain
        )


@pytest.mark.few(6)
@pytest.mark.parametrize("method", [*METHODS, "draw"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_failure_looks_the_same(engine, method, data_sets, monkeypatch):
    first = None
    for mode in MODES if engine == "memory" else MODES[:1]:
        for name, injected in RAISES.items():
            found = release_seen(data_sets[engine], method, mode, injected, monkeypatch=monkeypatch)
            kind, error, text, cause, context, frames = found[0]
            assert (kind, error, cause, context) == ("raised", dp.ReleaseFailed, None, None), name
            assert "engine failed after the debit" in text
            assert {place for place, _ in frames} <= {"asked", "release", "_aggregate"}
            assert found[1:] == ([], "", "")
            first = first or (text, found[1:])
            assert (text, found[1:]) == first


@pytest.mark.parametrize("method", [*METHODS, "draw"])
def test_an_interrupt_is_raised_anew(method, data_sets, monkeypatch):
    found = release_seen(
        data_sets["memory"], method, "default", raises(KeyboardInterrupt), monkeypatch=monkeypatch
    )
    assert found[0][:5] == ("raised", KeyboardInterrupt, "", None, None)
    assert found[0][5][-1][0] == "aside"


OPEN = {
    "watch": lambda opened: dp.watch(opened, 10, spend=dp.GDP(1)).above({"g": "a"}),
    "holdout": lambda opened: (
        dp.holdout(opened, threshold=0.1, answers=3, spend=dp.GDP(1))
        .share({"g": "a"}, training=0.5)
        .integer
    ),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("mode", MODES)
def test_an_open_watch_says_nothing_but_its_answers(kind, mode, data_sets, monkeypatch):
    """Its counts are aggregated, and its noise is drawn, outside of `Session.release`."""

    def asked(place, injected):
        opened = seeded_session(data_sets["memory"], dp.ApproxDP(100, 1e-3), 1)
        owner, name = (
            (type(opened._engine), "sums") if place == "engine" else (ThresholdRun, "above")
        )
        plain = getattr(owner, name)

        def wrapped(*args):
            injected()
            return plain(*args)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrapped)
            return seen_of(lambda: OPEN[kind](opened), mode)

    for place in ("engine", "draw"):
        quiet = asked(place, lambda: None)
        assert quiet[0][0] == "returned"
        assert quiet[1:] == ([], "", "")
        assert asked(place, say_everything) == quiet
        failures = [asked(place, injected) for injected in RAISES.values()]
        assert all(found[1:] == ([], "", "") for found in failures)
        assert {found[0][1:5] for found in failures} == {failures[0][0][1:5]}
        assert failures[0][0][1] is dp.LedgerRefused
        assert SECRET not in repr(failures)


def test_no_frame_of_a_failure_holds_the_statistic(data_sets, monkeypatch):
    """`release` is left with a sealed, empty box."""
    opened = seeded_session(data_sets["memory"], dp.ApproxDP(100, 1e-3), 1)
    question = question_for("sums", opened.public)
    monkeypatch.setitem(
        importlib.import_module("discreet.trusted.noise.samplers").SAMPLERS,
        type(question.mechanism),
        raises(ValueError),
    )
    with pytest.raises(dp.ReleaseFailed) as caught:
        opened.release(question)
    boxes = [
        value
        for entry in caught.traceback
        for value in entry.frame.f_locals.values()
        if isinstance(value, Sealed)
    ]
    assert boxes
    assert all(box._content == [] for box in boxes)
    assert repr(boxes[0]) == "Sealed()"


# ── points ────────────────────────────────────────────────────────────────────────────────────


def test_points_keep_every_product_finite():
    """A scale at which |y| beyond some value overflows would tell of the largest y, whatever is
    done with the warning.
    """
    for eta_bits in (0, 24, 64):
        largest = 2.0**1000 / (2.0 ** (31 + eta_bits) + 2.0**52)
        for per_scale in (largest, 2.0**-1000, 1.0, GRID / 2.0**38):
            point = Point((1,), eta_bits, per_scale)
            for argument in (point.furthest, -point.furthest, 1.0, -1.0):
                assert np.finfo(float).tiny <= abs(argument * point.per_scale) < np.inf
        for per_scale in (
            largest * 1.01,
            1e305,
            2.0**-1001,
            5e-324,
            0.0,
            -1.0,
            np.inf,
            np.nan,
            1,
            10**400,
        ):
            with pytest.raises(dp.InvalidParameter):
                Point((1,), eta_bits, per_scale)


# ── mutants: each would be noticed ────────────────────────────────────────────────────────────


def only_ordinary_exceptions(work):
    try:
        with Secluded():
            return work()
    except Exception:
        return FAILED


def chained_failure(self, question, key):
    try:
        with Secluded():
            return Sealed(
                question.query.assemble(session.execute(self._engine, question.query.plan()))
            )
    except Exception as error:
        raise dp.ReleaseFailed(key) from error


MUTANTS = {
    "no floating-point state of their own in pool threads": (
        (kernels, "seclude_worker", lambda: None),
        "overflow in a pool",
    ),
    "no filter of warnings": (
        (seclusion, "_exchange_filters", lambda: lambda: None),
        "warns UserWarning",
    ),
    "no floating-point state": (
        (
            seclusion,
            "np",
            types.SimpleNamespace(errstate=lambda **options: contextlib.nullcontext()),
        ),
        "overflow",
    ),
    "streams as they are": ((seclusion, "_STREAMS", ()), "prints"),
    "logging as it is": ((seclusion, "_exchange_logging", list), "logs 50"),
    "the hook as it is": ((seclusion, "_exchange_hook", lambda: lambda: None), "drops what raises"),
    "only ordinary exceptions are caught": (
        (session, "aside", only_ordinary_exceptions),
        "SystemExit",
    ),
    "the failure is chained": ((session.Session, "_aggregate", chained_failure), "ValueError"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_gap_would_be_noticed(mutant, data_sets, monkeypatch):
    (owner, name, value), kind = MUTANTS[mutant]
    noticed = 0
    for mode in MODES:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            with contextlib.suppress(AssertionError):
                if kind in SAYS:
                    plain = release_seen(data_sets["memory"], "sums", mode, monkeypatch=monkeypatch)
                    assert (
                        release_seen(
                            data_sets["memory"], "sums", mode, SAYS[kind], monkeypatch=monkeypatch
                        )
                        == plain
                    )
                else:
                    found = release_seen(
                        data_sets["memory"], "sums", mode, RAISES[kind], monkeypatch=monkeypatch
                    )
                    assert found[0][1:5] == (dp.ReleaseFailed, found[0][2], None, None)
                continue
            noticed += 1
    assert noticed
    assert type(warnings) is types.ModuleType
