"""Functions of one row that can keep nothing: a part of Python in which a call leaves no trace.

A function that counts its calls, or writes what it saw into a list, gives a row another value for
the rows before it: then one row moves many terms of a sum, and no noise is calibrated to that.
Watching a function cannot prove that it keeps nothing. So a function is accepted for what it is
made of, and what runs is a copy made of these parts alone.

    values       numbers, text, True, False, None, tuples and frozen sets of these, in the function,
                 its defaults and the names that it finds outside; no "%" in text
    names        the module math and its functions; a few built-in ones (`BUILT_IN`)
    attributes   those of math, and a few methods of text, numbers, lists and mappings (`METHODS`)
    instructions `INSTRUCTIONS`: no attribute or outside name is written, nothing is imported, no
                 exception is caught, no set is built, no text is formatted

Theorem.  A copy that `pure_copy` returns gives, for equal rows, equal values, whatever it was
          called with before.
Proof.    At the start of a call it can reach its row, which is made anew for it, and the values
          above, none of which can be changed: there is no instruction that writes an attribute or
          an outside name, and the only things whose members are written or appended to were made
          in the call. So each call starts from the same state, and its instructions, operators
          and functions are functions of their arguments. Three things in Python are not: the
          address of an object, which text formatting, sets of NaN, `hash` and `id` show; what is
          caught where memory ends; and clocks, files and modules. None can be reached: text
          without "%" formats nothing, and the rest is not in the lists.
Checked.  tests/claims/test_row_functions.py
"""

from __future__ import annotations

import builtins
import dis
import math
import types
from collections.abc import Callable, Iterator
from typing import Any

from discreet.errors import InvalidParameter

Function = Callable[[dict[str, Any]], Any]
BUILT_IN = (
    *("abs", "all", "any", "bool", "divmod", "enumerate", "float", "int", "len", "list", "max"),
    *("min", "pow", "range", "reversed", "round", "sorted", "sum", "tuple", "zip"),
)
METHODS = (
    *("append", "bit_length", "count", "endswith", "get", "index", "is_integer", "items", "keys"),
    *("lower", "lstrip", "rstrip", "split", "startswith", "strip", "upper", "values"),
)
_KEEP_NOTHING = """
CACHE RESUME NOP EXTENDED_ARG POP_TOP PUSH_NULL COPY SWAP LOAD_CONST LOAD_SMALL_INT
LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW
LOAD_FAST_BORROW_LOAD_FAST_BORROW STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST
STORE_FAST_MAYBE_NULL DELETE_FAST LOAD_GLOBAL LOAD_DEREF STORE_DEREF LOAD_CLOSURE
MAKE_CELL COPY_FREE_VARS LOAD_ATTR LOAD_METHOD BINARY_OP BINARY_SUBSCR BINARY_SLICE
STORE_SLICE STORE_SUBSCR DELETE_SUBSCR COMPARE_OP IS_OP CONTAINS_OP UNARY_NEGATIVE
UNARY_NOT UNARY_INVERT UNARY_POSITIVE TO_BOOL CALL PRECALL KW_NAMES CALL_KW
CALL_FUNCTION_EX POP_JUMP_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
POP_JUMP_FORWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE
POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_FALSE
POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE JUMP_IF_TRUE_OR_POP
JUMP_IF_FALSE_OR_POP JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT NOT_TAKEN
GET_ITER FOR_ITER END_FOR POP_ITER UNPACK_SEQUENCE BUILD_TUPLE BUILD_LIST BUILD_MAP
BUILD_CONST_KEY_MAP BUILD_SLICE LIST_APPEND LIST_EXTEND LIST_TO_TUPLE MAP_ADD DICT_UPDATE
DICT_MERGE RETURN_VALUE RETURN_CONST RETURN_GENERATOR YIELD_VALUE CALL_INTRINSIC_1
MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE RERAISE
"""
INSTRUCTIONS = frozenset(_KEEP_NOTHING.split())
_MATH = types.SimpleNamespace(
    **{
        name: held
        for name, held in vars(math).items()
        if not name.startswith("_") and type(held) in (float, types.BuiltinFunctionType)
    }
)
_OWN = {name: getattr(builtins, name) for name in BUILT_IN}
_ATTRIBUTES = frozenset((*vars(_MATH), *METHODS))
_WRITES_CELL = ("STORE_DEREF", "DELETE_DEREF")


def pure_copy(function: object) -> Function:
    """A function of one row that keeps nothing, made of the parts of the given one; refuses what
    has other parts, for what they are and not for what they do.
    """
    if type(function) is not types.FunctionType:
        raise _refused(f"a {type(function).__name__} is no function written in Python")
    code, defaults = (
        function.__code__,
        function.__defaults__ or (),
    )  # read once; a code cannot change
    outside, cells = function.__globals__, function.__closure__ or ()
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & 0x0C:
        raise _refused("it does not take one row, and nothing else")
    for one in _codes(code):
        _require_instructions(one, code.co_freevars)
    held = [_plain(cell.cell_contents, "a variable around it") for cell in cells]
    names = {name for one in _codes(code) for name in _outside_names(one)}
    own = {"__builtins__": _OWN} | {
        name: _found(name, outside[name]) for name in names if name in outside
    }
    for name in names - own.keys():
        if name not in _OWN:
            raise _refused(f"it uses {name}, which is not among what may be used")
    return types.FunctionType(
        code,
        own,
        "row_function",
        tuple(_plain(value, "a default") for value in defaults),
        tuple(map(types.CellType, held)),
    )


def texts_of(function: object) -> frozenset[str]:
    """All text that a function has as a constant: the names of columns that it may read."""
    code = getattr(function, "__code__", None)
    if type(code) is not types.CodeType:
        return frozenset()
    return frozenset(text for one in _codes(code) for text in _texts(one.co_consts))


def _texts(held: Any) -> Iterator[str]:
    for one in held:
        if type(one) is str:
            yield one
        elif type(one) is tuple:
            yield from _texts(one)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A code and all codes in it."""
    yield code
    for constant in code.co_consts:
        if type(constant) is types.CodeType:
            yield from _codes(constant)


def _outside_names(code: types.CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_GLOBAL":
            yield step.argval


def _require_instructions(code: types.CodeType, around: tuple[str, ...]) -> None:
    """Refuses an instruction that is not known to keep nothing; `around` are the variables that
    outlive a call.
    """
    for step in dis.get_instructions(code):
        if step.opname not in INSTRUCTIONS:
            raise _refused(f"its instruction {step.opname} is not among those that keep nothing")
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and step.argval not in _ATTRIBUTES:
            raise _refused(f"it reads .{step.argval}, which is not among what may be used")
        if step.opname in _WRITES_CELL and step.argval in around:
            raise _refused(f"it writes {step.argval}, a variable around it")
    for constant in code.co_consts:
        if type(constant) is not types.CodeType:
            _plain(constant, "a constant")


def _found(name: str, held: Any) -> Any:
    """What a name outside stands for, as something that cannot change."""
    if held is math:
        return _MATH
    for own in vars(_MATH).values():
        if held is own:
            return own
    return _plain(held, name)


def _plain(held: Any, what: str) -> Any:
    kind = type(held)
    if kind is tuple:
        return tuple(_plain(one, what) for one in held)
    if kind is frozenset:  # what "in {1, 2}" looks in, in one order as long as the process lives
        return frozenset(_plain(one, what) for one in held)
    if kind is str and "%" in held:
        raise _refused(f"{what} is text with a %, by which text is formatted")
    if kind not in (int, float, bool, str, type(None)):
        raise _refused(f"{what} is a {kind.__name__}")
    return held


def _refused(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a function of one row",
        found,
        "what a function keeps from one row would change the values of others, and the noise "
        "covers one row's value",
        "write it with arithmetic, comparisons, math and the columns of its row, such as "
        "lambda row: row['a'] * row['b']; a fit's decisions are asked with accuracy(fit)",
    )
