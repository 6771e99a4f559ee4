"""The result of dp.network: weights that were released with noise, and what they say of rows."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet import plain
from discreet.accounting import statement
from discreet.accounting.guarantees import Guarantee
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text
from discreet.inference.networks.frames import frame_matrix
from discreet.inference.regression import decode as decode
from discreet.inference.regression.facts import facts_as, facts_to_dict
from discreet.inference.results.decode import as_kind
from discreet.inference.results.held import cautions, data_notes
from discreet.inference.results.stored import fit_from_json, fit_to_json
from discreet.inference.results.summary import Summary
from discreet.inference.results.told import Told
from discreet.schema import Category, Column, column_from_dict
from discreet.specs.estimating.components import UNIT_BITS
from discreet.specs.estimating.layers import (
    ERROR_BITS,
    Network,
    decisions,
    matrices,
    passed,
    shares,
)
from discreet.specs.estimating.model import Model
from discreet.specs.estimating.networks import NORM_BITS, NetworkGradients
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.release import Release

FORMAT, VERSION = "discreet-network", 1
NO_INTERVALS = "Intervals for weights: none, because the model is not identified."
BLOCK_ROWS = 1 << 12
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class NetworkFacts:
    """Public facts of a fit: what was asked, and the declared columns that it reads.

    batch           the expected or fixed number of rows in a batch
    learning_rate   the step along the mean of a batch's clipped gradients
    columns         the declaration of every column of the formula, by name
    """

    spend: Guarantee
    batch: int
    learning_rate: float
    columns: Mapping[str, Column]
    delta: float
    estimator: str = "network"

    def to_dict(self) -> dict[str, Any]:
        columns = {name: column.to_dict() for name, column in self.columns.items()}
        return facts_to_dict(self) | {"columns": columns}


@dataclass(frozen=True, repr=False)
class NetworkResult(Told):
    """A small network that was trained with noise: `predict`, `predict_proba`, `summary`.

    Method.    Noisy stochastic gradient descent with momentum over secret batches, rows clipped to
               a norm; the weights are the mean of the last iterates.
    Validity.  None is claimed for weights: other weights say the same of every row. How often the
               network is right on rows that it has not seen is `dp.accuracy`, with its interval.
    """

    releases: tuple[Release, ...]
    facts: NetworkFacts

    @property
    def network(self) -> Network:
        """The shape: layers, activation, outcome."""
        return self._query.network

    @property
    def model(self) -> Model:
        """The columns that it reads, the response, and the filter of its rows."""
        return self._query.model

    @functools.cached_property
    def weights(self) -> tuple[int, ...]:
        """All weights, as whole numbers of 2**-weight_bits: the mean of the last iterates."""
        return self._last.integers[-self.network.size :]

    @property
    def layers(self) -> list[Floats]:
        """The matrix of every layer; the last column multiplies 1."""
        return [layer / 2.0**self.network.weight_bits for layer in self._layers]

    @property
    def rows(self) -> float:
        """The number of rows: public, or as released (at least 1)."""
        return decode.rows_of(self.releases)

    @plain.called
    def predict(self, frame: Any) -> npt.NDArray[Any]:
        """The decision for every row of a data frame (or mapping of columns): a level of the
        response, or a number in its own units.
        """
        sums = self._sums(frame)
        if self.network.outcome == "number":
            return self._numbers(sums)
        labels = self.classes
        return np.array(labels, dtype=object if isinstance(labels[0], str) else None)[
            decisions(self.network, sums)
        ]

    @plain.called
    def predict_proba(self, frame: Any) -> Floats:
        """The probability of every class (columns, as in `classes`) for every row."""
        if self.network.outcome == "number":
            raise InvalidParameter(
                "predict_proba",
                "the response is a number",
                "a network of a number has no classes",
                "use predict",
            )
        found = shares(self.network, self._sums(frame)) / (1 << ERROR_BITS)
        if self.network.outcome == "yes/no":
            return np.concatenate([1 - found, found], axis=1)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    @property
    def classes(self) -> tuple[Any, ...]:
        """What `predict` decides among; empty for a number."""
        response = self.model.response
        if response is None or response.level is None:
            return ()
        column, yes = self.facts.columns[response.column], response.level[1]
        if isinstance(column, Category) and self.network.outcome == "classes":
            return tuple(column.levels)
        if isinstance(column, Category) and len(column.levels) == 2:
            return column.levels[1 - yes], column.levels[yes]
        return False, True

    def summary(self) -> Summary:
        """A table to print: the layers, and how the fit went."""
        network, rows = self.network, []
        names = [f"hidden {place}" for place in range(1, len(network.hidden) + 1)]
        kinds = [network.activation] * len(network.hidden)
        for name, kind, (units, width) in zip(
            [*names, "output"], [*kinds, network.outcome], network.shapes, strict=True
        ):
            rows.append((name, kind, str(width - 1), str(units), str(units * width)))
        title = f"Private network of {self.releases[-1].description.column}"
        header = ("layer", "kind", "inputs", "units", "weights")
        return Summary(title, header, tuple(rows), tuple(self._notes()))

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the network, what it cost, what was asked."""
        told, notes = self.summary(), self._notes()
        units = "–".join(str(width) for width in self.network.widths)
        shape = f"{units} ({self.network.activation}, {self.network.outcome})"
        return f"{told.title}: {shape}", notes[1], notes[2]

    def to_json(self) -> str:
        """Everything, as JSON text; `dp.from_json` reads it back."""
        return fit_to_json(self.releases, self.facts.to_dict(), layout=(FORMAT, VERSION))

    # ── read from the releases ────────────────────────────────────────────────────────────────────

    @property
    def _last(self) -> Release:
        return self.releases[-1]

    @property
    def _query(self) -> NetworkGradients:
        return as_kind(self._last.query, NetworkGradients)

    @functools.cached_property
    def _layers(self) -> list[Floats]:
        return matrices(self.network, np.array(self.weights, dtype=np.float64))

    def _sums(self, frame: Any) -> Floats:
        matrix = frame_matrix(frame, self.model, self.facts.columns)
        parts = [
            passed(self.network, self._layers, matrix[start : start + BLOCK_ROWS]).sums
            for start in range(0, len(matrix), BLOCK_ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.network.outputs))

    def _numbers(self, sums: Floats) -> Floats:
        response = self.model.response
        assert response is not None
        scaled = np.clip(sums[:, 0] / 2.0 ** (self.network.weight_bits + UNIT_BITS), -1.0, 1.0)
        moved = response.middle + response.half * scaled
        return np.asarray(np.exp(moved) if response.transform == "log" else moved)

    def _notes(self) -> list[str]:
        facts, first = self.facts, self.releases[0]
        mechanism = as_kind(self._last.mechanism, NoisySGD)
        clip = self._query.clip / 2.0**NORM_BITS
        multiplier = float(mechanism.spread) / float(mechanism.sensitivity.moved_squared) ** 0.5
        known = first.public_rows is not None and len(self.releases) == 1
        notes = [
            NO_INTERVALS,
            f"Spent {statement.asked(facts.spend)} and δ₀ = {decimal_text(facts.delta)} in "
            f"{len(self.releases)} releases, neighbours {first.neighbors}.",
            f"{mechanism.steps} steps over batches of about {facts.batch} of {self.rows:.0f} rows "
            f"({'public' if known else 'noisy count'}); rows are clipped to norm {clip:g}, noise "
            f"is {multiplier:.3g} times what a row moves; weights are the mean of the last "
            f"{mechanism.averaged} iterates.",
        ]
        where = first.description.where
        notes += [f"Only rows where {where}."] if where else []
        notes += data_notes(*self.releases, rows=self.rows)
        notes += cautions(*self.releases)
        return notes


def network_from_json(text: str) -> NetworkResult | None:
    """The result that `NetworkResult.to_json` wrote; None where the text is something else."""
    return fit_from_json(text, NetworkResult, _facts_from_dict, layout=(FORMAT, VERSION))


def _facts_from_dict(record: dict[str, Any]) -> NetworkFacts:
    columns = {name: column_from_dict(one) for name, one in record["columns"].items()}
    return facts_as(NetworkFacts, record, columns=columns)
