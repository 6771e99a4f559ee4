"""What is kept is nobody else's: copies of specifications, and caches whose keys and values no
caller holds.

An object that was handed out can be edited, frozen or not (`object.__setattr__`). Were it the key
of a cache, or its value, the cache would answer one question with the number of another.

Theorem.  What a `remembered` function returns is what its function gives for these arguments,
          whatever callers did to earlier arguments and to what was returned before.
Proof.    Keys are tuples of exact built-in values, which cannot be changed, and of types; every
          specification and Fraction that is returned is a new one.
Checked.  tests/claims/test_nothing_kept_is_shared.py
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

from discreet.plain.kinds import ATOM_IDS, DENOMINATOR, NUMERATOR, is_ours

Given = TypeVar("Given")
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_NOTHING: Any = object()
_hidden = threading.local()
_BARE_IDS = frozenset(map(id, (str, int)))  # of types whose values are their own keys
_NAMES: dict[int, tuple[str, ...]] = {}  # of the fields of our classes, by the class's id


def twin(given: Given) -> Given:
    """A specification of equal parts, none of which can be changed by way of the other; Fractions
    and tuples of these alike. Nothing is checked: `rebuilt` does that.
    """
    copy: Given = _twin(given)
    return copy


def _twin(given: Any) -> Any:
    kind = type(given)
    if id(kind) in ATOM_IDS:
        return given
    if kind is tuple:
        atoms = all(map(ATOM_IDS.__contains__, map(id, map(type, given))))
        return given if atoms else tuple([_twin(one) for one in given])
    if kind is Fraction:
        copy = object.__new__(Fraction)
        NUMERATOR.__set__(copy, NUMERATOR.__get__(given))
        DENOMINATOR.__set__(copy, DENOMINATOR.__get__(given))
        return copy
    names = _names(kind)
    if names is None:
        return given
    copy = object.__new__(kind)
    for name in names:
        held = getattr(given, name)
        object.__setattr__(copy, name, held if id(type(held)) in ATOM_IDS else _twin(held))
    return copy


def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a specification; None for what is none."""
    names = _NAMES.get(id(kind))
    if names is None and is_ours(kind) and dataclasses.is_dataclass(kind):
        names = _NAMES[id(kind)] = tuple(field.name for field in dataclasses.fields(kind))
    return names


def exact_key(given: Any) -> Any:
    """A value as something that can be hashed, equal for equal values of equal types alone."""
    kind = type(given)
    if kind is str or kind is int:
        return given
    if kind is tuple:
        bare = all(map(_BARE_IDS.__contains__, map(id, map(type, given))))
        return given if bare else tuple(map(exact_key, given))
    if kind is Fraction:
        return Fraction, NUMERATOR.__get__(given), DENOMINATOR.__get__(given)
    if kind is float and not given:
        return kind, str(given)  # 0.0 and −0.0 are equal
    if id(kind) in ATOM_IDS or isinstance(given, Enum):
        return kind, given
    names = _names(kind)
    if names is None:
        raise TypeError(f"a {kind.__name__} is no key")
    return kind, *(exact_key(getattr(given, name)) for name in names)


@contextlib.contextmanager
def forgetting() -> Iterator[None]:
    """A section of this thread after which nothing is remembered that it was the first to ask: what
    a hidden run asked for would be told by the time of later questions.
    """
    before = getattr(_hidden, "kept", None)
    kept: list[tuple[dict[Any, Any], Any]] = []
    _hidden.kept = kept
    try:
        yield
    finally:
        _hidden.kept = before
        for held, key in kept:
            held.pop(key, None)


def remembered(
    most: int, *, copied: bool = True
) -> Callable[[Callable[Parameters, Returned]], Callable[Parameters, Returned]]:
    """Decorator of a function of plain values: as `functools.lru_cache`, by the theorem above.

    `copied` is False for what its module alone reads, and hands to nobody.
    """

    def decorated(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
        held: dict[Any, Any] = {}

        @functools.wraps(function)
        def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
            try:
                key = tuple(map(exact_key, args)), tuple(sorted(kwargs.items())) if kwargs else ()
            except TypeError:  # a number of numpy's, say: nothing is kept under it
                return function(*args, **kwargs)
            found = held.get(key, _NOTHING)
            if found is _NOTHING:
                found = function(*args, **kwargs)
                hidden = getattr(_hidden, "kept", None)
                if hidden is not None:
                    hidden.append((held, key))
                elif len(held) >= most:
                    held.clear()
                held[key] = found
            answer: Returned = twin(found) if copied else found
            return answer

        asked.cache_clear = held.clear  # type: ignore[attr-defined]
        return asked

    return decorated
