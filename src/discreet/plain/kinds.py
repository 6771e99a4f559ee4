"""Types told by identity, which no class can override, and the refusals of all others."""

from __future__ import annotations

import sys
from collections.abc import Iterable
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
