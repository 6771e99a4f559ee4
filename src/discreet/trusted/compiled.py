"""Loops compiled by numba, and kept on disk under a name that says everything they bake in.

numba keeps compiled code by its file's content or date, and does not look at constants that the
code names but other files hold. So the name under which code is kept has a SHA-256 of the loop's
instructions, its literals, every name in it, its defaults, every constant and function that it
names, and the options.

Claim.    Code that was compiled with other constants, or from other instructions, is never run.
Proof.    Its name on disk differs, short of a collision. What has no exact text is refused, so that
          nothing is baked in that the name does not say.
Checked.  tests/trusted/noise/test_compiled_names.py
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any


def compiled(loop: Callable[..., Any], **options: Any) -> Any:
    """A loop compiled when it is first called, or None where numba cannot be loaded."""
    try:
        numba: Any = importlib.import_module("numba")
    except Exception:  # not installed, or broken: numpy gives the same numbers
        return None
    loop.__qualname__ = f"{loop.__name__}_{baked_in(loop, options)}"
    try:
        return numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # no folder to keep the compiled code in
        return numba.njit(**options)(loop)


def baked_in(loop: Callable[..., Any], options: dict[str, Any]) -> str:
    """The SHA-256 of everything that compiled code depends on."""
    return hashlib.sha256(_text([loop, options]).encode()).hexdigest()


def _text(value: Any) -> str:
    """The one text of a constant, or of a function with all that it names."""
    if isinstance(value, FunctionType):
        named = inspect.getclosurevars(value)
        code = value.__code__
        # names too: `min` and `max`, or two functions of numpy, have equal instructions
        names = [code.co_names, code.co_varnames[: code.co_argcount], code.co_flags]
        held = {**named.globals, **named.nonlocals}
        defaults = [value.__defaults__, value.__kwdefaults__]
        return _text([code.co_code, code.co_consts, names, defaults, held])
    if isinstance(value, ModuleType) and not value.__name__.startswith("discreet"):
        return value.__name__
    if isinstance(value, dict):
        return _text([f"{name}: {_text(value[name])}" for name in sorted(value)])
    if isinstance(value, (list, tuple, set, frozenset)):
        texts = [_text(one) for one in value]
        return repr(sorted(texts) if isinstance(value, (set, frozenset)) else texts)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return f"{type(value).__name__} {value!r}"
    raise TypeError(f"a compiled loop names a {type(value).__name__}, which has no exact text")
