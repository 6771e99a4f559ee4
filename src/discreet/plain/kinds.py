"""Types told by identity, which no class can override: those of values, those that the fields of a
specification admit, and the refusals of all others.
"""

from __future__ import annotations

import dataclasses
import marshal
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from discreet.errors import InvalidParameter

_WHY = (
    "what is checked, paid for and kept must be one value, "
    "and an object of another type can change in between"
)

REMEDY = "use text, numbers, lists of them, and specifications of this package"

_DICT_OF: Any = type.__dict__["__dict__"]
_NAME_OF: Any = type.__dict__["__name__"]
_QUALIFIED_NAME_OF: Any = type.__dict__["__qualname__"]
NUMERATOR: Any = Fraction.__dict__["_numerator"]
DENOMINATOR: Any = Fraction.__dict__["_denominator"]
ATOM_IDS = frozenset(map(id, (str, int, float, bool, type(None))))


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


def is_ours(kind: type) -> bool:
    """Whether a module of this package declares this class; one derived from it is not ours."""
    module = _DICT_OF.__get__(kind).get("__module__")
    if type(module) is not str or not (module == "discreet" or module.startswith("discreet.")):
        return False
    return getattr(sys.modules.get(module), _QUALIFIED_NAME_OF.__get__(kind), None) is kind


def not_exact(given: object, name: str) -> InvalidParameter:
    """The refusal of an object whose class is derived from one of ours."""
    return refused(
        name,
        f"a {kind_name(given)} is none of this package's own kinds",
        "use the class itself, not one derived from it",
    )


def refused(asked: str, found: str, remedy: str) -> InvalidParameter:
    """The refusal of a value that is not plain."""
    return InvalidParameter(asked, found, _WHY, remedy)


# -- what the fields of a specification hold ----------------------------------------

# by the id of the class, which no metaclass can override; classes here live forever
KEPT: dict[int, tuple[_Field, ...]] = {}
INITIALISE: dict[int, Callable[..., None]] = {}  # the constructors without their door


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


def field_of(one: dataclasses.Field[Any], functions: tuple[str, ...]) -> _Field:
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


def require_fields(made: object, fields: tuple[_Field, ...], seen: set[int], asked: str) -> None:
    """Refuses a new specification one of whose fields is not plain; `seen` are known to be."""
    for field in fields:
        held = object.__getattribute__(made, field.name)
        if field.types is not None or id(held) not in seen:
            require_plain(held, field, asked)


def require_plain(held: Any, field: _Field, asked: str) -> None:
    if not _is_right(held, field):
        raise refused(asked, f"its {field.name} is a {kind_name(held)}", REMEDY)


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
    if id(kind) in ATOM_IDS:
        return True
    if kind is tuple:
        return all_atoms(held) or all(map(is_plain, held))
    fields = KEPT.get(id(kind))
    try:
        if kind is Fraction:
            return type(NUMERATOR.__get__(held)) is int and type(DENOMINATOR.__get__(held)) is int
        if fields is None:
            return is_ours(kind)
        for field in fields:
            part = object.__getattribute__(held, field.name)
            if field.types is None and not field.is_function:
                if id(type(part)) not in ATOM_IDS and not is_plain(part):
                    return False
            elif not _is_right(part, field):
                return False
    except AttributeError:
        return False
    return True


def all_atoms(held: Iterable[Any]) -> bool:
    """Whether all members are exact text, numbers or None, told by the identity of their types."""
    return all(map(ATOM_IDS.__contains__, map(id, map(type, held))))


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
    return id(type(given)) in KEPT
