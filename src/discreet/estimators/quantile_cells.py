"""Order statistics by cells: one question a cell, all out of one reservation of the spend.

Theorem.  The answers of all cells together cost no more than the spend, under every relation.
Proof.    Every cell's question is about the rows that a filter keeps, costs at most an equal part
          of the spend (`step_spend`, rounded down), and is debited out of a reservation of the
          whole, which refuses what exceeds it (asking/steps.py): sequential composition
          (reference.md C1, C4).
Checked.  tests/estimators/test_quantile_cells.py::test_all_cells_together_cost_the_spend

Cells are disjoint. Under AddRemove the greatest of their prices would be enough, under Replace the
sum of two of them; neither is charged here, since the ledger knows releases and not their rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from discreet.accounting.guarantees import Guarantee
from discreet.asking.cells import By, Where, cells_by, cells_where
from discreet.asking.sessions import Session
from discreet.asking.steps import Steps
from discreet.errors import InvalidParameter
from discreet.inference.quantiles.cell_quantiles import MEDIAN_BY_CELLS, QUANTILE_BY_CELLS
from discreet.schema import Boolean, Category, Date
from discreet.specs.queries.keys import Bins, Key, Levels
from discreet.trusted.release import Description, PublicFacts, Question, Release

MOST_CELLS = 100


@dataclass(frozen=True, slots=True)
class CellCondition:
    """A cell as a filter: the columns that it is of, its label in each, and what keeps its rows."""

    by: tuple[str, ...]
    label: tuple[str, ...]
    where: Where


def cell_conditions(
    public: PublicFacts, by: By, where: Where | None
) -> tuple[tuple[CellCondition, ...], str]:
    """Every cell of `by`, each with the caller's own filter too, and that filter in words."""
    cells, own = cells_by(public.schema, by), cells_where(public.schema, where)
    if cells.count > MOST_CELLS:
        raise InvalidParameter(
            "by=",
            f"{cells.count} cells",
            f"each cell has a search of its own, with its part of the spend; at most {MOST_CELLS} "
            "are asked at once",
            "use fewer bins or levels, or dp.table for means",
        )
    if isinstance(where, Mapping) and set(where) & set(cells.by):
        raise InvalidParameter(
            "where=",
            "it names a column of by=",
            "a cell is itself a condition on that column",
            "name bins that leave rows out, or filter by other columns",
        )
    sides = [
        [(key.column, _condition(public, key, place)) for place in range(key.size)]
        for key in cells.keys
    ]
    made = (
        CellCondition(cells.by, label, {**(where or {}), **dict(conditions)})
        for label, conditions in zip(
            itertools.product(*cells.labels), itertools.product(*sides), strict=True
        )
    )
    return tuple(made), own.where


def _condition(public: PublicFacts, key: Key, place: int) -> object:
    """The filter that keeps the rows of one cell of a key."""
    column = public.schema[key.column]
    if isinstance(key, Levels) and isinstance(column, Category):
        return column.levels[place]
    if isinstance(key, Levels) and isinstance(column, Boolean):
        return bool(place)
    if isinstance(key, Bins):
        low, high = key.edges[place : place + 2]
        last = place == key.size - 1
        if isinstance(column, Date):
            return column.text(low), column.text(high if last else high - 1)
        return low, high if last else math.nextafter(high, -math.inf)
    raise InvalidParameter(
        f"by={{{key.column!r}: …}}",
        "a weekday or an hour comes back again and again",
        "the rows of a cell are kept by a filter, and a filter of dates is one range",
        "use dp.table for means, or periods such as 'month'",
    )


def described_in_cell(asked: Description, cell: CellCondition, where: str) -> Description:
    """The words of a cell's question: its own label, and the caller's filter alone."""
    name = MEDIAN_BY_CELLS if asked.estimator == "median" else QUANTILE_BY_CELLS
    labels = tuple((label,) for label in cell.label)
    return replace(asked, estimator=name, by=cell.by, labels=labels, where=where)


def asked_in_cells(
    session: Session, questions: tuple[Question, ...], *, spend: Guarantee, key: str | None
) -> tuple[Release, tuple[Release, ...]]:
    """The answers, the last one first, as procedures hold them."""
    with Steps(session, spend, key) as steps:
        for number, question in enumerate(questions):
            steps.ask(question, f"cell {number + 1}")
    return steps.releases[-1], tuple(steps.releases[:-1])
