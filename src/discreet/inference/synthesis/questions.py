"""What may be asked of synthetic data: shares, tables, means, regressions, and what is drawn.

An answer comes from measured tables wherever one holds all its columns. Elsewhere it is refused, or
(``unsupported=True``) given under the model and marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from discreet import plain
from discreet.errors import InvalidParameter, shown
from discreet.inference.results.laws import Array
from discreet.inference.results.named import Name
from discreet.inference.results.told import Told
from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis.answers import TablesAnswer, TablesFit, Variances
from discreet.inference.synthesis.domain import Domain, Mask
from discreet.inference.synthesis.equations import (
    Equation,
    Linked,
    Scored,
    one_step,
    sandwich,
    spread_of,
    under_model,
)
from discreet.inference.synthesis.formulas import Formula, columns_asked, formula_of
from discreet.inference.synthesis.frames import typed_frame
from discreet.inference.synthesis.model import Model
from discreet.inference.synthesis.refits import SETS, combined
from discreet.inference.synthesis.rows import columns_of, drawn_codes
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.inference.synthesis.unbiased import NoisyTables

MOST_ROWS, MOST_SETS = 10**7, 1000
DRAWS = ("rounded", "independent")
LARGEST_WORK = 1 << 24  # cells of a table times the numbers that are asked of it
LARGEST_ANSWER = 1 << 12  # cells of one table, groups of one mean
BINNED = (
    "A number counts as the middle of its bin: what is estimated is the mean of the binned column, "
    "which can differ from that of the column by up to half a bin."
)
BINNED_FIT = (
    "Numbers count as the middle of their bins: coefficients are those of the binned columns, and "
    "can differ from those of the columns themselves."
)
FEW = "FEW ROWS beside the noise: {names}. Intervals there may cover less than they say."
COMPLETE = "Rows without a value in {names} are left out."
SETS_NOTE = (
    "Combined from {sets} synthetic sets, drawn from models fitted to tables with fresh sampling "
    "and fresh noise: right as far as the model is."
)


class SyntheticData(Told):
    """Synthetic rows and answers, from a model of the rows and from measured tables."""

    __slots__ = ()

    @property
    def domain(self) -> Domain:
        """The columns, with their declared levels or bins."""
        raise NotImplementedError

    @property
    def model(self) -> Model:
        """The model that rows are drawn from."""
        raise NotImplementedError

    @property
    def tables(self) -> NoisyTables:
        """The measured tables that answers come from."""
        raise NotImplementedError

    @property
    def cluster(self) -> int:
        """How many rows of one unit may be alike."""
        raise NotImplementedError

    def refits(self, sets: int) -> tuple[Model, ...]:
        """Models of releases that might have been, the same at every call."""
        raise NotImplementedError

    def stream(self, part: str) -> Stream:
        """Numbers to draw rows by: a fixed function of the release and of `part`."""
        raise NotImplementedError

    # -- rows ----------------------------------------

    @property
    def rows(self) -> float:
        """The number of rows of the data, public or as the tables say."""
        return self.tables.rows

    @plain.called
    def frame(
        self, rows: int | None = None, *, draw: str = "rounded", backend: str = "pandas"
    ) -> Any:
        """Synthetic rows with the data's columns and their types (dates are dates), as many as the
        data have unless `rows` says so.

        They follow the model as closely as whole rows can, or are drawn one by one
        (``draw="independent"``); they are for looking and for trying code. Statistics of them as if
        they were real have intervals that are too short: ask `share`, `mean`, `fit`, or combine
        several sets.
        """
        count = self._rows(rows)
        if draw not in DRAWS:
            raise InvalidParameter(
                "draw=",
                f"{shown(draw)} is not known",
                "rows follow the model closely, or are independent draws from it",
                f"pass one of {', '.join(map(repr, DRAWS))}",
            )
        stream = self.stream(f"frame {draw}")
        codes = drawn_codes(self.model, count, stream, rounded=draw == DRAWS[0])
        return typed_frame(self.domain, columns_of(self.domain, codes, stream), backend)

    @plain.called
    def frames(
        self, sets: int = SETS, rows: int | None = None, *, backend: str = "pandas"
    ) -> list[Any]:
        """Several synthetic sets for software that combines analyses of them: each from a model of
        its own, fitted to tables with fresh sampling and fresh noise.
        """
        count, made = self._rows(rows), []
        for place, model in enumerate(self.refits(_sets(sets))):
            stream = self.stream(f"set {place}")
            codes = drawn_codes(model, count, stream, rounded=False)
            made.append(typed_frame(self.domain, columns_of(self.domain, codes, stream), backend))
        return made

    def combine(
        self,
        function: Callable[[Any], tuple[Any, Any]],
        sets: int = SETS,
        *,
        names: tuple[str, ...] | None = None,
        backend: str = "pandas",
    ) -> TablesAnswer:
        """A caller's analysis of each of several synthetic sets, as one: `function(frame)` gives
        estimates and their variances (numbers, or arrays of one length).

        *Method.*   T = (1 + 1/m)·b − ū, at least ū, with m − 1 degrees of freedom: b is the
                    variance of the estimates over the sets, ū the mean of their variances.
        *Validity.* As far as the model holds what the analysis reads; see `supports`.
        """
        found = [_analysed(function, frame) for frame in self.frames(sets, backend=backend)]
        estimates, variances = (np.array(one, dtype=float) for one in zip(*found, strict=True))
        value, within, total = combined(estimates, variances)
        labels: tuple[Name, ...] = names or tuple(f"estimate {k + 1}" for k in range(len(value)))
        return TablesAnswer(
            "Combined analysis of synthetic sets",
            labels,
            value,
            Variances(np.minimum(within, total), np.maximum(total - within, 0.0), len(found) - 1),
            notes=(SETS_NOTE.format(sets=len(found)),),
        )

    # -- answers ----------------------------------------

    def supports(self, question: object) -> bool:
        """Whether measured tables answer a question: a formula, "hours by education", or a list of
        columns. Least squares without empty cells needs the pairs of its columns alone.
        """
        if isinstance(question, str) and "~" in question:
            asked = formula_of(question, self.domain)
            return self.tables.supports(asked.columns) or self._in_pieces(asked)
        return self.tables.supports(columns_asked(question, self.domain))

    @plain.called
    def share(
        self,
        conditions: Mapping[str, object],
        *,
        given: Mapping[str, object] | None = None,
        unsupported: bool = False,
    ) -> TablesAnswer:
        """The share of the rows that satisfy conditions, of all or of those where `given` holds:
        ``synth.share({"sex": "F", "age": (18, 35)})``.
        """
        wanted = self.domain.masks(conditions)
        known = {} if given is None else self.domain.masks(given)
        columns = tuple(sorted({*wanted, *known}))
        self._require_room(columns)
        x, y = (self._indicator(masks, columns) for masks in (known, wanted))
        shape = tuple(self.domain.sizes[place] for place in columns)
        equation = Linked(columns, shape, x[None], y, np.ones_like(y))
        words = _conditions(conditions) + (f" given {_conditions(given)}" if given else "")
        value, variances, marked, few = self._solved(equation, columns, unsupported)
        if not marked:
            behind = float((self.model.table(columns).ravel() * x).sum()) * self.rows
            factor = np.array([float(self.cluster)])
            variances = Variances(factor, variances.privacy, wilson=np.array([behind]))
        return TablesAnswer(
            "Share of rows",
            (words,),
            value,
            variances,
            (0.0, 1.0),
            self._notes(_few((words,), few)),
            marked,
            ("where",),
        )

    @plain.called
    def table(self, by: str | list[str], *, unsupported: bool = False) -> TablesAnswer:
        """The share of the rows in every cell of some columns, "no value" among them."""
        asked = self.domain.places(by)
        columns = tuple(sorted(asked))
        cells = cell_count(self.domain.sizes, columns)
        self._require_few(cells, "cells of a table")
        order = [columns.index(place) for place in asked]
        if self._supported(columns, unsupported):
            share = self.tables.table(columns) / self.rows
            noise = self.tables.cell_variance(columns, share) / self.rows**2
            value, noise = (np.transpose(one, order).ravel() for one in (share, noise))
            alike, rows = np.full(cells, float(self.cluster)), np.full(cells, self.rows)
            variances, marked = Variances(alike, noise, wilson=rows), False
        else:
            tables = [model.table(asked).ravel() for model in (self.model, *self.refits(SETS))]
            value, marked = tables[0], True
            variances = _spread(np.array(tables[1:]), value * (1 - value) / self.rows)
        return TablesAnswer(
            f"Shares by {self.domain.words(asked)}",
            _labels([self.domain.cuts[place].cells for place in asked]),
            value,
            variances,
            (0.0, 1.0),
            self._notes(),
            marked,
            tuple(self.domain.cuts[place].name for place in asked),
        )

    @plain.called
    def mean(
        self, column: str, by: str | list[str] | None = None, *, unsupported: bool = False
    ) -> TablesAnswer:
        """The mean of a binned number (or the share of yes), of all rows that hold a value or of
        groups: ``synth.mean("age", by="sex")``.
        """
        place = self.domain.place(column)
        cut, groups = self.domain.cuts[place], () if by is None else self.domain.places(by)
        numbers = cut.numbers
        if place in groups:
            raise InvalidParameter(
                "by=", "the column itself", "its groups have one value each", "name another column"
            )
        columns = tuple(sorted({place, *groups}))
        labels = _labels([self.domain.cuts[one].labels for one in groups])
        self._require_few(len(labels), "groups of a mean")
        self._require_room(columns, len(labels))
        equation = self._grouped(columns, place, groups)
        value, variances, marked, few = self._solved(equation, columns, unsupported)
        held = numbers[: len(cut.labels)]
        return TablesAnswer(
            f"Mean of {cut.name}" + (f" by {self.domain.words(groups)}" if groups else ""),
            labels if groups else (cut.name,),
            value,
            variances,
            (float(held.min()), float(held.max())),
            self._notes(_few(labels, few), (BINNED,) if cut.edges else (), self._complete(columns)),
            marked,
            tuple(self.domain.cuts[one].name for one in groups) or ("column",),
        )

    @plain.called
    def fit(self, formula: str, *, unsupported: bool = False) -> TablesFit:
        """A regression: least squares for a number in bins, logistic for yes/no:
        ``synth.fit("income ~ sex + education").summary()``.

        *Method.*   One step from the model's fit on unbiased tables; sandwich errors with the part
                    of sampling and the part of privacy.
        *Validity.* Whether or not the model is right; where noise is small beside the rows behind
                    each coefficient.
        """
        asked = formula_of(formula, self.domain)
        names, equation = asked.equation()
        if not self.tables.supports(asked.columns) and self._in_pieces(asked):
            equation = asked.pieced(equation)
        value, variances, marked, few = self._solved(equation, asked.columns, unsupported)
        kind = "Least squares" if asked.family == "ols" else "Logistic regression"
        binned = any(self.domain.cuts[one].edges for one in asked.columns)
        notes = self._notes(
            _few(names, few), (BINNED_FIT,) if binned else (), self._complete(asked.columns)
        )
        return TablesFit(
            f"{kind} of {asked.title} from released tables",
            names,
            value,
            variances,
            notes=notes,
            under_model=marked,
            head=("coefficient",),
        )

    def m_estimate(
        self,
        columns: list[str],
        psi: Callable[[dict[str, Any], Array], Any],
        start: Any,
        *,
        names: tuple[str, ...] | None = None,
        unsupported: bool = False,
    ) -> TablesFit:
        """The solution β of Σ ψ(row, β) = 0: `psi(values, beta)` gives scores of shape (k, cells)
        for the cells of a table, whose `values` are arrays by column name (numbers of bins, 0 and
        1, or places of levels). Rows without a value in some column are left out.
        """
        places = tuple(sorted(self.domain.places(columns)))
        shape = tuple(self.domain.sizes[place] for place in places)
        self._require_few(int(np.prod(shape)), "cells of a table")
        values = {self.domain.cuts[one].name: self._values(one, places) for one in places}
        held = self._indicator({one: self.domain.cuts[one].held > 0 for one in places}, places)
        begin = np.atleast_1d(np.array(start, dtype=float))

        def scores(beta: Array) -> Array:
            return np.asarray(psi(values, beta), dtype=float).reshape(len(begin), -1) * held

        equation = Scored(places, shape, scores, begin)
        value, variances, marked, few = self._solved(equation, places, unsupported)
        labels = names or tuple(f"beta {place + 1}" for place in range(len(begin)))
        binned = any(self.domain.cuts[one].edges for one in places)
        return TablesFit(
            f"M-estimate on {self.domain.words(places)} from released tables",
            labels,
            value,
            variances,
            notes=self._notes(
                _few(labels, few), (BINNED_FIT,) if binned else (), self._complete(places)
            ),
            under_model=marked,
            head=("coefficient",),
        )

    # -- how answers are found ----------------------------------------

    def _solved(
        self, equation: Equation, columns: Clique, unsupported: bool
    ) -> tuple[Array, Variances, bool, tuple[bool, ...]]:
        """(estimate, its variances, whether it is under the model, coefficients of few rows)."""
        law = self.model.table(columns)
        pieced = getattr(equation, "pieces", None) is not None
        if pieced or self._supported(columns, unsupported):
            found = one_step(equation, self.tables, law)
            return (
                found.beta,
                Variances(self.cluster * found.sampling, found.privacy),
                False,
                found.few,
            )
        value = under_model(equation, law)
        draws = [under_model(equation, one.table(columns), value) for one in self.refits(SETS)]
        weights = self.rows * law.ravel()
        middle = spread_of(equation.scores(value), weights)
        sampling = sandwich(equation.curvature(value, weights), middle)
        spread = _spread(np.array(draws), self.cluster * np.diag(sampling))
        return value, spread, True, (False,) * len(value)

    def _supported(self, columns: Clique, unsupported: bool) -> bool:
        """Whether tables hold the columns; refused where none does and no more is allowed."""
        if self.tables.supports(columns):
            return True
        if unsupported is True:
            return False
        words = self.domain.words(columns)
        raise InvalidParameter(
            "an answer from tables",
            f"no released table holds {words} together",
            "what only the model says has no interval that is sure to cover",
            f'declare it: analyses=["{words.replace(", ", " + ")}"], or pass unsupported=True for '
            "an answer under the model, marked as such",
        )

    def _in_pieces(self, formula: Formula) -> bool:
        pieces = formula.in_pieces()
        return bool(pieces) and all(map(self.tables.supports, pieces))

    def _indicator(self, masks: Mapping[int, Mask], columns: Clique) -> Array:
        """1 for the cells of a table that all masks keep, flattened."""
        shape = [self.domain.sizes[place] for place in columns]
        found = np.ones(shape)
        for column, mask in masks.items():
            along = [len(mask) if place == column else 1 for place in columns]
            found = found * mask.reshape(along)
        return found.ravel()

    def _values(self, column: int, columns: Clique) -> Array:
        """What one column's cells stand for, for every cell of a table, flattened."""
        cut = self.domain.cuts[column]
        numbers = cut.numbers if cut.is_number else np.arange(cut.size, dtype=float)
        along = [cut.size if place == column else 1 for place in columns]
        shape = [self.domain.sizes[place] for place in columns]
        return np.broadcast_to(numbers.reshape(along), shape).ravel()

    def _grouped(self, columns: Clique, column: int, groups: Clique) -> Linked:
        """The equation of a column's means in groups."""
        shape = tuple(self.domain.sizes[place] for place in columns)
        cut = self.domain.cuts[column]
        held = self._indicator({column: cut.held > 0}, columns)
        cells = np.ndindex(*(len(self.domain.cuts[place].labels) for place in groups))
        x = np.array(
            [
                self._indicator(
                    {
                        group: np.arange(self.domain.sizes[group]) == code
                        for group, code in zip(groups, cell, strict=True)
                    },
                    columns,
                )
                for cell in cells
            ]
        )
        return Linked(columns, shape, x, self._values(column, columns), held)

    def _complete(self, columns: Clique) -> tuple[str, ...]:
        absent = tuple(place for place in columns if self.domain.cuts[place].absent)
        return (COMPLETE.format(names=self.domain.words(absent)),) if absent else ()

    def _notes(self, *notes: tuple[str, ...]) -> tuple[str, ...]:
        """What is said below an answer: of itself, and of the release."""
        raise NotImplementedError

    def _require_few(self, cells: int, what: str) -> None:
        if cells > LARGEST_ANSWER:
            raise InvalidParameter(
                what,
                f"there are {cells}",
                f"at most {LARGEST_ANSWER} are told at once",
                "use fewer columns",
            )

    def _require_room(self, columns: Clique, numbers: int = 1) -> None:
        """Refuses a question whose table, once for each number asked, has too many cells."""
        cells = cell_count(self.domain.sizes, columns)
        if cells * numbers > LARGEST_WORK:
            raise InvalidParameter(
                "an answer from tables",
                f"the table of {self.domain.words(columns)} has {cells} cells",
                "its errors are computed cell by cell, for each number",
                "ask about fewer columns",
            )

    def _rows(self, rows: int | None) -> int:
        count = max(1, round(self.rows)) if rows is None else rows
        if type(count) is not int or not 1 <= count <= MOST_ROWS:
            raise InvalidParameter(
                "rows=",
                f"not a whole number from 1 to {MOST_ROWS}",
                "so many rows are drawn",
                "leave it out for as many as the data have",
            )
        return count


def _sets(sets: object) -> int:
    if type(sets) is not int or not 2 <= sets <= MOST_SETS:
        raise InvalidParameter(
            "sets=",
            f"not a whole number from 2 to {MOST_SETS}",
            "the spread over sets is what tells their error",
            "pass for example 20",
        )
    return sets


def _analysed(function: Callable[[Any], tuple[Any, Any]], frame: Any) -> tuple[Array, Array]:
    """The estimates of one set and their variances."""
    found = function(frame)
    if not isinstance(found, tuple) or len(found) != 2:
        raise InvalidParameter(
            "combine",
            "the function did not return a pair",
            "sets are combined by their estimates and the variances of these",
            "return (estimate, variance): numbers, or arrays of one length",
        )
    try:
        estimate, variance = (np.atleast_1d(np.asarray(one, dtype=float)) for one in found)
        finite = np.isfinite(estimate).all() and (variance >= 0).all() and (variance < np.inf).all()
    except (TypeError, ValueError):
        finite = False
    if not finite:
        raise InvalidParameter(
            "combine",
            "the function gave what are no finite numbers, or a variance below 0",
            "sets are combined by their estimates and the variances of these",
            "let it do without rows that lack a value, and with few rows",
        )
    if estimate.shape != variance.shape or estimate.ndim != 1:
        raise InvalidParameter(
            "combine",
            f"estimates of shape {estimate.shape}, variances of shape {variance.shape}",
            "each estimate has a variance",
            "return two numbers, or two arrays of one length",
        )
    return estimate, variance


def _spread(draws: Array, sampling: Array) -> Variances:
    """The variance over refits, of which sampling is a part."""
    total = np.maximum(draws.var(axis=0, ddof=1), sampling)
    return Variances(sampling, total - sampling, len(draws) - 1)


def _labels(cells: list[tuple[str, ...]]) -> tuple[Name, ...]:
    """The names of all cells of a table."""
    if len(cells) == 1:
        return cells[0]
    sizes = [len(labels) for labels in cells]
    return tuple(
        tuple(labels[place] for labels, place in zip(cells, cell, strict=True))
        for cell in np.ndindex(*sizes)
    )


def _few(names: tuple[Name, ...], few: tuple[bool, ...]) -> tuple[str, ...]:
    lost = [name for name, one in zip(names, few, strict=False) if one]
    shown = "; ".join(one if isinstance(one, str) else ", ".join(one) for one in lost[:8])
    return (FEW.format(names=shown + ("; …" if len(lost) > 8 else "")),) if lost else ()


def _conditions(conditions: Mapping[str, object]) -> str:
    """Conditions in words."""
    return " and ".join(f"{name} {_asked(asked)}" for name, asked in conditions.items())


def _asked(asked: object) -> str:
    if asked is None:
        return "without a value"
    if isinstance(asked, tuple) and len(asked) == 2:
        low, high = asked
        ends = ("" if low is None else f"from {low}", "" if high is None else f"up to {high}")
        return " ".join(end for end in ends if end) or "with a value"
    listed = list(asked) if isinstance(asked, (list, set, frozenset)) else [asked]
    return f"is {' or '.join(map(str, listed))}"
