"""Anything, rebuilt from exact built-in types; functions and specifications that take nothing else.

The theorem stands in `discreet.plain`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple, ParamSpec, TypeVar

from discreet.errors import InvalidParameter
from discreet.plain.calls import wrong_call
from discreet.plain.kinds import (
    ATOM_IDS,
    DENOMINATOR,
    INITIALISE,
    KEPT,
    NUMERATOR,
    REMEDY,
    all_atoms,
    among,
    derives,
    field_of,
    is_ours,
    is_plain,
    kind_name,
    not_exact,
    refused,
    require_fields,
    require_plain,
)

DEEPEST = 32  # levels of lists in lists
MOST_MEMBERS = 1 << 23  # of one list or mapping

Spec = TypeVar("Spec")
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Kind = TypeVar("Kind")

_MRO_OF: Any = type.__dict__["__mro__"]
_REAL: Any = complex.__dict__["real"]
_IMAGINARY: Any = complex.__dict__["imag"]


# -- one value of one kind ----------------------------------------


def text(given: object, name: str, *, longest: int | None = None) -> str:
    """The text as an exact `str`; anything else is refused."""
    if type(given) is not str and not derives(type(given), str):
        raise refused(name, f"a {kind_name(given)} is not text", "pass text")
    read = str.__str__(given)
    if longest is not None and not 1 <= len(read) <= longest:
        raise refused(
            name,
            f"not a text of 1 to {longest} characters",
            "pass a shorter text, and not an empty one",
        )
    return read


def whole(given: object, name: str) -> int:
    """The whole number as an exact `int`; a bool, a float and text are refused."""
    read = value(given, name)
    if type(read) is not int:
        raise refused(name, f"a {kind_name(given)} is not a whole number", "pass a whole number")
    return read


def number(given: object, name: str) -> float:
    """The number as an exact `float`; a bool and text are refused."""
    read = value(given, name)
    if type(read) is float or type(read) is int:
        try:
            return float(read)
        except OverflowError:
            pass
    raise refused(
        name,
        f"a {kind_name(given)} is not a number that a float can hold",
        "pass a number of ordinary size",
    )


def truth(given: object, name: str) -> bool:
    """Exactly True or False."""
    read = value(given, name)
    if type(read) is not bool:
        raise refused(name, f"a {kind_name(given)} is neither True nor False", "pass True or False")
    return read


def fraction(given: object, name: str) -> Fraction:
    """A new exact `Fraction` of what a Fraction holds."""
    if type(given) is not Fraction and not derives(type(given), Fraction):
        raise refused(name, f"a {kind_name(given)} is not a Fraction", "pass a Fraction")
    numerator, denominator = (_slot(one, given, name) for one in (NUMERATOR, DENOMINATOR))
    if denominator == 0:
        raise refused(name, "its denominator is 0", "pass a Fraction")
    if denominator > 0 and math.gcd(numerator, denominator) == 1:  # as nearly all are
        made = object.__new__(Fraction)
        NUMERATOR.__set__(made, numerator)
        DENOMINATOR.__set__(made, denominator)
        return made
    return Fraction(numerator, denominator)


def _slot(descriptor: Any, given: object, name: str) -> int:
    try:
        held = descriptor.__get__(given)
    except AttributeError:
        raise refused(name, "it holds no number", "pass a Fraction") from None
    return held if type(held) is int else whole(held, name)


def path(given: object, name: str) -> str:
    """The path of a file as an exact `str`, asked for once."""
    if not derives(type(given), str):
        try:
            given = os.fspath(given)  # type: ignore[call-overload]
        except Exception:
            found = f"a {kind_name(given)} is not a path"
            raise refused(name, found, "pass text or a pathlib.Path") from None
    return text(given, name)


# -- anything ----------------------------------------


class Members:
    """How many members of lists and mappings were read of one parameter,
    in all of them together.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Place(NamedTuple):
    """Where a value stands: its parameter, how deep, and whether specifications are made anew."""

    name: str
    read: Members
    depth: int = 0
    anew: bool = True

    def below(self) -> Place:
        if self.depth >= DEEPEST:
            found = f"it is nested more than {DEEPEST} levels deep"
            raise refused(self.name, found, "pass a flat list")
        return Place(self.name, self.read, self.depth + 1, self.anew)


def value(given: Any, name: str = "a parameter") -> Any:
    """`given` rebuilt from exact built-in types; see the module's theorem."""
    return plain_value(given, Place(name, Members()))


def plain_value(given: Any, place: Place) -> Any:
    kind = type(given)
    if kind is str or kind is int or kind is float or kind is bool or given is None:
        return given
    if id(kind) in KEPT:
        return rebuilt(given) if place.anew or not is_plain(given) else given
    read = _reader(kind)
    return _other(given, place) if read is None else read(given, place)


def members(given: Iterable[Any], name: str) -> list[Any]:
    """The members of something that can be gone through, read once, each a plain value."""
    return _members(given, Place(name, Members()))


def _members(given: Iterable[Any], place: Place) -> list[Any]:
    inner = place.below()
    return [plain_value(member, inner) for member in _read_through(given, place)]


def _read_through(given: Iterable[Any], place: Place) -> list[Any]:
    """The members as they are, gone through once."""
    try:
        found = list(islice(given, MOST_MEMBERS + 1 - place.read.count))
    except (Exception, SystemExit, GeneratorExit):
        raise refused(place.name, "going through it failed", "pass a list") from None
    place.read.count += len(found)
    if place.read.count > MOST_MEMBERS:
        raise _too_many(place)
    return found


def _too_many(place: Place) -> InvalidParameter:
    return refused(place.name, f"it has more than {MOST_MEMBERS} members", "pass a shorter list")


def _mapping(pairs: Iterable[tuple[Any, Any]], place: Place) -> dict[Any, Any]:
    read: dict[Any, Any] = {}
    inner = place.below()
    for pair in _read_through(pairs, place):
        if type(pair) is not tuple or len(pair) != 2:
            raise refused(place.name, "its items are not pairs", "pass a dict")
        key, held = plain_value(pair[0], inner), plain_value(pair[1], inner)
        if not _hashable(key):
            found = f"a {kind_name(key)} is one of its names"
            raise refused(place.name, found, "use text as names")
        if key in read:  # hashed by built-in code
            raise refused(place.name, "one name stands in it twice", "name each entry once")
        read[key] = held
    return read


def _hashable(key: Any) -> bool:
    """Whether a rebuilt value is hashed and compared by built-in code alone."""
    kind = type(key)
    if kind is tuple:
        return all(_hashable(part) for part in key)
    if kind is Decimal and Decimal.is_snan(key):  # has no hash
        return False
    return key is None or among(kind, (str, int, float, bool, bytes, Fraction, Decimal, type))


def _set_of(given: Any, place: Place, kind: Any) -> Any:
    read = _members(kind.__iter__(given), place)
    if not all(_hashable(member) for member in read):
        raise refused(place.name, "a member of it is neither text nor a number", "pass a list")
    return kind(read)


def _array(given: Any, place: Place, numpy: Any) -> Any:
    """A copy in an array of the base class; arrays of objects are read as lists."""
    array = numpy.ndarray
    place.read.count += array.size.__get__(given)
    if place.read.count > MOST_MEMBERS:
        raise _too_many(place)
    if array.ndim.__get__(given) == 0:
        raise refused(
            place.name, "an array of no dimension is neither a number nor a list", "pass the number"
        )
    if array.dtype.__get__(given).hasobject:
        held = array.tolist(given)
        return _members(held, place) if type(held) is list else plain_value(held, place.below())
    return numpy.array(given, copy=True, subok=False)


def _other(given: Any, place: Place) -> Any:
    """What is of no built-in type: numpy's, ours, collections of other libraries, anything else."""
    kind, numpy = type(given), sys.modules.get("numpy")
    if numpy is not None and derives(kind, numpy.ndarray):
        return _array(given, place, numpy)
    if numpy is not None and derives(kind, numpy.generic):
        held = numpy.generic.item(given)
        return held if type(held) is kind else plain_value(held, place.below())
    if is_ours(kind):
        return given
    if any(is_ours(base) for base in _MRO_OF.__get__(kind)[1:]):
        raise not_exact(given, place.name)
    if not _honest(given):
        found = f"a {kind_name(given)} says that it is of another class"
        raise refused(place.name, found, "pass the value itself")
    try:
        collected = next(
            (base for base in (Mapping, Iterator, Iterable) if issubclass(kind, base)), None
        )
    except Exception:  # these ask the class of the class
        raise not_exact(given, place.name) from None
    if collected is Mapping:
        return _mapping(_items(given, place), place)
    if collected is Iterator:
        return iter(_members(given, place))
    if collected is Iterable and not callable(given):
        return _members(given, place)
    return given


def _items(given: Any, place: Place) -> list[tuple[Any, ...]]:
    try:
        return [tuple(islice(pair, 3)) for pair in islice(given.items(), MOST_MEMBERS + 1)]
    except (Exception, SystemExit, GeneratorExit):
        raise refused(place.name, "its items cannot be read", "pass a dict") from None


def _honest(given: Any) -> bool:
    """Whether ``x.__class__`` is the type of x: `isinstance` believes the former."""
    try:
        return given.__class__ is type(given)
    except Exception:
        return False


_Reader = Callable[[Any, Place], Any]
_READERS: tuple[tuple[type, _Reader], ...] = (
    (str, lambda given, place: str.__str__(given)),
    (bool, lambda given, place: given),
    (int, lambda given, place: int.__index__(given)),
    (float, lambda given, place: float.__float__(given)),
    (tuple, lambda given, place: tuple(_members(tuple.__iter__(given), place))),
    (list, lambda given, place: _members(list.__iter__(given), place)),
    (OrderedDict, lambda given, place: _mapping(OrderedDict.items(given), place)),
    (dict, lambda given, place: _mapping(dict.items(given), place)),
    (Fraction, lambda given, place: fraction(given, place.name)),
    (Decimal, lambda given, place: Decimal(given)),
    (set, lambda given, place: _set_of(given, place, set)),
    (frozenset, lambda given, place: _set_of(given, place, frozenset)),
    (bytes, lambda given, place: bytes.__bytes__(given)),
    (complex, lambda given, place: complex(_REAL.__get__(given), _IMAGINARY.__get__(given))),
)


_EXACT: dict[int, _Reader] = {id(known): read for known, read in _READERS}


def _reader(kind: type) -> _Reader | None:
    """How a type is read that really is one of the built-in types, or inherits from one."""
    exact = _EXACT.get(id(kind))
    if exact is not None:
        return exact
    for known, read in _READERS:
        if kind is known or type.__subclasscheck__(known, kind):
            return read
    return None


# -- specifications ----------------------------------------


def rebuilt(given: Spec, others: list[Any] | None = None) -> Spec:
    """A specification made anew, so that all its checks run; refused unless it is exactly ours.

    Its fields are rebuilt on the way down, each once, so that what its class checks is what it
    holds; `others` takes parts of this package that are no kept specifications, and so are not made
    anew.
    """
    kind = type(given)
    fields = KEPT.get(id(kind))
    if fields is None:
        raise not_exact(given, "a specification")
    asked, held = kind.__name__, {}
    try:
        for field in fields:
            part = object.__getattribute__(given, field.name)
            if field.is_function and (part is None or callable(part)):
                held[field.name] = part
                continue
            of_kind = id(type(part))
            if of_kind in KEPT:
                part = rebuilt(part, others)
            elif of_kind not in ATOM_IDS:
                part = _rebuilt_part(part, asked, others)
            if field.types is not None:
                require_plain(part, field, asked)
            held[field.name] = part
    except AttributeError:
        found = "a field of it has no value"
        raise refused(asked, found, "make it with its constructor") from None
    made: Spec = object.__new__(kind)
    INITIALISE[id(kind)](made, **held)
    return made


def _rebuilt_part(held: Any, asked: str, others: list[Any] | None) -> Any:
    """A part of a specification: plain, with its own parts rebuilt; lists become tuples."""
    kind = type(held)
    if kind is str or kind is int or kind is float or kind is bool or held is None:
        return held
    if id(kind) in KEPT:
        return rebuilt(held, others)
    if kind is tuple or kind is list:
        if all_atoms(held):
            return tuple(held)
        return tuple([_rebuilt_part(member, asked, others) for member in held])
    read = settled(value(held, asked))
    if not is_plain(read):
        raise refused(asked, f"it holds a {kind_name(held)}", REMEDY)
    if type(read) is tuple:
        return _rebuilt_part(read, asked, others)
    if others is not None and type(read) is not Fraction and id(type(read)) not in ATOM_IDS:
        others.append(read)
    return read


def settled(given: Any) -> Any:
    """Lists as tuples: a specification holds nothing that can be changed."""
    if type(given) is list or type(given) is tuple:
        return tuple(settled(member) for member in given)
    return given


# -- functions and specifications ----------------------------------------


def door(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A public function whose arguments, and their names, are plain values before it sees them."""

    @functools.wraps(function)
    def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        positional = [value(given) for given in args]
        named = {text(name, "a name"): value(given, f"{name}=") for name, given in kwargs.items()}
        try:
            return function(*positional, **named)
        except TypeError:
            refusal = wrong_call(function, positional, named)
            if refusal is None:
                raise
        raise refusal

    return asked


def kept(*, functions: tuple[str, ...] = ()) -> Callable[[type[Kind]], type[Kind]]:
    """Class decorator, above ``@dataclass``:
    fields are rebuilt before they are checked, and stay plain.

    `functions` names the fields that hold a function of the caller's own.
    """

    def decorated(kind: type[Kind]) -> type[Kind]:
        declared = dataclasses.fields(kind)  # type: ignore[arg-type]
        fields = tuple(field_of(one, functions) for one in declared)
        initialise: Callable[..., None] = kind.__dict__["__init__"]
        asked = kind.__name__

        @functools.wraps(initialise)
        def with_plain_values(self: Any, *args: Any, **kwargs: Any) -> None:
            # a specification in it that is intact is shared; the door makes all anew
            place = Place(asked, Members(), anew=False)
            seen: set[int] = set()  # what is known to be plain, and lives as long as the call
            positional = [_for_field(held, place, seen) for held in args]
            named = {
                text(name, asked): _for_field(held, place, seen) for name, held in kwargs.items()
            }
            refusal = None
            try:
                initialise(self, *positional, **named)
            except TypeError:
                refusal = wrong_call(initialise, [self, *positional], named)
                if refusal is None:
                    raise
            if refusal is not None:
                raise refusal
            require_fields(self, fields, seen, asked)

        kind.__init__ = with_plain_values  # type: ignore[method-assign]
        KEPT[id(kind)] = fields
        INITIALISE[id(kind)] = initialise
        return kind

    return decorated


def _for_field(given: Any, place: Place, seen: set[int]) -> Any:
    if id(type(given)) in ATOM_IDS or is_plain(given):
        seen.add(id(given))
        return given
    return settled(plain_value(given, place))


def exactly(given: object, kind: type[Kind], name: str) -> Kind:
    """A new specification of exactly this kind."""
    if type(given) is not kind:
        found = f"a {kind_name(given)} is not a {kind.__name__}"
        raise refused(name, found, f"pass a {kind.__name__}")
    others: list[Any] = []
    made = rebuilt(given, others)
    if others:  # a part that is not made anew could change
        raise refused(name, f"it holds a {kind_name(others[0])}", REMEDY)
    return made
