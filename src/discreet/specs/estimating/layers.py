"""A small network in whole numbers: its shape, its tables, and what it makes of a row.

    input        x: a model's columns, whole numbers of 2**-UNIT_BITS, |x| ≤ 1
    weights      whole numbers of 2**-weight_bits, Σ|θ| ≤ LARGEST_WEIGHTS over all layers; a layer's
                 matrix has a row for each of its units, whose last number multiplies 1
    sum          z = W·(a, 1), exact
    activation   a = table[round(GRID·z)], whole numbers of 2**-UNIT_BITS, |a| ≤ 16
    error        ∂loss/∂z, whole numbers of 2**-ERROR_BITS, at most LARGEST_ERROR

Theorem.  Every sum of a layer and every sum of weights times errors is exact in float64, whatever
          the order of its terms, so that all numbers of a row are functions of the row and of the
          weights, and of no other row.
Proof.    |W·(a, 1)| ≤ Σ|θ|·2**(UNIT_BITS+4) ≤ 2**52, and so is every partial sum of it; likewise
          |Wᵀe| ≤ Σ|θ|·LARGEST_ERROR ≤ 2**52. Between sums stand tables, and steps that numpy takes
          for each number by itself, each rounded correctly.
Checked.  tests/claims/test_networks.py::test_a_row_adds_the_same_whatever_is_beside_it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.errors import InvalidParameter
from discreet.specs.estimating.components import UNIT, UNIT_BITS
from discreet.specs.estimating.metric import LARGEST_COLUMNS
from discreet.specs.estimating.tables import GRID, fixed

MOST_LAYERS, MOST_UNITS, MOST_CLASSES = 4, 256, 64
LARGEST_WEIGHTS = 1 << 34
WEIGHT_BITS = (12, 28)  # the least and the most
ERROR_BITS = 16
LARGEST_ERROR = 1 << 18
REACH = 16 * GRID  # of the tables of activations, to both sides of 0
MEAN_REACH = 32 * GRID
OUTCOMES = ("number", "yes/no", "classes")
ACTIVATIONS = ("relu", "tanh")
Floats = npt.NDArray[np.float64]


@plain.kept()
@dataclass(frozen=True, slots=True)
class Network:
    """Layers of `hidden` units between `inputs` columns and `outputs` sums: one for a number and
    for yes/no, one a class for classes.
    """

    inputs: int
    hidden: tuple[int, ...]
    activation: str
    outcome: str
    outputs: int
    weight_bits: int
    kind: ClassVar[str] = "network"

    def __post_init__(self) -> None:
        if (
            not _whole(self.inputs, 1, LARGEST_COLUMNS)
            or type(self.hidden) is not tuple
            or len(self.hidden) > MOST_LAYERS
            or not all(_whole(units, 1, MOST_UNITS) for units in self.hidden)
        ):
            raise _bad(f"its layers are beyond {MOST_LAYERS} of {MOST_UNITS} units")
        if self.activation not in ACTIVATIONS or self.outcome not in OUTCOMES:
            raise _bad("its activation or its outcome is not known")
        several = self.outcome == "classes"
        if not _whole(self.outputs, 2 if several else 1, MOST_CLASSES if several else 1):
            raise _bad(f"classes are 2 to {MOST_CLASSES}, and other outcomes one sum")
        if not _whole(self.weight_bits, *WEIGHT_BITS):
            raise _bad("the grid of its weights is not known")

    @property
    def widths(self) -> tuple[int, ...]:
        return (self.inputs, *self.hidden, self.outputs)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns of the matrix of every layer."""
        widths = self.widths
        return tuple((widths[place + 1], widths[place] + 1) for place in range(len(widths) - 1))

    @property
    def size(self) -> int:
        """How many weights there are."""
        return sum(rows * columns for rows, columns in self.shapes)

    def to_dict(self) -> dict[str, Any]:
        return {
            "inputs": self.inputs,
            "hidden": list(self.hidden),
            "activation": self.activation,
            "outcome": self.outcome,
            "outputs": self.outputs,
            "weight_bits": self.weight_bits,
        }


def network_from_dict(record: dict[str, Any]) -> Network:
    return Network(**(record | {"hidden": tuple(record["hidden"])}))


@dataclass(frozen=True, slots=True)
class Passed:
    """What rows became on their way through: `inputs` of every layer (with a last column of 1s),
    `places` in the tables of activations, and the exact sums of the last layer.
    """

    inputs: list[Floats]
    places: list[npt.NDArray[np.int64]]
    sums: Floats


def matrices(network: Network, weights: npt.NDArray[np.float64]) -> list[Floats]:
    """The matrix of every layer, out of the weights in a row."""
    found, start = [], 0
    for rows, columns in network.shapes:
        found.append(weights[start : start + rows * columns].reshape(rows, columns))
        start += rows * columns
    return found


def passed(network: Network, layers: Sequence[Floats], matrix: npt.NDArray[np.int16]) -> Passed:
    """Rows of a model on their way through all layers."""
    here, inputs, places = _with_ones(matrix), [], []
    values = activation_tables(network.activation)[0]
    for layer in layers[:-1]:
        place = grid_places(network, _product(here, layer), REACH)
        inputs.append(here)
        places.append(place)
        here = _with_ones(values.take(place))
    return Passed([*inputs, here], places, _product(here, layers[-1]))


def grid_places(network: Network, sums: Floats, reach: int) -> npt.NDArray[np.int64]:
    """round(GRID·z), clipped to ±reach, as a place in a table: halves go up."""
    shift = 2.0 ** -(network.weight_bits + UNIT_BITS) * GRID
    whole = np.floor(sums * shift + 0.5)
    return np.asarray((np.clip(whole, -reach, reach) + reach).astype(np.int64))


def decisions(network: Network, sums: Floats) -> npt.NDArray[np.int64]:
    """The class of every row: the greatest sum's, the first of equals; yes (1) where it is above
    0.
    """
    if network.outcome == "yes/no":
        return np.asarray((sums[:, 0] > 0).astype(np.int64))
    return np.asarray(sums.argmax(axis=1))


@plain.remembered(2)
def activation_tables(activation: str) -> tuple[Floats, Floats]:
    """Values and slopes from −REACH to REACH, both whole numbers of 2**-UNIT_BITS."""
    at = np.arange(-REACH, REACH + 1) / GRID
    if activation == "relu":
        value, slope = np.maximum(at, 0), ((at > 0) & (at < REACH / GRID)) * 1.0
    else:
        value, slope = np.tanh(at), 1 - np.tanh(at) ** 2
    return fixed(np.floor(value * UNIT + 0.5)), fixed(np.floor(slope * UNIT + 0.5))


@plain.remembered(1)
def mean_table() -> Floats:
    """1/(1 + e^(−z)) from −MEAN_REACH to MEAN_REACH, whole numbers of 2**-ERROR_BITS."""
    at = np.arange(-MEAN_REACH, MEAN_REACH + 1) / GRID
    return fixed(np.floor((1 << ERROR_BITS) / (1 + np.exp(-at)) + 0.5))


@plain.remembered(1)
def weight_table() -> Floats:
    """e^z from −MEAN_REACH to 0, whole numbers of 2**-20: what a class weighs beside the best."""
    return fixed(np.floor((1 << 20) * np.exp(np.arange(-MEAN_REACH, 1) / GRID) + 0.5))


def shares(network: Network, sums: Floats) -> Floats:
    """The probabilities of all classes, whole numbers of 2**-ERROR_BITS; of yes alone for
    yes/no.
    """
    if network.outcome == "yes/no":
        return mean_table().take(grid_places(network, sums, MEAN_REACH))
    best = sums.max(axis=1, keepdims=True)
    weights = weight_table().take(grid_places(network, sums - best, MEAN_REACH))
    whole = weights / weights.sum(axis=1, keepdims=True)
    return np.asarray(np.floor(whole * (1 << ERROR_BITS)))


def _product(rows: Floats, layer: Floats) -> Floats:
    return np.asarray(rows @ layer.T)


def _with_ones(rows: npt.NDArray[Any]) -> Floats:
    wide = np.empty((len(rows), rows.shape[1] + 1))
    wide[:, :-1], wide[:, -1] = rows, UNIT
    return wide


def _whole(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value <= high


def _bad(found: str) -> InvalidParameter:
    return InvalidParameter(
        "a network",
        found,
        "its sums must be exact, and its weights are released with noise",
        f"use hidden=(32, 16): up to {MOST_LAYERS} layers of up to {MOST_UNITS} units",
    )
