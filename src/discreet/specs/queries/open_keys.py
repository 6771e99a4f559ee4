"""How many rows hold each key that nobody declared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors
from discreet.sensitivity import Rows, histogram_sensitivity
from discreet.specs.queries.keys import Key, cell_count, key_from_dict
from discreet.specs.queries.plans import columns_read
from discreet.specs.statistics import KeyCounts


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """Counts of rows by the texts of the `open` columns and by the cells of `keys` (declared groups
    and filters).
    """

    open: tuple[str, ...]
    keys: tuple[Key, ...]

    def __post_init__(self) -> None:
        if not self.open or len(set(self.open)) != len(self.open):
            raise InvalidParameter(
                "by=",
                "no open column, or one twice",
                "rows are counted by their texts",
                "name each column once",
            )
        cell_count(self.keys)

    @property
    def cells(self) -> int:
        return cell_count(self.keys)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(sorted({*self.open, *columns_read((), self.keys)}))

    @property
    def plain(self) -> bool:
        """Whether a key is one text and nothing else."""
        return len(self.open) == 1 and self.cells == 1

    def name(self, texts: Sequence[str], cell: int) -> str:
        """A key as one text: the text of a single open column, else a JSON list of the texts and of
        the declared cell, where there are several.
        """
        return (
            texts[0]
            if self.plain
            else json.dumps([*texts, *([cell] if self.cells > 1 else [])], ensure_ascii=False)
        )

    def parts(self, name: str) -> tuple[tuple[str, ...], int]:
        """The texts and the cell of a key's name."""
        if self.plain:
            return (name,), 0
        texts = json.loads(name)
        cell = texts.pop() if self.cells > 1 else 0
        return tuple(texts), cell


@plain.kept()
@dataclass(frozen=True, slots=True)
class OpenCounts:
    """Counts of rows by the keys of one or more `Open` columns,
    crossed with the cells of `keys` (declared groups, filters).

    Only keys that some row holds have a count.
    Their names are private until a mechanism with a threshold shows them.

    Theorem.  Under AddRemove at most k rows come or go, under Replace at most k go and k come
              (k = the rows of one unit), each in one key or in none.
    Proof.    A row's key is a function of its own cells;
              `histogram_sensitivity` with rows that may count nowhere.
    Checked.  tests/claims/test_open_keys.py::test_neighbouring_key_counts_differ_as_stated
    """

    open: tuple[str, ...]
    keys: tuple[Key, ...]
    kind: ClassVar[str] = "open counts"
    gives: ClassVar[str] = "keys"
    optional: ClassVar[bool] = True

    @property
    def size(self) -> int:
        """The cells that each combination of texts is split into;
        how many combinations there are is private.
        """
        return cell_count(self.keys)

    def sensitivity(self, neighbors: Neighbors) -> Rows:
        return histogram_sensitivity(neighbors, optional=True)

    def plan(self) -> OpenPlan:
        return OpenPlan(self.open, self.keys)

    def assemble(self, counts: KeyCounts) -> KeyCounts:
        return counts

    def parts(self, name: str) -> tuple[tuple[str, ...], int]:
        """The texts of the open columns and the declared cell that a found name stands for."""
        return self.plan().parts(name)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "open": list(self.open),
            "keys": [key.to_dict() for key in self.keys],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> OpenCounts:
        return cls(tuple(record["open"]), tuple(key_from_dict(key) for key in record["keys"]))
