"""From columns and bins, as a caller writes them, to the axes of tables; refused before anything is
paid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from discreet.asking.cells import bin_cells, level_cells
from discreet.errors import InvalidParameter, shown
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.inference.synthesis.formulas import columns_asked
from discreet.inference.synthesis.trees import Clique, cell_count, tree_cells
from discreet.schema import Boolean, Category, Open, Schema
from discreet.specs.queries.keys import LARGEST_CELLS, Bins
from discreet.specs.queries.marginals import Axis

MOST_COLUMNS = 64
LARGEST_DECLARED = 1 << 12  # cells of the table of a declared analysis
LARGEST_COLUMN = 1 << 10  # cells of one column


def domain_of(
    schema: Schema, columns: Sequence[str], bins: Mapping[str, object] | None
) -> tuple[Domain, tuple[Axis, ...]]:
    """The columns with their cells, and the axes by which rows are counted."""
    names = _names(schema, columns)
    cut_by = _bins(names, bins)
    cuts, axes = [], []
    for name in names:
        cut, axis = _cut(schema, name, cut_by.get(name))
        cuts.append(cut)
        axes.append(axis)
    return Domain(tuple(cuts)), tuple(axes)


def declared_tables(domain: Domain, analyses: Sequence[object]) -> tuple[Clique, ...]:
    """The tables of the columns of all analyses, those within another left out."""
    found: list[Clique] = []
    for asked in analyses:
        columns = columns_asked(asked, domain)
        cells = cell_count(domain.sizes, columns)
        if cells > LARGEST_DECLARED:
            raise InvalidParameter(
                f"analysis {shown(asked)}",
                f"the table of {domain.words(columns)} has {cells} cells",
                f"its columns are measured together, in at most {LARGEST_DECLARED} cells: with "
                "more, each holds little but noise",
                f"leave out {_largest(domain, columns)}, or use fewer bins",
            )
        if len(columns) > 1 and columns not in found:
            found.append(columns)
    return tuple(one for one in found if not any(set(one) < set(other) for other in found))


def require_pairs(domain: Domain, declared: Sequence[Clique]) -> None:
    """Refuses columns whose pairs, with the declared tables, have too many cells for a release."""
    sizes = domain.sizes
    cells = (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    cells += sum(cell_count(sizes, table) for table in declared)
    if cells > LARGEST_CELLS:
        largest = sorted(domain.cuts, key=lambda cut: -cut.size)[:3]
        raise InvalidParameter(
            "columns",
            f"their pairs and the declared tables have {cells} cells",
            f"every pair is compared with independence, in at most {LARGEST_CELLS} cells",
            f"leave out {', '.join(f'{cut.name} ({cut.size} cells)' for cut in largest)}, or use "
            "fewer bins",
        )


def require_tree(domain: Domain, tables: Sequence[Clique], limit: int) -> None:
    """Refuses declared tables whose junction tree is too large."""
    cells = tree_cells(domain.sizes, tables)
    if cells > limit:
        most = max(tables, key=lambda one: cell_count(domain.sizes, one))
        raise InvalidParameter(
            "analyses=",
            f"together they need a model of {cells} cells",
            f"it is fitted on a junction tree of at most {limit} cells",
            f"leave out an analysis, or columns of {domain.words(most)} such as "
            f"{_largest(domain, most)}",
        )


def _largest(domain: Domain, columns: Clique) -> str:
    place = max(columns, key=lambda one: domain.sizes[one])
    return f"{domain.cuts[place].name} ({domain.sizes[place]} cells)"


def _names(schema: Schema, columns: object) -> tuple[str, ...]:
    listed = list(columns) if isinstance(columns, (list, tuple)) else []
    for name in listed:
        schema[name]  # refuses what is not declared, or no name at all
    if not 2 <= len(listed) <= MOST_COLUMNS or len(set(listed)) != len(listed):
        raise InvalidParameter(
            "columns",
            f"a {type(columns).__name__} is no list of column names"
            if not isinstance(columns, (list, tuple))
            else "one is named twice"
            if len(set(listed)) != len(listed)
            else f"there are {len(listed)}",
            "a synthesis is about how columns go together",
            f'name 2 to {MOST_COLUMNS} different columns: ["income", "sex", "age"]',
        )
    return tuple(listed)


def _bins(names: tuple[str, ...], bins: object) -> Mapping[str, object]:
    if bins is None:
        return {}
    if not isinstance(bins, Mapping) or not set(bins) <= set(names):
        strange = (
            [shown(name) for name in bins if name not in names] if isinstance(bins, Mapping) else []
        )
        raise InvalidParameter(
            "bins=",
            f"{', '.join(strange)} is none of the columns"
            if strange
            else f"a {type(bins).__name__} is no mapping",
            "they say where number columns are cut",
            "pass for example bins={'age': [18, 25, 35, 45, 60, 90], 'income': 10}",
        )
    return bins


def _cut(schema: Schema, name: str, bins: object) -> tuple[Cut, Axis]:
    column = schema[name]
    if isinstance(column, Open):
        raise InvalidParameter(
            f"column {name!r}",
            "it is declared as Open",
            "cells of a table are declared levels, and nobody has listed its values",
            "declare it as dp.Category(levels), or leave it out",
        )
    if isinstance(column, (Category, Boolean)) and bins is None:
        cells = level_cells(schema, name, "columns")
    elif bins is None:
        raise InvalidParameter(
            f"column {name!r}",
            "it is a number column without bins",
            "tables count rows by declared cells",
            f"pass bins={{{name!r}: [edge, edge, …]}} or a number of bins, or leave it out",
        )
    else:
        cells = bin_cells(schema, name, bins)
    key = cells.keys[0]
    if isinstance(column, (Category, Boolean)):
        cut = Cut(name, column, cells.labels[0])
    else:
        cut = Cut(name, column, cells.labels[0], _edges(schema, name, key))
    if cut.size > LARGEST_COLUMN:
        raise InvalidParameter(
            f"column {name!r}",
            f"it has {cut.size} cells",
            f"at most {LARGEST_COLUMN} cells of a column are told apart",
            "use fewer bins, or levels that hold more rows",
        )
    return cut, Axis(key, cut.absent)


def _edges(schema: Schema, name: str, key: object) -> tuple[float, ...]:
    """The edges of bins that hold all of a column's declared range."""
    column = schema[name]
    if not isinstance(key, Bins):
        raise InvalidParameter(
            f"bins of {name!r}",
            "they are a cycle (weekdays, hours)",
            "rows with the column's own values could not be drawn",
            "cut by 'year', 'quarter', 'month' or 'day', or by edges",
        )
    low, high = float(column.low), float(column.high)  # type: ignore[union-attr]
    if key.edges[0] > low or key.edges[-1] < high:
        raise InvalidParameter(
            f"bins of {name!r}",
            f"they hold {key.edges[0]:g} … {key.edges[-1]:g}, and {low:g} … {high:g} is declared",
            "every row must fall in a cell of every table",
            "let the first and the last edge be the declared bounds",
        )
    return key.edges
