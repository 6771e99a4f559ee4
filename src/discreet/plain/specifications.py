"""Public functions whose arguments are plain, and specifications that hold nothing else."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from discreet.plain.fields import INITIALISE, KEPT, field_of, is_plain, require_plain
from discreet.plain.kinds import REMEDY, kind_name, refused
from discreet.plain.values import Members, Place, plain_value, rebuilt, settled, text, value

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
Kind = TypeVar("Kind")


def door(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A public function whose arguments, and their names, are plain values before it sees them."""

    @functools.wraps(function)
    def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        positional = [value(given) for given in args]
        named = {text(name, "a name"): value(given, f"{name}=") for name, given in kwargs.items()}
        return function(*positional, **named)

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
            initialise(self, *positional, **named)
            for field in fields:
                held = object.__getattribute__(self, field.name)
                if field.types is not None or id(held) not in seen:
                    require_plain(held, field, asked)

        kind.__init__ = with_plain_values  # type: ignore[method-assign]
        KEPT[id(kind)] = fields
        INITIALISE[id(kind)] = initialise
        return kind

    return decorated


def _for_field(given: Any, place: Place, seen: set[int]) -> Any:
    if is_plain(given):
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
