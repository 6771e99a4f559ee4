"""Claim: between a debit and its answer nothing is seen but the answer.

An observer keeps all that a program can see of a release. What is said in the engine, in the draw
or in one of their threads must not change it; whatever is raised there must look the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import itertools
import logging
import os
import random
import re
import sys
import threading
import types
import warnings
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet import seclusion
from discreet.accounting.calibration.additive import gaussian_noise, symmetric_noise
from discreet.asking.formula import design_of
from discreet.estimators import questions
from discreet.estimators.hypotheses.part_tests import subsample_question
from discreet.estimators.open_keys import open_table_question
from discreet.estimators.quantiles import median_question
from discreet.seclusion import FAILED, Sealed, Secluded, aside
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.metric import metric_of
from discreet.specs.estimating.model import Point
from discreet.specs.estimating.tables import GRID
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import GramMatrix
from discreet.testing.seeded import seeded_session
from discreet.trusted import session
from discreet.trusted.engines import kernels
from discreet.trusted.engines.kernels import in_threads
from discreet.trusted.extensions import part_tests
from discreet.trusted.extensions.estimating import reading as model_reading
from discreet.trusted.extensions.open_keys import counts as open_key_counts
from discreet.trusted.extensions.selection import ThresholdRun
from discreet.trusted.release import Description, Question

SECRET = "cell-7315928"
SCHEMA = {
    "x": dp.Real(0, 100),
    "y": dp.Boolean(),
    "g": dp.Category(["a", "b"], missing="a"),
    "k": dp.Open(),
}
NAMED = logging.getLogger("engine.of.somebody")


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


def always_rejects(x):
    return 0.001


def question_for(method, public):
    """A question that the engine's method answers."""
    spend, quarter = dp.GDP(0.5), Fraction(1, 4)
    if method == "sums":
        return questions.histogram_question(public, "g", spend=spend)
    if method == "histogram":
        return median_question(public, "x", spend=spend)
    if method == "keys":
        return open_table_question(
            public, None, by="k", spend=dp.ApproxDP(1, 1e-6), where=None, delta=None
        )
    if method == "parts":
        return subsample_question(
            public, always_rejects, columns="x", spend=spend, parts=10, inner=0.05
        )
    if method == "gram":
        query = GramMatrix((Factor("x", public.schema["x"].encoding(10)),))
        return Question(
            Description("gram"),
            query,
            gaussian_noise(query.sensitivity(public.neighbors), quarter),
            spend,
        )
    query = WeightedGram(
        design_of("y ~ x", public.schema).model(), metric_of(np.eye(2), 2.0), "metric", False
    )
    return Question(
        Description("metric"),
        query,
        symmetric_noise(query.sensitivity(public.neighbors), quarter),
        spend,
    )


METHODS = (
    "sums",
    "gram",
    "histogram",
    "keys",
    "estimating",
    "parts",
)  # those of the Engine protocol, and of extensions, that are called between debit and draw
EXTENSIONS = {
    "keys": (open_key_counts, "key_counts_of"),
    "estimating": (model_reading, "model_sums"),
    "parts": (part_tests, "rejecting_parts"),
}

# ── what is injected ──────────────────────────────────────────────────────────────────────────


def drop_something():
    class Dropped:
        def __del__(self):
            raise ValueError(SECRET)

    Dropped()


def compare_unlike():
    warnings.warn_explicit(SECRET, BytesWarning, "somewhere.py", 1)


SAYS = {
    **{
        f"warns {kind.__name__}": lambda kind=kind: warnings.warn(SECRET, kind, stacklevel=1)
        for kind in (
            UserWarning,
            DeprecationWarning,
            RuntimeWarning,
            ResourceWarning,
            FutureWarning,
        )
    },
    "warns explicitly": compare_unlike,
    "overflow": lambda: np.array([1e308]) * 10,
    "divide": lambda: np.array([1.0]) / 0,
    "invalid": lambda: np.sqrt(np.array([-1.0])),
    "underflow": lambda: np.array([1e-300]) * 1e-300,
    "overflow of one": lambda: np.float64(1e308) * 10,
    "cast": lambda: np.array([np.nan]).astype(np.int64),
    "prints": lambda: print(SECRET),
    "prints to stderr": lambda: print(SECRET, file=sys.stderr),
    "prints to __stderr__": lambda: print(SECRET, file=sys.__stderr__),
    **{
        f"logs {level}": lambda level=level: (logging.log(level, SECRET), NAMED.log(level, SECRET))
        for level in (1, 10, 20, 30, 40, 50, 99)
    },
    "logs a record": lambda: NAMED.handle(logging.LogRecord("n", 50, "p", 1, SECRET, (), None)),
    "drops what raises": drop_something,
    "overflow in a pool": lambda: in_threads(lambda start: np.array([1e308]) * 10, range(4)),
    "warns in a pool": lambda: in_threads(
        lambda start: warnings.warn(SECRET, stacklevel=1), range(4)
    ),
    "prints and logs in a pool": lambda: in_threads(
        lambda start: (print(SECRET), NAMED.error(SECRET)), range(4)
    ),
}


def say_everything():
    for say in SAYS.values():
        say()


def raises(error):
    def work(*_):
        cell = SECRET  # what a frame holds
        raise error(cell)

    return work


def recurses():
    return recurses() + 1


def chained():
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        raise ValueError(SECRET) from error


RAISES = {
    **{
        error.__name__: raises(error)
        for error in (
            ValueError,
            SystemExit,
            MemoryError,
            GeneratorExit,
            StopIteration,
            asyncio.CancelledError,
            UserWarning,
            Exception,
        )
    },
    "recursion": recurses,
    "chained": chained,
    "in a pool": lambda: in_threads(raises(ValueError), range(4)),
    "exit in a pool": lambda: in_threads(raises(SystemExit), range(4)),
    "group": lambda: (_ for _ in ()).throw(BaseExceptionGroup(SECRET, [SystemExit(1)])),
}

# ── who looks ─────────────────────────────────────────────────────────────────────────────────


class Listener(logging.Handler):
    """A handler of every level, which is a filter too."""

    def __init__(self, seen):
        super().__init__(-1000)
        self.seen = seen

    def emit(self, record):
        self.seen.append(("log", record.getMessage()))

    def filter(self, record):
        self.seen.append(("filter", record.getMessage()))
        return True


def frames_of(error):
    """What the frames of the library hold."""
    found, trace = [], error.__traceback__
    while trace is not None:
        if "/discreet/" in trace.tb_frame.f_code.co_filename:
            found.append(
                (trace.tb_frame.f_code.co_name, sorted(map(repr, trace.tb_frame.f_locals.values())))
            )
        trace = trace.tb_next
    return found


def everything_in_place():
    return (
        warnings.filters,
        list(warnings.filters),
        type(warnings),
        sys.stdout,
        sys.stderr,
        sys.__stdout__,
        sys.__stderr__,
        sys.unraisablehook,
        logging.Logger.handle,
        logging.Logger.isEnabledFor,
        logging.basicConfig,
        logging.root.handlers[:],
        logging.getLogRecordFactory(),
    )


def same_objects(before, after):
    return (
        all(
            old is new or (isinstance(old, list) and old == new)
            for old, new in zip(before, after, strict=True)
        )
        and before[0] is after[0]
    )


def seen_of(work, mode, *, flags="call"):
    """All that a program sees of work(): what it returns or raises,
    and everything said meanwhile.
    """
    seen, listener, factory = [], Listener([]), logging.getLogRecordFactory()
    listener.seen = seen
    out, err, hook, level = io.StringIO(), io.StringIO(), sys.unraisablehook, logging.root.level

    def make(*args, **options):
        seen.append(("record", str(args[4])))
        return factory(*args, **options)

    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.resetwarnings()
        if mode != "default":
            warnings.simplefilter(mode)
        warnings.showwarning = lambda message, *rest: seen.append(("warning", str(message)))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        real = sys.__stdout__, sys.__stderr__
        stack.callback(
            lambda: (setattr(sys, "__stdout__", real[0]), setattr(sys, "__stderr__", real[1]))
        )
        sys.__stdout__, sys.__stderr__ = out, err
        stack.callback(setattr, sys, "unraisablehook", hook)
        sys.unraisablehook = lambda unraisable: seen.append(
            ("unraisable", str(unraisable.exc_value))
        )
        for logger in (logging.root, NAMED):
            logger.addHandler(listener)
            logger.addFilter(listener)
            stack.callback(logger.removeHandler, listener)
            stack.callback(logger.removeFilter, listener)
        logging.root.setLevel(1)
        stack.callback(logging.root.setLevel, level)
        logging.setLogRecordFactory(make)
        stack.callback(logging.setLogRecordFactory, factory)
        old_call = np.seterrcall(lambda kind, flag: seen.append(("flag", kind)))
        stack.callback(np.seterrcall, old_call)
        stack.enter_context(np.errstate(all=flags))
        before = everything_in_place()
        try:
            outcome = ("returned", work())
        except BaseException as error:
            text = re.sub(r"key='[^']*'", "key", str(error))
            outcome = (
                "raised",
                type(error),
                text,
                error.__cause__,
                error.__context__,
                frames_of(error),
            )
        assert same_objects(before, everything_in_place())
    return outcome, seen, out.getvalue(), err.getvalue()


def release_seen(data, method, mode, injected=None, *, flags="call", monkeypatch):
    """What is seen of a release, with something injected into the engine's method (or into the
    draw).
    """
    opened = seeded_session(data, dp.ApproxDP(100, 1e-3), 1)
    question, calls = question_for("sums" if method == "draw" else method, opened.public), []
    # the rehearsal on made-up rows, before the debit, runs the same methods: it is over by now
    opened._rehearsal.require(question.query)

    def wrap(function):
        def wrapped(*args):
            answer = function(*args)
            calls.append(1)
            if injected is not None:
                injected()
            return answer

        return wrapped

    with monkeypatch.context() as patch:
        if method == "draw":
            samplers = importlib.import_module("discreet.trusted.noise.samplers").SAMPLERS
            patch.setitem(
                samplers, type(question.mechanism), wrap(samplers[type(question.mechanism)])
            )
        else:
            owner, name = EXTENSIONS.get(method, (type(opened._engine), method))
            patch.setattr(owner, name, wrap(getattr(owner, name)))
        found = seen_of(lambda: opened.release(question, key="once").integers, mode, flags=flags)
    assert calls, "the injected place was not reached"
    assert SECRET not in repr(found)
    return found


ENGINES = ("memory", "files")
MODES = ("error", "always", "default")


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
            assert {place for place, _ in frames} <= {"release", "_aggregate"}
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


@pytest.mark.parametrize("mode", MODES)
def test_an_open_watch_says_nothing_but_its_answers(mode, data_sets, monkeypatch):
    """Its counts are aggregated, and its noise is drawn, outside of `Session.release`."""

    def asked(place, injected):
        opened = seeded_session(data_sets["memory"], dp.ApproxDP(100, 1e-3), 1)
        watch = dp.watch(opened, 10, spend=dp.GDP(1))
        owner, name = (
            (type(opened._engine), "sums") if place == "engine" else (ThresholdRun, "above")
        )
        plain = getattr(owner, name)

        def wrapped(*args):
            injected()
            return plain(*args)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, wrapped)
            return seen_of(lambda: watch.above({"g": "a"}), mode)

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


# ── other threads, nested and crossing sections ───────────────────────────────────────────────


def test_other_threads_keep_all_they_have():
    def work():
        return [
            injected()
            for name, injected in SAYS.items()
            if "pool" not in name
            and "flow" not in name
            and name not in ("divide", "invalid", "cast")
        ] and None

    def in_another_thread():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    plain = seen_of(in_another_thread, "always")

    def beside_a_section():
        with Secluded():
            in_another_thread()

    assert seen_of(beside_a_section, "always") == plain
    assert len(plain[1]) > 20
    assert SECRET in plain[2]
    assert SECRET in plain[3]
    assert seen_of(lambda: aside(work), "always")[1:] == ([], "", "")


def test_the_caller_of_a_record_is_found_beside_a_section():
    records = []
    logger = logging.getLogger("beside")
    handler = logging.Handler()
    handler.emit = records.append
    logger.addHandler(handler)
    logger.propagate = False
    with Secluded():
        thread = threading.Thread(target=lambda: logger.error("here"))
        thread.start()
        thread.join()
    logger.removeHandler(handler)
    assert [record.filename for record in records] == ["test_nothing_is_seen.py"]


def test_filters_that_another_thread_saves_and_restores_open_no_gap():
    """catch_warnings of another thread, entered before a section and left inside it, puts back
    filters that know nothing of the section.
    """
    seen, steps = [], threading.Barrier(2, timeout=30)

    def other():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            steps.wait()
            steps.wait()
        steps.wait()

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda *rest: seen.append(rest)
        thread = threading.Thread(target=other)
        thread.start()
        steps.wait()
        with Secluded():
            warnings.warn(SECRET, stacklevel=1)
            steps.wait()
            steps.wait()
            warnings.warn(SECRET, stacklevel=1)
        thread.join()
    assert seen == []


def test_a_library_that_saves_filters_inside_a_section_leaves_them_as_they_were():
    before = everything_in_place()
    with Secluded(), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.warn(SECRET, stacklevel=1)
    assert same_objects(before, everything_in_place())


def test_crossing_sections_of_many_threads_leave_everything_in_place():
    before, failures = everything_in_place(), []

    def work(seed):
        draw = random.Random(seed)
        for _ in range(60):
            with Secluded():
                if draw.random() < 0.5:
                    with Secluded():
                        warnings.warn(SECRET, stacklevel=1)
                if draw.random() < 0.3 and aside(raises(SystemExit)) is not FAILED:
                    failures.append(seed)
                warnings.warn(SECRET, stacklevel=1)
                print(SECRET)
            if seclusion.secluded():
                failures.append(seed)

    out = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out):
        warnings.simplefilter("error")
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []
    assert out.getvalue() == ""
    assert same_objects(before, everything_in_place())
    assert seclusion._open == 0
    assert seclusion._undo == []


def test_a_sealed_statistic_is_taken_once_and_not_copied():
    import copy
    import pickle

    box = Sealed([7315928])
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(box)
    assert "7315928" not in repr(box)
    assert box.take() == [7315928]
    with pytest.raises(IndexError):
        box.take()


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


# ── interrupts, forks and streams that change meanwhile ───────────────────────────────────────


def interrupted_at(line):
    """aside(), with an interrupt at its line-th line in the module; whether it has so many."""
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        if frame.f_code.co_filename != seclusion.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == line:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        seclusion.aside(lambda: None)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return lines >= line


def test_an_interrupt_anywhere_leaves_later_sections_closed():
    """An interrupt between counting a section and exchanging for it left every later
    section open.
    """
    streams, numbers = (sys.stdout, sys.stderr), 0
    for line in itertools.count(1):
        if not interrupted_at(line):
            break
        numbers = line
        # Python runs no handler between a block and the release of its lock; a trace does
        seclusion._lock = threading.RLock()
        # an interrupt in the last line of a section may leave it;
        # the next one must work all the same
        seclusion._here.depth = 0
        heard = io.StringIO()
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            seclusion.aside(
                lambda: (
                    print("cell"),
                    print("cell", file=sys.stderr),
                    warnings.warn("cell", stacklevel=1),
                )
            )
            print("outside")
        assert heard.getvalue() == "outside\n", line
        seclusion.aside(lambda: None)
    assert numbers > 40
    seclusion._open = 0
    seclusion.aside(lambda: None)
    assert (sys.stdout, sys.stderr) == streams


def test_a_stream_that_is_set_while_a_section_is_open_is_held_too_and_put_back():
    opened, done = threading.Event(), threading.Event()

    def elsewhere():
        with seclusion.Secluded():
            opened.set()
            done.wait(10)

    before, heard = sys.stdout, io.StringIO()
    for _ in range(3):
        opened.clear()
        done.clear()
        thread = threading.Thread(target=elsewhere)
        thread.start()
        opened.wait(10)
        with contextlib.redirect_stdout(heard):
            seclusion.aside(lambda: print("cell"))
            done.set()
            thread.join()
    seclusion.aside(lambda: None)
    assert sys.stdout is before
    assert heard.getvalue() == ""
    assert type(warnings) is types.ModuleType


def test_a_child_forked_beside_a_section_has_its_own_streams():
    opened, done = threading.Event(), threading.Event()

    def elsewhere():
        with seclusion.Secluded():
            opened.set()
            done.wait(10)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    opened.wait(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fork beside threads
        child = os.fork()
    if child == 0:
        right = type(warnings) is types.ModuleType and type(sys.stdout) is not seclusion._Stream
        seclusion.aside(lambda: None)
        os._exit(0 if right and type(sys.stderr) is not seclusion._Stream else 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_interrupt_that_a_test_raises_is_no_rejection():
    """Whoever writes the function could tell by an interrupt whether a cell is there."""
    data = dp.from_arrays({"x": [1.0] * 40}, schema={"x": dp.Real(0, 2)}, neighbors=dp.AddRemove())
    session = data.open(budget=dp.PureDP(100))

    def interrupts(x):
        raise KeyboardInterrupt

    result = dp.subsample_test(
        session, interrupts, columns="x", parts=4, inner=0.2, spend=dp.PureDP(50)
    )
    assert result.release.integers == (0,)
