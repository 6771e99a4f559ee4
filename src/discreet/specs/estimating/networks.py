"""What is asked of the rows of a network: clipped gradients of any rows, for a descent; and in how
many rows a network decides as the response does.

Gradients of a row are never written down one by one. The gradient of a layer's matrix is the outer
product of the row's errors and its inputs, so that its squared norm is ‖e‖²·‖(a, 1)‖², and a whole
row is clipped by making its errors smaller.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.neighbors import Neighbors, Replace
from discreet.sensitivity import L1, L2, OneRow
from discreet.specs.estimating.batches import RowReader, checked_reader, require_sampled
from discreet.specs.estimating.components import UNIT_BITS
from discreet.specs.estimating.layers import (
    ERROR_BITS,
    LARGEST_WEIGHTS,
    Network,
    network_from_dict,
)
from discreet.specs.estimating.model import Model, model_from_dict
from discreet.specs.queries.keys import Key

NORM_BITS = ERROR_BITS + UNIT_BITS  # gradients are whole numbers of 2**-30
SMALLEST_CLIP, LARGEST_CLIP = 1 << (NORM_BITS - 10), 1 << (NORM_BITS + 6)
CLIP_BITS = 12


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """A reader of gradients (`weights` None), or the rows in which these weights decide right and
    wrong.
    """

    model: Model
    network: Network
    clip: int
    weights: tuple[int, ...] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return self.model.reads


@plain.kept()
@dataclass(frozen=True, slots=True)
class NetworkGradients:
    """Sums of clipped gradients of a network's loss over any rows, at any weights on its grid.

    `clip` is C in whole numbers of 2**-NORM_BITS. `rows` and `optional` are as in
    `SampledGradients`.
    """

    model: Model
    network: Network
    clip: int
    optional: bool
    rows: int | None
    kind: ClassVar[str] = "network gradients"
    gives: ClassVar[str] = "rows"

    def __post_init__(self) -> None:
        _require_model(self.model, self.network)
        if type(self.clip) is not int or not SMALLEST_CLIP <= self.clip <= LARGEST_CLIP:
            raise _bad("the norm that it clips to is not between 1/1024 and 64")

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return self.network.size

    def sensitivity(self, neighbors: Neighbors) -> OneRow:
        """What one row adds to a sum.

        Theorem.  A row adds a vector of whole numbers of norm at most C, at all weights, whatever
                  the other rows of its batch are.
        Proof.    The row's gradient is, for every layer, the outer product of its errors e and its
                  inputs (a, 1), exact functions of the row (layers.py); its squared norm N is
                  Σ‖e‖²‖(a, 1)‖². Errors become e′ = e·f·2**-CLIP_BITS cut toward zero, with
                  f ≤ 2**CLIP_BITS·min(1, C/√N), so that |e′| ≤ |e|·min(1, C/√N) and the norm of
                  what is added is at most √N·C/√N. Filters as in `SampledGradients`.
        Checked.  tests/claims/test_networks.py::test_no_row_adds_more_than_the_clip_norm
        """
        require_sampled(neighbors, self.rows)
        change = "replaced" if isinstance(neighbors, Replace) else "added or removed"
        return OneRow(Fraction(self.clip) ** 2, change, self.rows)

    def plan(self) -> NetworkPlan:
        return NetworkPlan(self.model, self.network, self.clip)

    def assemble(self, reader: RowReader) -> RowReader:
        """The reader itself; refused where it has other rows than the declared number."""
        return checked_reader(reader, self.rows, optional=self.optional)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "network": self.network.to_dict(),
            "clip": self.clip,
            "optional": self.optional,
            "rows": self.rows,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> NetworkGradients:
        return cls(
            model_from_dict(record["model"]),
            network_from_dict(record["network"]),
            record["clip"],
            record["optional"],
            record["rows"],
        )


@plain.kept()
@dataclass(frozen=True, slots=True)
class Agreement:
    """In how many rows the decision of a network with given weights is the response; and (`both`)
    in how many it is not.

    A network without hidden layers is a linear predictor. A row without a response is none of the
    first; where rows may be left out (`optional`), the first alone says no share.
    """

    model: Model
    network: Network
    weights: tuple[int, ...]
    optional: bool
    both: bool
    kind: ClassVar[str] = "agreement"
    gives: ClassVar[str] = "vector"

    def __post_init__(self) -> None:
        _require_model(self.model, self.network)
        if self.network.outcome == "number":
            raise _bad("its outcome is a number, which is never exactly right")
        if (
            len(self.weights) != self.network.size
            or not all(type(weight) is int for weight in self.weights)
            or sum(map(abs, self.weights)) > LARGEST_WEIGHTS
        ):
            raise _bad("its weights are others than its network has, or too large")

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.model.keys

    @property
    def size(self) -> int:
        return 2 if self.both else 1

    def sensitivity(self, neighbors: Neighbors) -> tuple[L1, L2]:
        """ℓ₁ and ℓ₂ sensitivities.

        Theorem.  k = `neighbors.rows` rows move the count of right rows by at most k; both counts
                  together by k in both norms where they come or go, by 2k and √2·k where they are
                  exchanged.
        Proof.    Whether a row is right is a function of that row alone, as its decision is exact
                  (layers.py). It is 1 in at most one of the two counts; k rows that all change
                  over move one count by k and the other by −k, and no exchange moves them further.
        Checked.  tests/claims/test_networks.py::test_agreement_moves_no_further_than_stated
        """
        rows = neighbors.rows
        moved = 2 if self.both and isinstance(neighbors, Replace) else 1
        return L1(Fraction(moved * rows)), L2(Fraction(moved * rows**2))

    def plan(self) -> NetworkPlan:
        return NetworkPlan(self.model, self.network, SMALLEST_CLIP, self.weights)

    def assemble(self, counts: tuple[int, int]) -> list[int]:
        """The rows that are right, and those that are not."""
        return list(counts[: self.size])

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "model": self.model.to_dict(),
            "network": self.network.to_dict(),
            "weights": [str(weight) for weight in self.weights],
            "optional": self.optional,
            "both": self.both,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Agreement:
        return cls(
            model_from_dict(record["model"]),
            network_from_dict(record["network"]),
            tuple(int(weight) for weight in record["weights"]),
            record["optional"],
            record["both"],
        )


def _require_model(model: Model, network: Network) -> None:
    response = model.response
    if type(network) is not Network or len(model.columns) != network.inputs or response is None:
        raise _bad("its model has other columns than its network, or no response")
    if (response.level is None) != (network.outcome == "number"):
        raise _bad("its response is a number and its outcome is not, or the reverse")


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a question about a network",
        found,
        "its sensitivity is proven for what fits together",
        "ask with dp.network or dp.accuracy",
    )
