"""What a release did with cells that hold no value, in words: how many rows it is about, and what
was filled in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.inference.results.decode import noise_of, to_float
from discreet.inference.results.laws import Array, Noise, half_width
from discreet.specs.estimating.equations import WeightedGram
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.keys import Bins, Cycle, Held, Levels
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import Sum
from discreet.specs.queries.trees import TreeCounts
from discreet.specs.queries.unit_sums import UnitShares, UnitSums
from discreet.trusted.release import Release

LEVEL = 0.95
# queries whose counts together are of all rows that hold a value: residuals by cells, and right
# and wrong decisions (both are released wherever a row may be left out)
WHOLE_COUNTS = ("residual counts", "agreement")


def cautions(*releases: Release) -> list[str]:
    """What must be said of releases that are no private answers about anybody."""
    notes = []
    if any(release.made_up for release in releases):
        notes.append("MADE-UP DATA: rows drawn from the schema alone; this is about nobody.")
    if not all(release.secure for release in releases):
        notes.append("NOT PRIVATE: drawn with seeded test noise.")
    return notes


def held_rows(release: Release, level: float = LEVEL) -> tuple[float, float, float] | None:
    """(estimate, low, high) of the rows that hold a value in every column that is read, where their
    number was released; privacy error alone.
    """
    counted = _counted(release)
    return None if counted is None else _within(*counted, release.public_rows, level)


def _within(
    count: Array, noise: Noise, most: int | None, level: float
) -> tuple[float, float, float]:
    """A noisy count and its interval, within what is possible."""
    half = half_width(level, 0.0 * count, noise)
    ends = np.clip([count, count - half, count + half], 0.0, np.inf if most is None else most)
    estimate, low, high = (float(value) for value in np.ravel(ends))
    return estimate, low, high


def _counted(release: Release) -> tuple[Array, Noise] | None:
    """The noisy number of those rows, as released: by itself, or as the sum of cells in which each
    of them is counted once.
    """
    query, mechanism = release.query, release.mechanism
    if not release.integers:
        return None
    first = np.asarray(release.integers[0], dtype=object)
    if isinstance(query, Sum) and query.absent and release.public_rows is not None:
        absent = to_float(mechanism, np.asarray(release.integers[-1], dtype=object), 1.0)
        return np.asarray(release.public_rows - absent), noise_of(mechanism, 1.0)
    if not left_out(release):
        return None
    if query.kind == "grid counts":  # read on demand: a mean needs none of these modules
        from discreet.inference.results.held_rows import rows_searched

        return rows_searched(mechanism, release.integers)
    if query.kind in WHOLE_COUNTS and isinstance(mechanism, AdditiveNoise):
        return _total(release, (len(release.integers),), 1.0)
    if isinstance(query, PairMoments) and isinstance(mechanism, SymmetricGaussianNoise):
        unit = query.unit_values()[0]
        count = np.asarray(float(first) * float(mechanism.step) * unit)
        return (count, Noise(mechanism.variance * unit**2)) if query.count else None
    if not isinstance(mechanism, AdditiveNoise):
        return None
    if isinstance(query, (ShareCounts, UnitShares)) or (
        isinstance(query, DifferenceMoments) and query.cells == 1 and query.design.count
    ):
        unit = query.unit_values()[0]
        return to_float(mechanism, first, unit), noise_of(mechanism, unit)
    if isinstance(query, (Moments, UnitSums)) and query.design.count:
        return _total(release, (query.cells,), query.unit_values()[0])
    if isinstance(query, Sum) and not query.term:
        return _total(release, (query.size - query.absent,), 1.0)
    if isinstance(query, TreeCounts):
        sizes = tuple(query.branching**level for level in range(1, query.levels + 1))
        return _total(release, sizes, 1.0)
    return None


def _total(release: Release, sizes: tuple[int, ...], unit: float) -> tuple[Array, Noise]:
    """The rows in all cells, and its noise. Each of `sizes` is a group of neighbouring cells that
    holds every row once; groups are weighed by how exact their sums are.
    """
    weights = np.array([1 / size for size in sizes])
    weights /= weights.sum()
    ends = np.cumsum(sizes)
    sums = [sum(release.integers[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    count = to_float(release.mechanism, np.array(sums, dtype=object), unit) @ weights
    one = noise_of(release.mechanism, unit)
    spread = sum((weights**2 * sizes).tolist())
    return np.asarray(count), Noise(
        one.variance * spread, one.fourth * sum((weights**4 * sizes).tolist())
    )


def left_out(release: Release) -> tuple[str, ...]:
    """The columns whose rows without a value are left out: those that a statistic reads, and those
    whose cells it counts.
    """
    query = release.query
    if isinstance(query, Sum) and query.absent:
        return tuple(dict.fromkeys(key.column for key in query.keys))
    filled = {name for name, _ in release.filled}
    kinds = (Held, Levels, Bins, Cycle) if query.optional else Held
    return tuple(
        dict.fromkeys(
            key.column
            for key in query.keys
            if isinstance(key, kinds) and (isinstance(key, Held) or key.column not in filled)
        )
    )


def _is_of_cells(release: Release) -> bool:
    """Whether rows beyond the edges of bins are not among those that were counted."""
    query = release.query
    counts_all = isinstance(query, Sum) and query.absent and release.public_rows is not None
    return not counts_all and any(isinstance(key, Bins) for key in query.keys)


def unit_notes(*releases: Release) -> list[str]:
    """What a summary says of rows that are one unit's."""
    if all(release.neighbors.rows == 1 for release in releases):
        return []
    if any(between_units(release) for release in releases):
        return [
            "Rows of one unit are taken together: sampling errors are those of the units' own sums."
        ]
    return [
        "Rows of one unit may be fully alike in these intervals (sampling variance × max_rows)."
    ]


def between_units(release: Release) -> bool:
    """Whether a release says how units' own sums spread."""
    return isinstance(release.query, (UnitSums, UnitShares)) or (
        isinstance(release.query, WeightedGram) and release.query.part == "unit scores"
    )


def data_notes(*releases: Release, rows: float | None = None) -> list[str]:
    """What was done to the cells before a statistic read them: left out, filled in. Every summary
    of releases shows these lines below its table; `rows` are those that a fit of them is about.

    Of several releases about the same columns the first that counted their rows is shown.
    """
    notes: list[str] = []
    told: set[tuple[str, ...]] = set()
    counted = [(release, held_rows(release)) for release in releases]
    for release, found in sorted(counted, key=lambda one: one[1] is None):
        columns = left_out(release)
        if columns and columns not in told:
            notes.append(_left_out_note(release, columns, found, rows))
        told.add(columns)
    for release in releases:
        notes += (f"A cell of {name} without a value counts as {x}." for name, x in release.filled)
    return list(dict.fromkeys(notes))


def cells_note(releases: Sequence[Release]) -> str | None:
    """How many rows hold a value in some cell, where every cell has a release of its own that
    counted them: the sum of these counts.
    """
    first, found = releases[0], [_counted(release) for release in releases]
    columns = tuple(dict.fromkeys((*left_out(first), *first.description.by)))
    counted = [one for one in found if one is not None]
    if not left_out(first) or len(counted) < len(found):
        return None
    total = sum((noise for _, noise in counted), Noise(0.0))
    rows = np.asarray(sum(count for count, _ in counted))
    return _counted_note(
        first, columns, _within(rows, total, first.public_rows, LEVEL), " in some cell"
    )


def _left_out_note(
    release: Release,
    columns: tuple[str, ...],
    found: tuple[float, float, float] | None,
    rows: float | None,
) -> str:
    """How many rows hold a value, where it was released: by this release, or by others of a fit."""
    if found is not None:
        within = " in some cell" if _is_of_cells(release) else ""
        return _counted_note(release, columns, found, within)
    names, total, of_all = ", ".join(columns), release.public_rows, _of_all(release)
    if rows is not None and rows != total:  # else the public number, and not a count
        most = rows if total is None else min(rows, float(total))
        return f"About {most:.0f}{of_all} rows hold a value of {names}; the others are left out."
    return f"Rows without a value of {names} are left out; dp.missing tells how many there are."


def _of_all(release: Release) -> str:
    if release.description.where:
        return " of those"
    rows = release.public_rows
    return "" if rows is None else f" of {rows}"


def _counted_note(
    release: Release, columns: tuple[str, ...], found: tuple[float, float, float], within: str
) -> str:
    estimate, low, high = found
    return (
        f"About {estimate:.0f}{_of_all(release)} rows hold a value of {', '.join(columns)}{within} "
        f"({low:.0f} … {high:.0f}); the others are left out."
    )
