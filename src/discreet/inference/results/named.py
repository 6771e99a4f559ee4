"""Numbers with names: the vector of a result's estimates, and one of them with its interval."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.errors import InvalidParameter, shown
from discreet.inference.results.summary import number_text

Name = str | tuple[str, ...]
SHOWN_NAMES = 20


class NamedVector(np.ndarray[Any, np.dtype[np.float64]]):
    """A numpy vector whose entries have names: ``params["age"]``, or ``params["north", "yes"]``
    where a name has several parts. What numpy makes of it (a slice, a sum, a product) is a plain
    array or number.
    """

    names: tuple[Name, ...]

    def __new__(cls, values: npt.ArrayLike, names: Iterable[Name] = ()) -> NamedVector:
        made = np.array(values, dtype=np.float64).view(cls)
        made.names = tuple(names)
        return made

    def __array_finalize__(self, other: object) -> None:
        self.names = ()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.get("out")
        if out is not None:
            options["out"] = tuple(_bare(one) for one in out)
        return getattr(ufunc, method)(*map(_bare, inputs), **options)

    def __getitem__(self, key: Any) -> Any:
        if is_name(key):
            return float(_bare(self)[place_of_name(key, self.names)])
        return _bare(self)[key]

    def __contains__(self, value: object) -> bool:
        return value in self.names if is_name(value) else bool(np.any(_bare(self) == value))

    def to_dict(self) -> dict[Name, float]:
        """The numbers by name."""
        return dict(zip(self.names, self.tolist(), strict=True))

    def __reduce__(self) -> Any:
        return NamedVector, (_bare(self), self.names)

    def __deepcopy__(self, memo: object) -> NamedVector:
        return NamedVector(self, self.names)

    def __repr__(self) -> str:
        if len(self.names) != self.size or self.ndim != 1:
            return repr(_bare(self))
        words = [name_text(name) for name in self.names]
        width = max(map(len, words), default=0)
        return "\n".join(
            f"{word:<{width}}  {value:.6g}" for word, value in zip(words, self, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One estimate of a result: `estimate`, `interval` at `level`, `std_error`, the share of its
    variance that privacy cost, and the estimate as it was before it was projected.
    """

    name: Name
    quantity: str
    estimate: float
    low: float
    high: float
    level: float
    std_error: float
    noise_share: float
    unprojected: float

    @property
    def interval(self) -> tuple[float, float]:
        """(low, high)."""
        return self.low, self.high

    def __str__(self) -> str:
        ends = " … ".join(number_text(end, self.std_error) for end in self.interval)
        return (
            f"{name_text(self.name)}: {number_text(self.estimate, self.std_error)} "
            f"({100 * self.level:g}% interval {ends})"
        )


def is_name(key: object) -> bool:
    """Whether a key is a name, not a position: a text, or several."""
    parts = key if isinstance(key, tuple) else (key,)
    return bool(parts) and all(isinstance(part, str) for part in parts)


def name_text(name: Name) -> str:
    """A name in one piece."""
    return name if isinstance(name, str) else ", ".join(name)


def place_of_name(key: Any, names: tuple[Name, ...]) -> int:
    """Where a name stands; an unknown one is refused."""
    if key in names:
        return names.index(key)
    known = "; ".join(name_text(name) for name in names[:SHOWN_NAMES])
    raise InvalidParameter(
        "a name",
        f"{shown(key)} is none of this result",
        "entries are read by the names that its table shows, or by position",
        f"name one of: {known}" if known else "use a position",
    )


def _bare(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, NamedVector) else value
