"""Sections out of which nothing is seen, by themselves: threads, nesting, interrupts, forks."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import random
import sys
import threading
import types
import warnings

import pytest
from tests.claims.watchers import SAYS, SECRET, everything_in_place, raises, same_objects, seen_of

import discreet as dp
from discreet import seclusion
from discreet.seclusion import FAILED, Sealed, Secluded, aside

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
    assert [record.filename for record in records] == ["test_sections.py"]


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
