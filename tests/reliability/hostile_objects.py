"""Values that are not what they seem: subclasses of plain types that change their mind, and objects
that pose as others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

# -- hostile objects ----------------------------------------

_TURN = [0]


def turn() -> int:
    """A number that is never the same."""
    _TURN[0] += 1
    return _TURN[0]


def fails(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a hostile object fails")


def _alternating(*_: Any) -> bool:
    return turn() % 2 == 0


EVERYWHERE: dict[str, dict[str, Any]] = {
    "hash changes": {"__hash__": lambda self: turn()},
    "hash changes now and then": {"__hash__": lambda self: 0 if turn() % 3 else turn()},
    "hash changes, equals nothing": {
        "__hash__": lambda self: turn(),
        "__eq__": lambda self, other: False,
        "__ne__": lambda self, other: True,
    },
    "equals everything": {
        "__eq__": lambda self, other: True,
        "__ne__": lambda self, other: False,
        "__hash__": lambda self: 0,
    },
    "equals now and then": {
        "__eq__": _alternating,
        "__ne__": _alternating,
        "__hash__": lambda self: turn() % 2,
    },
    "hash fails": {"__hash__": fails, "__eq__": fails},
    "text lies": {
        "__str__": lambda self: "else",
        "__repr__": lambda self: "0.001",
        "__format__": lambda self, spec: f"turn {turn()}",
    },
    "text fails": {"__str__": fails, "__repr__": fails, "__format__": fails},
    "class is another": {"__class__": property(lambda self: str)},
    "class fails": {"__class__": property(fails)},
    "adapts for SQLite": {
        "__conform__": lambda self, protocol: f"other {turn()}",
        "__hash__": lambda self: turn(),
        "__eq__": lambda self, other: False,
    },
    "pickles as another": {
        "__reduce_ex__": lambda self, protocol: (int, (turn(),)),
        "__reduce__": lambda self: (int, (turn(),)),
    },
    "is false": {"__bool__": lambda self: False, "__len__": lambda self: turn() % 3},
    "attributes fail": {"__getattr__": fails},
}
_COMPARED = {name: lambda self, other: True for name in ("__lt__", "__le__", "__gt__", "__ge__")}
_NUMBER: dict[str, dict[str, Any]] = {
    "number changes": {
        "__float__": lambda self: float(turn()),
        "__int__": lambda self: turn(),
        "__index__": lambda self: turn(),
        "__trunc__": lambda self: turn(),
        "__round__": lambda self, *_: turn(),
        "__floor__": lambda self: turn(),
        "__ceil__": lambda self: turn(),
    },
    "number is huge": {
        "__float__": lambda self: 1e300,
        "__int__": lambda self: 10**18,
        "__index__": lambda self: 10**18,
    },
    "compares as it likes": {
        **_COMPARED,
        "__eq__": lambda self, other: False,
        "__hash__": lambda self: turn(),
    },
    "arithmetic lies": {
        name: lambda self, *_: 0
        for name in (
            "__mul__",
            "__rmul__",
            "__add__",
            "__radd__",
            "__sub__",
            "__rsub__",
            "__truediv__",
            "__pow__",
            "__neg__",
            "__abs__",
        )
    },
    "parts lie": {
        name: property(lambda self: turn()) for name in ("numerator", "denominator", "real", "imag")
    },
}
_ITEMS: dict[str, dict[str, Any]] = {
    "goes through others": {"__iter__": lambda self: iter([turn()])},
    "length changes": {"__len__": lambda self: turn() % 5},
    "members change": {
        "__getitem__": lambda self, place: turn(),
        "__contains__": lambda self, member: True,
        "index": lambda self, member: 0,
    },
    "going through fails": {"__iter__": fails, "__len__": fails, "__getitem__": fails},
}
_OF_TEXT: dict[str, dict[str, Any]] = {
    "text methods lie": {
        name: lambda self, *_: True
        for name in ("isprintable", "startswith", "endswith", "isidentifier")
    }
    | {"__len__": lambda self: 1},
    "text is encoded otherwise": {
        "encode": lambda self, *_: b"else",
        "strip": lambda self, *_: "0",
        "__add__": lambda self, other: "else",
        "join": fails,
        "split": fails,
    },
}
_OF_MAPPINGS: dict[str, dict[str, Any]] = {
    "items change": {
        "items": lambda self: [(f"c{turn()}", turn())],
        "keys": lambda self: [f"c{turn()}"],
        "values": lambda self: [turn()],
    },
    "gets others": {"get": lambda self, *_: turn(), "pop": fails, "copy": fails},
    "items fail": {"items": fails, "keys": fails, "values": fails},
}
_OF_ARRAYS: dict[str, dict[str, Any]] = {
    "array changes": {
        "__array__": lambda self, *_, **__: np.array([turn()]),
        "tolist": lambda self: [turn()],
        "astype": fails,
        "item": fails,
        "copy": fails,
    },
    "array functions fail": {
        "__array_ufunc__": fails,
        "__array_function__": fails,
        "__array_finalize__": lambda self, other: None,
    },
}
BEHAVIOURS: dict[type, dict[str, dict[str, Any]]] = {
    str: EVERYWHERE | _ITEMS | _OF_TEXT,
    int: EVERYWHERE | _NUMBER,
    float: EVERYWHERE | _NUMBER,
    Fraction: EVERYWHERE | _NUMBER,
    Decimal: EVERYWHERE | _NUMBER,
    list: EVERYWHERE | _ITEMS,
    tuple: EVERYWHERE | _ITEMS,
    dict: EVERYWHERE | _ITEMS | _OF_MAPPINGS,
    np.ndarray: EVERYWHERE | _ITEMS | _OF_ARRAYS,
}


def _instance(kind: type, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.view(kind)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = object.__new__(kind)
        for one in dataclasses.fields(value):
            object.__setattr__(made, one.name, getattr(value, one.name))
        return made
    made = kind.__new__(kind, value)
    if isinstance(value, (list, dict)):
        type(value).__init__(made, value)
    return made


class Posing:
    """An object of no kind at all that says it is of the kind of `value`."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        return type(self._value)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_value"), name)


class Shifting(Mapping[Any, Any]):
    """A mapping of its own kind, which shows other items each time after the first."""

    def __init__(self, value: dict[Any, Any]) -> None:
        self._value, self._seen = value, 0

    def __getitem__(self, name: Any) -> Any:
        return self._value[name] if self._seen < 2 else turn()

    def __iter__(self) -> Iterator[Any]:
        self._seen += 1
        return iter(self._value) if self._seen < 2 else iter([f"c{turn()}"])

    def __len__(self) -> int:
        return len(self._value)


def hostile(value: Any, deep: bool = True) -> Iterator[tuple[str, Callable[[], Any]]]:
    """(name, maker) of hostile objects that hold `value`."""
    yield "poses as the kind", lambda: Posing(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from _hostile_specification(value)
        return
    kind = next((known for known in BEHAVIOURS if type(value) is known), None)
    if kind is None:
        return
    for name, members in BEHAVIOURS[kind].items():
        slots = {} if issubclass(kind, (int, tuple, np.ndarray)) else {"__slots__": ()}
        made = type("Hostile", (kind,), {**slots, **members})
        yield name, lambda made=made: _instance(made, value)  # type: ignore[misc]
    if kind is dict:
        yield "a mapping of its own kind", lambda: Shifting(value)
    if kind in (list, tuple, dict) and deep and value:
        for name, maker in _hostile_members(value, kind):
            yield name, maker


def _hostile_members(value: Any, kind: type) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Plain containers of hostile members (and of hostile names)."""
    if kind is dict:
        key = next(iter(value))
        for name, make in hostile(key, deep=False):
            if "hash fails" not in name and "class" not in name:
                yield f"a name: {name}", partial(_with_key, value, key, make)
        for name, make in hostile(value[key], deep=False):
            yield f"an item: {name}", lambda make=make: {**value, key: make()}  # type: ignore[misc]
        return
    for name, make in hostile(value[0], deep=False):
        yield f"a member: {name}", partial(_with_member, value, kind, make)


def _with_member(value: Any, kind: Any, make: Callable[[], Any]) -> Any:
    return kind([make(), *value[1:]])


def _with_key(value: dict[Any, Any], key: Any, make: Callable[[], Any]) -> dict[Any, Any]:
    return {make(): value[key], **{name: held for name, held in value.items() if name != key}}


def _hostile_specification(value: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    kind = type(value)
    lying: dict[str, dict[str, Any]] = {
        "a subclass": {},
        "a subclass that equals everything": {
            "__eq__": lambda self, other: True,
            "__hash__": lambda self: 0,
        },
        "a subclass whose hash changes": {"__hash__": lambda self: turn()},
        "a subclass whose record lies": {"to_dict": lambda self: {"kind": "else"}},
        "a subclass whose attributes change": {
            "__getattribute__": lambda self, name: (
                turn() if turn() % 3 == 0 else object.__getattribute__(self, name)
            )
        },
        "a subclass whose class is another": {"__class__": property(lambda self: kind)},
    }
    for reads in (2, 7, 12, 25):
        lying[f"a subclass that changes its mind after {reads} reads"] = {
            "__getattribute__": _changing_its_mind(value, reads)
        }
    for name, members in lying.items():
        made = type(kind.__name__, (kind,), {"__slots__": (), **members})
        yield name, lambda made=made: _instance(made, value)  # type: ignore[misc]
    for one in dataclasses.fields(value):
        for name, make in hostile(getattr(value, one.name), deep=False):
            yield (
                f"{one.name} smuggled in: {name}",
                lambda make=make, one=one: _smuggled(value, one.name, make()),  # type: ignore[misc]
            )


def _changing_its_mind(value: Any, reads: int) -> Callable[[Any, str], Any]:
    """Fields are right for a while, and something else from then on."""
    names, seen = {one.name for one in dataclasses.fields(value)}, [0]

    def read(self: Any, name: str) -> Any:
        seen[0] += name in names
        return turn() if name in names and seen[0] > reads else object.__getattribute__(self, name)

    return read


def _smuggled(value: Any, name: str, other: Any) -> Any:
    made = _instance(type(value), value)
    object.__setattr__(made, name, other)
    return made
