"""A network over the rows of a model: exact clipped gradients of any rows, and counts of rows that
it decides rightly (specs/estimating/layers.py has the arithmetic, networks.py the theorems).

Rows are taken a block at a time. Products of matrices are float64 BLAS on whole numbers whose sums
stay below 2**52, so neither blocks nor threads nor the order of rows change a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.estimating.components import RESPONSE_BITS, UNIT_BITS
from discreet.specs.estimating.layers import (
    ERROR_BITS,
    LARGEST_ERROR,
    LARGEST_WEIGHTS,
    Floats,
    Network,
    Passed,
    activation_tables,
    decisions,
    matrices,
    passed,
    shares,
)
from discreet.specs.estimating.networks import CLIP_BITS, NetworkPlan
from discreet.trusted.extensions.estimating.kernels import ModelData

BLOCK_ROWS = 1 << 12  # products of 18 and 18 bits: sums of at most 2**48
LOWERED = 1 - 2.0**-48  # makes up for the rounding of a quotient of norms
Codes = npt.NDArray[Any]


def of_network(plan: NetworkPlan, data: ModelData, codes: Codes | None) -> Any:
    """What a plan asks for; `codes` are the levels of the response where classes are asked for."""
    response = data.response if codes is None else codes
    if plan.weights is None:
        return NetworkRows(plan, data.matrix, response)
    return agreement(plan, data.matrix, response)


class NetworkRows:
    """Σ of clipped gradients over chosen rows."""

    def __init__(self, plan: NetworkPlan, matrix: npt.NDArray[np.int16], response: Codes) -> None:
        self.count = len(matrix)
        self._plan, self._matrix, self._response = plan, matrix, response

    def gradient(
        self, chosen: npt.NDArray[np.int64], theta: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.int64]:
        """Exact whole numbers in any order of `chosen`; `theta` holds whole numbers.

        Weights beyond the bound of layers.py are refused: a descent moves by noisy sums alone, so
        a refusal tells no more than they do. Rows beyond the last one are refused by numpy.
        """
        network = self._plan.network
        if theta.shape != (network.size,) or (len(chosen) and chosen.min() < 0):
            raise IndexError("weights or rows that the network does not have")
        if not np.abs(theta).sum() <= LARGEST_WEIGHTS:
            raise ValueError("weights whose sums would not be exact")
        layers, total = matrices(network, theta), np.zeros(network.size, dtype=np.int64)
        for start in range(0, len(chosen), BLOCK_ROWS):
            rows = chosen[start : start + BLOCK_ROWS]
            way = passed(network, layers, self._matrix.take(rows, axis=0))
            errors = _errors(network, layers, way, self._response.take(rows))
            share = clip_factors(errors, way.inputs, self._plan.clip)
            sums = [
                np.trunc(error * share[:, None]).T @ inputs
                for error, inputs in zip(errors, way.inputs, strict=True)
            ]
            total += np.concatenate([one.reshape(-1) for one in sums]).astype(np.int64)
        return total

    def __reduce__(self) -> Any:
        raise TypeError("rows are not copied")


def clip_factors(errors: list[Floats], inputs: list[Floats], clip: int) -> Floats:
    """⌊2**CLIP_BITS·min(1, C/√N)⌋/2**CLIP_BITS for every row, never above the real number.

    Theorem.  The result f satisfies f·√N ≤ C, N = Σ‖e‖²‖(a, 1)‖² over the layers.
    Proof.    Both norms of a layer are sums of at most 257 whole numbers of 36 bits: exact.
              Products, their sum over at most 5 layers, the root and the quotient are each off by
              at most a factor 1 ± 2**-53, together by less than 2**-49; the quotient is lowered by
              2**-48.
    Checked.  tests/claims/test_networks.py::test_no_row_adds_more_than_the_clip_norm
    """
    norms = np.zeros(len(errors[0]))
    for error, here in zip(errors, inputs, strict=True):
        norms += np.vecdot(error, error) * np.vecdot(here, here)
    quotient = clip / np.sqrt(np.maximum(norms, 1.0)) * LOWERED
    return np.asarray(np.floor(np.minimum(quotient, 1.0) * (1 << CLIP_BITS)) / (1 << CLIP_BITS))


def _errors(network: Network, layers: list[Floats], way: Passed, response: Codes) -> list[Floats]:
    """∂loss/∂z of every layer, first to last, whole numbers of 2**-ERROR_BITS."""
    error = _last_error(network, way.sums, response)
    slopes, errors = activation_tables(network.activation)[1], [error]
    scale = 2.0 ** -(network.weight_bits + UNIT_BITS)
    for layer, place in zip(layers[:0:-1], way.places[::-1], strict=True):
        back = error @ layer[:, :-1]
        error = _cut(np.trunc(back * slopes.take(place) * scale))
        errors.append(error)
    return errors[::-1]


def _last_error(network: Network, sums: Floats, response: Codes) -> Floats:
    """What the loss says of the last sums: mean less response, or their clipped difference."""
    if network.outcome == "number":
        scale = 2.0 ** (ERROR_BITS - network.weight_bits - UNIT_BITS)
        rest = np.floor(response * 2.0 ** (ERROR_BITS - RESPONSE_BITS))
        return _cut(np.floor(sums * scale) - rest[:, None])
    mean = shares(network, sums)
    right = response[:, None] == (1 if network.outcome == "yes/no" else np.arange(network.outputs))
    return np.asarray(mean - right * float(1 << ERROR_BITS))


def _cut(errors: Floats) -> Floats:
    return np.asarray(np.clip(errors, -LARGEST_ERROR, LARGEST_ERROR))


def agreement(plan: NetworkPlan, matrix: npt.NDArray[np.int16], response: Codes) -> tuple[int, int]:
    """How many rows are decided as they are, and how many are not."""
    layers = matrices(plan.network, np.array(plan.weights, dtype=np.float64))
    right = 0
    for start in range(0, len(matrix), BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        found = decisions(plan.network, passed(plan.network, layers, matrix[rows]).sums)
        right += int((found == response[rows]).sum())
    return right, len(matrix) - right
