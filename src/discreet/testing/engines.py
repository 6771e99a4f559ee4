"""Whether an engine, or a source of rows, gives what memory gives: for whoever writes one.

    python -m discreet.testing.engines module:make_engine [TABLE ...]

`make_engine(table, schema, neighbors)` gives a data set (for example of `dp.from_batches`), or an
engine, over the rows of an Arrow table. It is asked every kind of question over tables of every
type, with odd cells, by rows and by units, with seeded noise; so is the same table in memory. Both
give the same integers, or the engine's statistic is another one, and the noise of its answers was
calibrated to something else. It is also seen whether a description or an error shows a cell.

What is not seen: whether a source that changes is noticed, and who else sees what it reads.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from discreet import (
    GDP,
    AddRemove,
    ApproxDP,
    Replace,
    covariance,
    logistic,
    mean,
    median,
    missing,
    ols,
    robust,
    subsample_test,
    table,
)
from discreet.neighbors import Neighbors
from discreet.schema import Boolean, Category, Date, Integer, Open, Real, Schema
from discreet.testing.odd_tables import CANARY, UNIT, OddTable, odd_tables
from discreet.testing.seeded import seeded_session
from discreet.trusted.datasets import Dataset, from_frame
from discreet.trusted.session import Session

SPEND = GDP(0.5)
BUDGET = ApproxDP(500, 1e-2)
RELATIONS: tuple[Neighbors, ...] = (
    Replace(),
    AddRemove(),
    Replace(unit=UNIT, max_rows=2),
    AddRemove(unit=UNIT, max_rows=1),
)
MakeEngine = Callable[[pa.Table, Schema, Neighbors], Any]
REFUSED = "refused before its debit"
Asked = tuple[str, Callable[[Session], Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A question that the engine does not answer as memory does."""

    table: str
    neighbors: str
    question: str
    found: str

    def __str__(self) -> str:
        return f"{self.table}, {self.neighbors}: {self.question}: {self.found}"


@dataclass(frozen=True, slots=True)
class Conformance:
    """What was asked of an engine, and where it differs."""

    questions: int
    differences: tuple[Difference, ...]
    refused: int = 0

    @property
    def passed(self) -> bool:
        """Whether every answer was that of memory; questions that an engine's `require` refused
        before their debit have none.
        """
        return not self.differences and self.refused < self.questions

    def __str__(self) -> str:
        held = self.questions - len(self.differences) - self.refused
        told = f"{held} of {self.questions} answers are memory's"
        if self.refused:
            told += f", and {self.refused} were refused before their debit"
        return "\n".join([*map(str, self.differences), told])


def check_engine(
    make_engine: MakeEngine,
    *,
    tables: Iterable[OddTable] | None = None,
    rows: int = 40,
    relations: Iterable[Neighbors] = RELATIONS,
) -> Conformance:
    """Asks everything of `make_engine(table, schema, neighbors)` and of memory.

    The larger tables have about `rows` rows; more of them reach seams of batches. Where asking is
    slow, some of the `tables` and `relations` may do.
    """
    asked, refused, differences = 0, 0, []
    asked_under = tuple(relations)
    for odd in odd_tables(rows) if tables is None else tables:
        for neighbors in asked_under:
            for question, found in _compared(make_engine, odd, neighbors):
                asked += 1
                if found == REFUSED:
                    refused += 1
                elif found:
                    differences.append(Difference(odd.name, str(neighbors), question, found))
    return Conformance(asked, tuple(differences), refused)


def _compared(
    make_engine: MakeEngine, odd: OddTable, neighbors: Neighbors
) -> Iterator[tuple[str, str]]:
    """(question, what differs) of one table; nothing where the answers agree."""
    schema = Schema(odd.schema)
    memory = from_frame(odd.table, schema=schema, neighbors=neighbors)
    try:
        made = make_engine(odd.table, schema, neighbors)
        data = made if isinstance(made, Dataset) else Dataset(made, schema, neighbors)
        sessions = [seeded_session(one, BUDGET, seed=11) for one in (memory, data)]
    except Exception as error:
        yield "declaring it", _told(error)
        return
    yield "its description", _canary(data)
    counts = [session.public.count for session in sessions]
    yield "the public number of rows or units", "" if counts[0] == counts[1] else "another number"
    for question, ask in _questions(odd, neighbors):
        paid = len(sessions[1].ledger.entries())
        found = _answer(ask, sessions[1])
        unpaid = len(sessions[1].ledger.entries()) == paid and hasattr(data._engine, "require")
        if unpaid and isinstance(found, str) and found.startswith("InvalidParameter"):
            yield question, REFUSED
            continue
        expected = _answer(ask, sessions[0])
        if expected == found:
            yield question, ""
        elif isinstance(found, str):
            yield question, found
        else:
            yield question, "another integer"


def _asking(function: Any, *given: Any, **named: Any) -> Callable[[Session], Any]:
    return lambda session: function(session, *given, **{"spend": SPEND} | named)


def _sum_is_large(values: Any) -> float:
    return float(values.sum() > 1)


def _questions(odd: OddTable, neighbors: Neighbors) -> Iterator[Asked]:
    """Every kind of plan, over the columns that a table has."""
    numbers = odd.of((Real, Integer))
    levels = odd.of((Category, Boolean))
    for name in [*numbers, *odd.of(Date)]:
        yield f"mean of {name!r}", _asking(mean, name)
        yield f"median of {name!r}", _asking(median, name)
    for name in levels:
        yield f"table by {name!r}", _asking(table, by=name)
    for x, g in itertools.product(numbers[:2], levels[:2]):
        yield f"table of {x!r} by {g!r}", _asking(table, x, by=g, where={x: (0.0, 2.0)})
    for name in odd.of(Open):
        yield f"table by keys of {name!r}", _asking(table, by=name, spend=GDP(20), delta=1e-4)
    yield "missing cells", _asking(missing)
    if len(numbers) > 1:
        yield "covariance", _asking(covariance, numbers[:3])
        parts = _asking(subsample_test, _sum_is_large, columns=numbers[0], parts=3)
        yield "a test on parts", parts
    if odd.name == "a model":
        yield from _fits(neighbors)


def _fits(neighbors: Neighbors) -> Iterator[Asked]:
    """Fits: second moments, gradients, residuals, scores of units."""
    yield "least squares", _asking(ols, "y ~ x + z + g")
    yield "a robust regression", _asking(robust, "y ~ x", where={"g": "s"})
    yield "a logistic regression", _asking(logistic, "b ~ x + z")
    if neighbors.unit is None:
        yield "least squares by moments", _asking(ols, "y ~ x + z", method="moments")


def _answer(ask: Callable[[Session], Any], session: Session) -> Any:
    """The integers of an answer's releases, or what was raised."""
    try:
        result = ask(session)
    except Exception as error:
        return _told(error)
    releases = result.releases if hasattr(result, "releases") else (result.release,)
    return [(one.integers, one.found) for one in releases]


def _told(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}"
    return "an error that quotes a cell" if CANARY in text else text.splitlines()[0]


def _canary(data: Dataset) -> str:
    engine = data._engine
    shown = repr((data, engine.describe(), engine.data_id()))
    return "it quotes a cell" if CANARY in shown else ""


def main(asked: list[str]) -> int:
    """``module:make_engine`` and the tables that are wanted, all where none is named; 0 where all
    answers agree.
    """
    place, _, name = (asked[0] if asked else "").partition(":")
    known = {odd.name: odd for odd in odd_tables()}
    if not place or not name or not known.keys() >= {*asked[1:]}:
        print("usage: python -m discreet.testing.engines module:make_engine [TABLE ...]")
        print(f"tables: {', '.join(known)}")
        return 2
    sys.path.insert(0, "")
    tables = [known[wanted] for wanted in asked[1:] or known]
    result = check_engine(getattr(importlib.import_module(place), name), tables=tables)
    print(result)
    return 0 if result.passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
