"""Only plain values pass the door: what is kept, compared or hashed is of an exact built-in type.

A subclass of `str` may hash differently each time, one of `dict` may give other items to the check
than to the computation, one of a specification may change its mind between the proof and the draw.
So whatever a caller hands in is rebuilt once, from what the built-in type itself stores, and only
the rebuilt value is used.

    value      anything: text, numbers, lists, mappings, arrays, specifications, all the way down
    text …     one value of one kind, or a refusal
    door       a public function whose arguments pass through `value`
    kept       a specification (a frozen dataclass) that holds nothing but plain values
    rebuilt    a specification made anew, with all its checks; subclasses are refused

Theorem.  `value` returns a tree of exact `str, int, float, bool, None, bytes, complex, Fraction,
          Decimal, list, tuple, dict, set, frozenset, ndarray`, iterators over lists of these, and
          specifications of this package; or passes on an object of a type that is none of these
          nor a subclass of one, and whose class is what it says it is.
Proof.    Types are read by `type(x)` and compared by identity or by `type.__subclasscheck__`,
          which no class can override; contents are read by unbound methods of the built-in types
          (`str.__str__`, `int.__index__`, `float.__float__`, `dict.items`, `list.__iter__`, …),
          once. Sequences and mappings of other types are read once, into a list or a dict.
Checked.  tests/reliability/test_hostile_objects.py

Exceptions, by design: functions of the caller's own (`dp.subsample_test(test=…)`,
`dp.m_estimate(psi=…, mean=…)`, `ledger.replay(accountant=…)`, `ledger.store(key, make_answer)`)
stay functions: what they return is read as plain. Cells of data are not parameters: they are read
by the total rules of `discreet.schema`.
"""

from __future__ import annotations

import dataclasses
import functools
import marshal
import os
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple, ParamSpec, TypeVar

from discreet.errors import InvalidParameter

DEEPEST = 32  # levels of lists in lists
MOST_MEMBERS = 1 << 23  # of one list or mapping
_WHY = (
    "what is checked, paid for and kept must be one value, "
    "and an object of another type can change in between"
)

_PLAIN = "use text, numbers, lists of them, and specifications of this package"

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Kind = TypeVar("Kind")
Spec = TypeVar("Spec")

_DICT_OF: Any = type.__dict__["__dict__"]
_MRO_OF: Any = type.__dict__["__mro__"]
_NAME_OF: Any = type.__dict__["__name__"]
_QUALIFIED_NAME_OF: Any = type.__dict__["__qualname__"]
_NUMERATOR: Any = Fraction.__dict__["_numerator"]
_DENOMINATOR: Any = Fraction.__dict__["_denominator"]
_REAL: Any = complex.__dict__["real"]
_IMAGINARY: Any = complex.__dict__["imag"]

# by the id of the class, which no metaclass can override; classes here live forever
_KEPT: dict[int, tuple[_Field, ...]] = {}
_INITIALISE: dict[int, Callable[..., None]] = {}  # the constructors without their door


def derives(kind: type, base: type) -> bool:
    """Whether `kind` is `base` or really inherits from it, whatever its metaclass says."""
    return bool(type.__subclasscheck__(base, kind))


def among(kind: type, kinds: Iterable[type]) -> bool:
    """Whether `kind` is one of `kinds`, by identity: ``in`` would ask the metaclass of `kind`."""
    for one in kinds:  # noqa: SIM110 (called for every value; a loop is twice as fast as any)
        if kind is one:
            return True
    return False


def kind_name(given: object) -> str:
    """The name of a value's type, for an error text."""
    return str.__str__(_NAME_OF.__get__(type(given)))


# -- one value of one kind ----------------------------------------


def text(given: object, name: str, *, longest: int | None = None) -> str:
    """The text as an exact `str`; anything else is refused."""
    if not derives(type(given), str):
        raise _refused(name, f"a {kind_name(given)} is not text", "pass text")
    read = str.__str__(given)
    if longest is not None and not 1 <= len(read) <= longest:
        raise _refused(
            name,
            f"not a text of 1 to {longest} characters",
            "pass a shorter text, and not an empty one",
        )
    return read


def whole(given: object, name: str) -> int:
    """The whole number as an exact `int`; a bool, a float and text are refused."""
    read = value(given, name)
    if type(read) is not int:
        raise _refused(name, f"a {kind_name(given)} is not a whole number", "pass a whole number")
    return read


def number(given: object, name: str) -> float:
    """The number as an exact `float`; a bool and text are refused."""
    read = value(given, name)
    if type(read) is float or type(read) is int:
        try:
            return float(read)
        except OverflowError:
            pass
    raise _refused(
        name,
        f"a {kind_name(given)} is not a number that a float can hold",
        "pass a number of ordinary size",
    )


def truth(given: object, name: str) -> bool:
    """Exactly True or False."""
    read = value(given, name)
    if type(read) is not bool:
        raise _refused(
            name, f"a {kind_name(given)} is neither True nor False", "pass True or False"
        )
    return read


def fraction(given: object, name: str) -> Fraction:
    """A new exact `Fraction` of what a Fraction holds."""
    if not derives(type(given), Fraction):
        raise _refused(name, f"a {kind_name(given)} is not a Fraction", "pass a Fraction")
    numerator, denominator = (_slot(one, given, name) for one in (_NUMERATOR, _DENOMINATOR))
    if denominator == 0:
        raise _refused(name, "its denominator is 0", "pass a Fraction")
    return Fraction(numerator, denominator)


def _slot(descriptor: Any, given: object, name: str) -> int:
    try:
        return whole(descriptor.__get__(given), name)
    except AttributeError:
        raise _refused(name, "it holds no number", "pass a Fraction") from None


def path(given: object, name: str) -> str:
    """The path of a file as an exact `str`, asked for once."""
    if not derives(type(given), str):
        try:
            given = os.fspath(given)  # type: ignore[call-overload]
        except Exception:
            found = f"a {kind_name(given)} is not a path"
            raise _refused(name, found, "pass text or a pathlib.Path") from None
    return text(given, name)


# -- anything ----------------------------------------


class _Members:
    """How many members of lists and mappings were read of one parameter,
    in all of them together.
    """

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class _Place(NamedTuple):
    """Where a value stands: its parameter, how deep, and whether specifications are made anew."""

    name: str
    read: _Members
    depth: int = 0
    anew: bool = True

    def below(self) -> _Place:
        if self.depth >= DEEPEST:
            found = f"it is nested more than {DEEPEST} levels deep"
            raise _refused(self.name, found, "pass a flat list")
        return _Place(self.name, self.read, self.depth + 1, self.anew)


def value(given: Any, name: str = "a parameter") -> Any:
    """`given` rebuilt from exact built-in types; see the module's theorem."""
    return _value(given, _Place(name, _Members()))


def _value(given: Any, place: _Place) -> Any:
    kind = type(given)
    if kind is str or kind is int or kind is float or kind is bool or given is None:
        return given
    if id(kind) in _KEPT:
        return rebuilt(given) if place.anew or not is_plain(given) else given
    read = _reader(kind)
    return _other(given, place) if read is None else read(given, place)


def members(given: Iterable[Any], name: str) -> list[Any]:
    """The members of something that can be gone through, read once, each a plain value."""
    return _members(given, _Place(name, _Members()))


def _members(given: Iterable[Any], place: _Place) -> list[Any]:
    inner = place.below()
    return [_value(member, inner) for member in _read_through(given, place)]


def _read_through(given: Iterable[Any], place: _Place) -> list[Any]:
    """The members as they are, gone through once."""
    try:
        found = list(islice(given, MOST_MEMBERS + 1 - place.read.count))
    except (Exception, SystemExit, GeneratorExit):
        raise _refused(place.name, "going through it failed", "pass a list") from None
    place.read.count += len(found)
    if place.read.count > MOST_MEMBERS:
        raise _too_many(place)
    return found


def _too_many(place: _Place) -> InvalidParameter:
    return _refused(place.name, f"it has more than {MOST_MEMBERS} members", "pass a shorter list")


def _mapping(pairs: Iterable[tuple[Any, Any]], place: _Place) -> dict[Any, Any]:
    read: dict[Any, Any] = {}
    inner = place.below()
    for pair in _read_through(pairs, place):
        if type(pair) is not tuple or len(pair) != 2:
            raise _refused(place.name, "its items are not pairs", "pass a dict")
        key, held = _value(pair[0], inner), _value(pair[1], inner)
        if not _hashable(key):
            found = f"a {kind_name(key)} is one of its names"
            raise _refused(place.name, found, "use text as names")
        if key in read:  # hashed by built-in code
            raise _refused(place.name, "one name stands in it twice", "name each entry once")
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


def _set_of(given: Any, place: _Place, kind: Any) -> Any:
    read = _members(kind.__iter__(given), place)
    if not all(_hashable(member) for member in read):
        raise _refused(place.name, "a member of it is neither text nor a number", "pass a list")
    return kind(read)


def _array(given: Any, place: _Place, numpy: Any) -> Any:
    """A copy in an array of the base class; arrays of objects are read as lists."""
    array = numpy.ndarray
    place.read.count += array.size.__get__(given)
    if place.read.count > MOST_MEMBERS:
        raise _too_many(place)
    if array.ndim.__get__(given) == 0:
        raise _refused(
            place.name, "an array of no dimension is neither a number nor a list", "pass the number"
        )
    if array.dtype.__get__(given).hasobject:
        held = array.tolist(given)
        return _members(held, place) if type(held) is list else _value(held, place.below())
    return numpy.array(given, copy=True, subok=False)


def _other(given: Any, place: _Place) -> Any:
    """What is of no built-in type: numpy's, ours, collections of other libraries, anything else."""
    kind, numpy = type(given), sys.modules.get("numpy")
    if numpy is not None and derives(kind, numpy.ndarray):
        return _array(given, place, numpy)
    if numpy is not None and derives(kind, numpy.generic):
        held = numpy.generic.item(given)
        return held if type(held) is kind else _value(held, place.below())
    if is_ours(kind):
        return given
    if any(is_ours(base) for base in _MRO_OF.__get__(kind)[1:]):
        raise not_exact(given, place.name)
    if not _honest(given):
        found = f"a {kind_name(given)} says that it is of another class"
        raise _refused(place.name, found, "pass the value itself")
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


def _items(given: Any, place: _Place) -> list[tuple[Any, ...]]:
    try:
        return [tuple(islice(pair, 3)) for pair in islice(given.items(), MOST_MEMBERS + 1)]
    except (Exception, SystemExit, GeneratorExit):
        raise _refused(place.name, "its items cannot be read", "pass a dict") from None


def _honest(given: Any) -> bool:
    """Whether ``x.__class__`` is the type of x: `isinstance` believes the former."""
    try:
        return given.__class__ is type(given)
    except Exception:
        return False


_Reader = Callable[[Any, _Place], Any]
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


# -- functions ----------------------------------------


def door(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A public function whose arguments, and their names, are plain values before it sees them."""

    @functools.wraps(function)
    def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        positional = [value(given) for given in args]
        named = {text(name, "a name"): value(given, f"{name}=") for name, given in kwargs.items()}
        return function(*positional, **named)

    return asked


# -- specifications ----------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class _Field:
    """A field of a specification: the exact types that its annotation admits;
    None for any plain one.
    """

    name: str
    types: tuple[type, ...] | None
    of_members: bool
    is_function: bool


_ATOMS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool,),
    "None": (type(None),),
    "float": (float, int),
    "Fraction": (Fraction, int, float),
}


def kept(*, functions: tuple[str, ...] = ()) -> Callable[[type[Kind]], type[Kind]]:
    """Class decorator, above ``@dataclass``:
    fields are rebuilt before they are checked, and stay plain.

    `functions` names the fields that hold a function of the caller's own.
    """

    def decorated(kind: type[Kind]) -> type[Kind]:
        declared = dataclasses.fields(kind)  # type: ignore[arg-type]
        fields = tuple(_field(one, functions) for one in declared)
        initialise: Callable[..., None] = kind.__dict__["__init__"]
        asked = kind.__name__

        @functools.wraps(initialise)
        def with_plain_values(self: Any, *args: Any, **kwargs: Any) -> None:
            # a specification in it that is intact is shared; the door makes all anew
            place = _Place(asked, _Members(), anew=False)
            seen: set[int] = set()  # what is known to be plain, and lives as long as the call
            positional = [_for_field(held, place, seen) for held in args]
            named = {
                text(name, asked): _for_field(held, place, seen) for name, held in kwargs.items()
            }
            initialise(self, *positional, **named)
            for field in fields:
                held = object.__getattribute__(self, field.name)
                if field.types is not None or id(held) not in seen:
                    _require_plain(held, field, asked)

        kind.__init__ = with_plain_values  # type: ignore[method-assign]
        _KEPT[id(kind)] = fields
        _INITIALISE[id(kind)] = initialise
        return kind

    return decorated


def _field(one: dataclasses.Field[Any], functions: tuple[str, ...]) -> _Field:
    annotation = one.type if isinstance(one.type, str) else ""
    of_members = annotation.startswith("tuple[") and annotation.endswith(", ...]")
    inner = annotation[len("tuple[") : -len(", ...]")] if of_members else annotation
    parts = [_ATOMS.get(part) for part in inner.split(" | ")]
    types = (
        None
        if any(part is None for part in parts)
        else tuple(kind for part in parts if part for kind in part)
    )
    return _Field(one.name, types, of_members, one.name in functions)


def _for_field(given: Any, place: _Place, seen: set[int]) -> Any:
    if is_plain(given):
        seen.add(id(given))
        return given
    return _settled(_value(given, place))


def _settled(given: Any) -> Any:
    """Lists as tuples: a specification holds nothing that can be changed."""
    if type(given) is list or type(given) is tuple:
        return tuple(_settled(member) for member in given)
    return given


def _require_plain(held: Any, field: _Field, asked: str) -> None:
    if not _is_right(held, field):
        raise _refused(asked, f"its {field.name} is a {kind_name(held)}", _PLAIN)


def _is_right(held: Any, field: _Field) -> bool:
    """Whether a field holds a plain value of a type that its annotation admits."""
    if field.is_function and (held is None or callable(held)):
        return True
    if field.types is None:
        return is_plain(held)
    if field.of_members:
        return type(held) is tuple and all(among(type(member), field.types) for member in held)
    return among(type(held), field.types)


def is_plain(held: Any) -> bool:
    """Whether a value is exact text, an exact number, a specification, or a tuple of these."""
    kind = type(held)
    if id(kind) in _ATOM_IDS:
        return True
    if kind is tuple:
        return _all_atoms(held) or all(map(is_plain, held))
    fields = _KEPT.get(id(kind))
    try:
        if kind is Fraction:
            return type(_NUMERATOR.__get__(held)) is int and type(_DENOMINATOR.__get__(held)) is int
        if fields is None:
            return is_ours(kind)
        for field in fields:
            part = object.__getattribute__(held, field.name)
            if field.types is None and not field.is_function:
                if id(type(part)) not in _ATOM_IDS and not is_plain(part):
                    return False
            elif not _is_right(part, field):
                return False
    except AttributeError:
        return False
    return True


_ATOM_IDS = frozenset(map(id, (str, int, float, bool, type(None))))


def _all_atoms(held: Iterable[Any]) -> bool:
    """Whether all members are exact text, numbers or None, told by the identity of their types."""
    return all(map(_ATOM_IDS.__contains__, map(id, map(type, held))))


def copied(given: Any) -> Any:
    """A copy of a value that is made of exact built-in types all the way down; None for any other.

    `marshal` writes exact built-in types as they are; what else holds a buffer becomes bytes.
    """
    try:
        return marshal.loads(marshal.dumps(given))
    except (ValueError, TypeError, EOFError):
        return None


def is_kept(given: object) -> bool:
    """Whether a value is a specification that `rebuilt` makes anew."""
    return id(type(given)) in _KEPT


def rebuilt(given: Spec, others: list[Any] | None = None) -> Spec:
    """A specification made anew, so that all its checks run; refused unless it is exactly ours.

    Its fields are rebuilt on the way down, each once, so that what its class checks is what it
    holds; `others` takes parts of this package that are no kept specifications, and so are not made
    anew.
    """
    kind = type(given)
    fields = _KEPT.get(id(kind))
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
            if of_kind in _KEPT:
                part = rebuilt(part, others)
            elif of_kind not in _ATOM_IDS:
                part = _rebuilt_part(part, asked, others)
            if field.types is not None:
                _require_plain(part, field, asked)
            held[field.name] = part
    except AttributeError:
        found = "a field of it has no value"
        raise _refused(asked, found, "make it with its constructor") from None
    made: Spec = object.__new__(kind)
    _INITIALISE[id(kind)](made, **held)
    return made


def _rebuilt_part(held: Any, asked: str, others: list[Any] | None) -> Any:
    """A part of a specification: plain, with its own parts rebuilt; lists become tuples."""
    kind = type(held)
    if kind is str or kind is int or kind is float or kind is bool or held is None:
        return held
    if id(kind) in _KEPT:
        return rebuilt(held, others)
    if kind is tuple or kind is list:
        if _all_atoms(held):
            return tuple(held)
        return tuple([_rebuilt_part(member, asked, others) for member in held])
    read = _settled(value(held, asked))
    if not is_plain(read):
        raise _refused(asked, f"it holds a {kind_name(held)}", _PLAIN)
    if type(read) is tuple:
        return _rebuilt_part(read, asked, others)
    if others is not None and type(read) is not Fraction and id(type(read)) not in _ATOM_IDS:
        others.append(read)
    return read


def exactly(given: object, kind: type[Kind], name: str) -> Kind:
    """A new specification of exactly this kind."""
    if type(given) is not kind:
        found = f"a {kind_name(given)} is not a {kind.__name__}"
        raise _refused(name, found, f"pass a {kind.__name__}")
    others: list[Any] = []
    made = rebuilt(given, others)
    if others:  # a part that is not made anew could change
        raise _refused(name, f"it holds a {kind_name(others[0])}", _PLAIN)
    return made


def is_ours(kind: type) -> bool:
    """Whether a module of this package declares this class; one derived from it is not ours."""
    module = _DICT_OF.__get__(kind).get("__module__")
    if type(module) is not str or not (module == "discreet" or module.startswith("discreet.")):
        return False
    return getattr(sys.modules.get(module), _QUALIFIED_NAME_OF.__get__(kind), None) is kind


def not_exact(given: object, name: str) -> InvalidParameter:
    """The refusal of an object whose class is derived from one of ours."""
    return _refused(
        name,
        f"a {kind_name(given)} is none of this package's own kinds",
        "use the class itself, not one derived from it",
    )


def _refused(asked: str, found: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(asked, found, _WHY, remedy)
