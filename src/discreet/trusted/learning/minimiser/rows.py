"""Gradients of a convex loss over the rows of a model, at any coefficients, each with a bound of
its own error (specs/estimating/minimand.py).

Theorem.  `gradient` gives (S, e, H) with ‖A·S/(R·2**SUM_BITS) − Σwψz‖ ≤ e in units of the radius,
          ψ the family's table joined by straight lines. H, for steps alone, has no claim.
Proof.    A row's table argument is t = ±Σx·c (+ the response's part), c = high·2**-bits + low. The
          product with `high` is exact (whole numbers below 2**52), so is t − ⌊t⌋; the product with
          `low`, the response's part and three roundings move t by at most `slack`. ψ is a table
          entry and a share f of its step: in units of 2**-VALUE_BITS that is rounded by ½, and
          moved by at most the largest step times slack. Times w, a whole number, and x it is summed
          exactly in digits of DIGIT bits. So a row is off by at most that error times w‖z‖ ≤ 1.
          Compiled passes do the same operations on each row.
Checked.  tests/claims/test_perturbed_minimisers.py::test_gradients_are_within_their_stated_error,
          tests/claims/test_minimiser_passes.py
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.specs.estimating.components import RESPONSE_BITS, UNIT_BITS
from discreet.specs.estimating.metric import WEIGHT_BITS
from discreet.specs.estimating.minimand import rises, steps_a_unit
from discreet.specs.estimating.model import EstimatingPlan
from discreet.specs.estimating.tables import NO_GAIN, PSI_BITS
from discreet.specs.queries.plans import FLOAT_BITS
from discreet.trusted.engines.kernels import in_threads
from discreet.trusted.extensions.estimating.kernels import (
    ModelData,
    _psi,
    tiles_of,
    where_it_pays,
)
from discreet.trusted.extensions.estimating.loops import Loop
from discreet.trusted.learning.minimiser.loops import (
    DIGIT,
    VALUE_BITS,
    product_loop,
    sum_loop,
    value_loop,
)

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]
BLOCK = 1 << 13  # rows
LOOP_ROWS, PASS_ROWS = 1 << 15, 1 << 12  # of a compiled block, and of one pass over it
SUM_BITS = WEIGHT_BITS + PSI_BITS + VALUE_BITS


class LossRows:
    """The rows of a model, their weights in a metric, and the loss that is minimised."""

    def __init__(
        self, data: ModelData, weights: npt.NDArray[np.int32], plan: EstimatingPlan
    ) -> None:
        assert plan.family is not None
        assert plan.point is not None
        assert plan.model.response is not None
        found = rises(plan.family, plan.model.response.level is not None)
        assert found is not None
        self.count, self.metric = len(data.matrix), plan.metric
        self._plan, self._data, self._weights, self._family = plan, data, weights, plan.family
        self._rise, self._a_unit = found[0], steps_a_unit(plan.family, plan.point)
        self._a_step = float(self._a_unit / (1 << RESPONSE_BITS)) if plan.family.residual else 0.0
        self._reach = plan.family.tables().reach
        self._bend = float(self._a_unit) / 2.0 ** (WEIGHT_BITS + PSI_BITS)
        width = data.matrix.shape[1]
        self._tiles = tiles_of(width, max(3, width), BLOCK)

    def part(self, rows: int) -> LossRows | None:
        """About so many of the rows, evenly spread; None where there are hardly more."""
        if self.count < 4 * rows:
            return None
        places = np.arange(0, self.count, self.count // rows)  # rows on disk know no steps
        data = ModelData(self._data.matrix.take(places, axis=0), self._data.response.take(places))
        return LossRows(data, self._weights.take(places), self._plan)

    def gradient(
        self, theta: list[Fraction], *, curved: bool = False
    ) -> tuple[Objects, Fraction, Floats]:
        """S, e and (where `curved`) Σ wψ′xxᵀ at θ, in units of the radius."""
        exact = self._places_a_column(theta)
        longest = math.ceil(sum(map(abs, exact))) << UNIT_BITS
        bits = FLOAT_BITS - 2 - longest.bit_length()
        high = [round(c * Fraction(2) ** bits) for c in exact]
        low = np.array(
            [float(c - h / Fraction(2) ** bits) for c, h in zip(exact, high, strict=True)]
        )
        coefficients = np.stack([np.array(high, dtype=np.float64), low], axis=1)
        width, loop = len(exact), None if curved else where_it_pays(value_loop, self.count)
        size = self._tiles.size if loop is None else LOOP_ROWS

        def block(start: int) -> tuple[npt.NDArray[np.int64], Floats]:
            rows = slice(start, min(start + size, self.count))
            if loop is None:
                return self._block(rows, coefficients, bits, curved=curved)
            return self._compiled(loop, rows, coefficients, bits), np.zeros((1, 1))

        total, hessian = np.zeros(width, dtype=object), np.zeros((width, width))
        starts = range(0, self.count, size)
        for first in range(0, len(starts), 64):
            for digits, part in in_threads(block, starts[first : first + 64]):
                total = total + sum(
                    digits[place].astype(object) << (DIGIT * place) for place in range(3)
                )
                hessian += part
        slack = 2.0**-50 * (1 + float(np.abs(low).sum()) * width * 2.0**UNIT_BITS)
        if self._family.residual:
            slack += 2.0**-50 * (2 * float(self._a_unit) + self._reach)
        error = Fraction(0.51) + self._rise * Fraction(slack) * (1 << VALUE_BITS)
        return total, self.count * error / (1 << (PSI_BITS + VALUE_BITS)), hessian

    def exactly(self, theta: list[Fraction]) -> Objects:
        """S of `gradient` without any error, in fractions: for the few gradients that are so short
        that their error counts. It takes as long as Python's whole numbers do.
        """
        family, steps = self._family, self._places_a_column(theta)
        a_step = self._a_unit / (1 << RESPONSE_BITS) if family.residual else Fraction(0)
        below = math.lcm(a_step.denominator, *(one.denominator for one in steps))
        whole = np.array([int(one * below) for one in steps], dtype=object)
        total, reach = np.zeros(len(steps), dtype=object), self._reach
        for start in range(0, self.count, BLOCK):
            rows = slice(start, start + BLOCK)
            matrix, response = self._data.matrix[rows].astype(object), self._data.response[rows]
            argument = matrix @ whole
            if family.residual:
                argument = response.astype(object) * int(a_step * below) - argument
            place = np.minimum(np.maximum(argument // below, -reach), reach - 1)
            share = np.minimum(np.maximum(argument - place * below, 0), below)
            entry = place.astype(np.int64) + reach
            first = _psi(family, entry, response).astype(object)
            step = _psi(family, entry + 1, response).astype(object) - first
            value = (first * below + step * share) * self._weights[rows].astype(object)
            total = total + value @ matrix
        return np.asarray(total * Fraction(1 << VALUE_BITS, below))

    def _places_a_column(self, theta: list[Fraction]) -> list[Fraction]:
        """By how many table entries a unit of each column moves a row, exactly."""
        below = math.lcm(*(value.denominator for value in theta))
        whole = np.array([value.numerator * (below // value.denominator) for value in theta])
        unit = self._a_unit / self.metric.bound / below
        return [int(moved) * unit for moved in whole.astype(object) @ self.metric.matrix]

    def _compiled(
        self, loop: Loop, rows: slice, coefficients: Floats, bits: int
    ) -> npt.NDArray[np.int64]:
        """The digits of S over some rows, by compiled passes."""
        products, adds, tables = product_loop(), sum_loop(), self._family.tables()
        assert products is not None
        assert adds is not None
        high, low = np.ascontiguousarray(coefficients.T)
        numbers = (self._a_step, float(self._reach), tables.clip, tables.top)
        arrays = (
            (tables.psi, tables.slope, tables.slope, NO_GAIN)
            if self._family.residual
            else (tables.slope, tables.mean, tables.shift, tables.gain)
        )
        sums = np.zeros((3, len(low)))
        for start in range(rows.start, rows.stop, PASS_ROWS):
            here = slice(start, min(start + PASS_ROWS, rows.stop))
            matrix, response = self._data.matrix[here], self._data.response[here]
            place, rest = np.empty(len(matrix)), np.empty(len(matrix))
            digits = np.empty((3, len(matrix)))
            products(matrix, high, low, place, rest)
            loop(
                np.ldexp(place, -bits), rest, response, self._weights[here], numbers, arrays, digits
            )
            adds(matrix, digits, sums)
        return sums.astype(np.int64)

    def _block(
        self, rows: slice, coefficients: Floats, bits: int, *, curved: bool
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        response, reach = self._data.response[rows], self._reach
        count, (tiles, tall, width) = len(response), self._tiles.shape
        matrix = np.zeros((tiles * tall, width))  # in tiles, each multiplied on this thread alone
        matrix[:count] = self._data.matrix[rows]
        stack = matrix.reshape(tiles, tall, width)
        both = (stack @ coefficients).reshape(-1, 2)[:count]
        place, low = np.ldexp(both[:, 0], -bits), both[:, 1]
        if self._family.residual:
            place, low = response.astype(np.float64) * self._a_step - place, -low
        whole = np.clip(np.floor(place), -reach, reach - 1)
        whole = np.clip(whole + np.floor((place - whole) + low), -reach, reach - 1)
        share = np.clip((place - whole) + low, 0.0, 1.0)
        entry = whole.astype(np.int64) + reach
        first = _psi(self._family, entry, response)
        step = _psi(self._family, entry + 1, response) - first
        value = (first << VALUE_BITS) + np.rint(step * share * 2.0**VALUE_BITS).astype(np.int64)
        weights = self._weights[rows].astype(np.int64)
        moved, mask = value * weights, (1 << DIGIT) - 1
        digits = np.zeros((3, tiles * tall))
        digits[:, :count] = moved & mask, (moved >> DIGIT) & mask, moved >> (2 * DIGIT)
        split = digits.reshape(3, tiles, tall).transpose(1, 0, 2)
        sums = (split @ stack).sum(axis=0).astype(np.int64)
        if not curved:
            return sums, np.zeros((1, 1))
        bent = np.zeros(tiles * tall)
        bends = np.abs(step) * (np.abs(place) <= reach)  # beyond its table a loss is straight
        bent[:count] = bends * weights * self._bend
        bowed = stack * bent.reshape(tiles, tall, 1)
        return sums, np.asarray((bowed.transpose(0, 2, 1) @ stack).sum(axis=0))

    def __reduce__(self) -> Any:
        raise TypeError("rows are not copied")
