"""Compiled code is kept under the hash of what it bakes in: a constant that changes is never met by
code that was compiled with another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

import discreet
from discreet.trusted.compiled import baked_in
from discreet.trusted.noise import kernels

# with LARGEST_DECIDED = 0 no word at all is decided
UNDECIDED_OF_64 = """
import numpy as np
from discreet.trusted.noise import kernels
from discreet.trusted.noise.tables import tables
CHANGE
words = np.arange(1, 65, dtype=np.uint64) << np.uint64(50)
out = np.empty(64, dtype=np.int64)
loop = kernels.compiled_kernel()
print(loop(words, tables()[0], 1024.0, 0.5, 2.0**-51, out))
"""
CHANGED = "kernels.LARGEST_DECIDED = -1.0"
BY_DATE_ALONE = (
    "import discreet.trusted.compiled as module; module.baked_in = lambda loop, options: 'same';"
)


def undecided(cache: Path, change: str) -> int:
    """How many of 64 words a fresh process leaves open, with its compiled code kept in `cache`."""
    path = os.pathsep.join([str(Path(discreet.__file__).parents[1]), *sys.path])
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": path}
    code = UNDECIDED_OF_64.replace("CHANGE", change)
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return int(found.stdout)


@pytest.mark.slow
@pytest.mark.compiled
def test_a_constant_that_changes_is_compiled_anew(tmp_path: Path) -> None:
    assert undecided(tmp_path, "") < 64
    kept = len(list(tmp_path.rglob("*.nbc")))
    assert kept == 1
    assert undecided(tmp_path, CHANGED) == 64
    assert undecided(tmp_path, "") < 64
    assert len(list(tmp_path.rglob("*.nbc"))) == 2


@pytest.mark.slow
@pytest.mark.compiled
def test_names_without_the_hash_would_run_stale_code(tmp_path: Path) -> None:
    """The control: where the name does not say what is baked in, the old code is run."""
    assert undecided(tmp_path, BY_DATE_ALONE) < 64
    assert undecided(tmp_path, BY_DATE_ALONE + CHANGED) < 64


BAKED = [
    "TAIL_MASK",
    "LOCAL_BITS",
    "LOCAL_MASK",
    "ONE",
    "CENTRE",
    "ROW_SHIFT",
    "UNDECIDED",
    "LARGEST_DECIDED",
    "MARGIN",
    "CONSTANT",
    "LINEAR",
    "QUADRATIC",
    "CUBIC",
    "QUARTIC",
    "QUINTIC",
    "SEXTIC",
]


@pytest.mark.parametrize("name", BAKED)
def test_the_hash_depends_on_every_constant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = baked_in(kernels._each_word, {})
    monkeypatch.setattr(kernels, name, getattr(kernels, name) + 1)
    assert baked_in(kernels._each_word, {}) != before


def test_every_constant_that_the_loop_names_is_listed_above() -> None:
    code = kernels._each_word.__code__
    named = {name for name in code.co_names if name.isupper()}
    assert named == set(BAKED)


def test_the_hash_depends_on_instructions_literals_options_and_functions() -> None:
    def named(text: str, **others: object) -> FunctionType:
        space = {"np": np, "SCALE": 2.0, **others}
        exec(text, space)
        function = space["loop"]
        assert isinstance(function, FunctionType)
        return function

    plain = "def loop(x):\n    return SCALE * x + 1.0"
    same = baked_in(named(plain), {"nogil": True})
    assert same == baked_in(named(plain), {"nogil": True})
    helper = named("def loop(x):\n    return x")
    calls = "def loop(x):\n    return inner(x)"
    hashes = {
        same,
        baked_in(named(plain), {"nogil": False}),
        baked_in(named(plain, SCALE=3.0), {"nogil": True}),
        baked_in(named(plain, SCALE=2), {"nogil": True}),
        baked_in(named(plain.replace("1.0", "1.5")), {"nogil": True}),
        baked_in(named(plain.replace("+", "-")), {"nogil": True}),
        baked_in(named(calls, inner=helper), {"nogil": True}),
        baked_in(named(calls, inner=named("def loop(x):\n    return -x")), {"nogil": True}),
    }
    assert len(hashes) == 8


@pytest.mark.parametrize("value", [np.zeros(3), object(), kernels], ids=["array", "object", "ours"])
def test_what_has_no_exact_text_is_refused(value: object) -> None:
    space: dict[str, object] = {"TABLE": value}
    exec("def loop(x):\n    return TABLE", space)
    loop = space["loop"]
    assert isinstance(loop, FunctionType)
    with pytest.raises(TypeError, match="no exact text"):
        baked_in(loop, {})


def made(text: str) -> FunctionType:
    names: dict[str, object] = {"np": np}
    exec(text, names)
    loop = names["f"]
    assert isinstance(loop, FunctionType)
    return loop


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("return np.floor(x)", "return np.ceil(x)"),
        ("return min(x, 1)", "return max(x, 1)"),
        ("return x.sum()", "return x.prod()"),
    ],
)
def test_loops_that_differ_in_a_name_alone_have_other_hashes(one: str, other: str) -> None:
    first, again, second = (made(f"def f(x):\n    {body}") for body in (one, one, other))
    assert baked_in(first, {}) == baked_in(again, {}) != baked_in(second, {})


def test_loops_that_differ_in_a_default_alone_have_other_hashes() -> None:
    for kind in ("", "*, "):
        first, second = (made(f"def f(x, {kind}k={k}):\n    return x + k") for k in (1, 2))
        assert baked_in(first, {}) != baked_in(second, {})
