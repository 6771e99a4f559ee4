"""What can be injected between debit and draw, and who looks: everything that a release shows."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import io
import logging
import re
import sys
import warnings
from fractions import Fraction

import numpy as np

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, symmetric_noise
from discreet.asking.formula import design_of
from discreet.estimators import questions
from discreet.estimators.hypotheses.part_tests import subsample_question
from discreet.estimators.open_keys import open_table_question
from discreet.estimators.quantiles import median_question
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.estimating.metric import metric_of
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.sums import GramMatrix
from discreet.testing.seeded import seeded_session
from discreet.trusted.engines.kernels import in_threads
from discreet.trusted.extensions import part_tests
from discreet.trusted.extensions.estimating import reading as model_reading
from discreet.trusted.extensions.open_keys import counts as open_key_counts
from discreet.trusted.release import Description, Question

SECRET = "cell-7315928"
SCHEMA = {
    "x": dp.Real(0, 100),
    "y": dp.Boolean(),
    "g": dp.Category(["a", "b"], missing="a"),
    "k": dp.Open(),
}
NAMED = logging.getLogger("engine.of.somebody")


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
