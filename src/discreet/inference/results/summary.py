"""Tables for people: the same rows in the terminal (rich) and in a notebook (HTML)."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10
from typing import TYPE_CHECKING

from discreet.accounting import statement
from discreet.dates import text_at, units_of
from discreet.inference.results.held import held_notes
from discreet.specs.queries.moments import Moments

if TYPE_CHECKING:
    from discreet.inference.results.results import Quantity, Result
    from discreet.trusted.release import Description

SHOWN_CELLS = 60
LOCATIONS = ("mean", "median", "quantile")  # quantities that are dates where the column is


@dataclass(frozen=True, slots=True)
class Summary:
    """A rendered result: `print(summary)` in a terminal, an HTML table in a notebook."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for position, name in enumerate(self.header):
            numeric = all(_is_number(row[position]) for row in self.rows)
            table.add_column(Text(name), justify="right" if numeric else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*map(Text, row))  # a label is no markup, nor is a title or a name
        buffer = io.StringIO()
        console = Console(
            file=buffer,
            width=max(100, 12 * len(self.header) + 40),
            color_system=None,
            legacy_windows=False,
        )
        console.print(table)
        body = "\n".join(line.rstrip() for line in buffer.getvalue().splitlines())
        return f"{self.title}\n{body.rstrip()}\n" + "\n".join(self.notes)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.header)
        body = "".join(
            "<tr>"
            + "".join(f"<td style='text-align:right'>{html.escape(cell)}</td>" for cell in row)
            + "</tr>"
            for row in self.rows
        )
        notes = "<br>".join(html.escape(note) for note in self.notes)
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table><p><small>{notes}</small></p>"
        )


def summarise(result: Result, level: float, target: str) -> Summary:
    """The summary of a result: one line a cell, and for each quantity its estimate,
    interval and noise share.
    """
    asked = result.release.description
    quantities = result.quantities(level, target=target)
    percent = f"{100 * level:g}%"
    single = len(quantities) == 1
    header = list(asked.by if result.labels != [()] else ())
    for quantity in quantities:
        header += [
            quantity.name,
            *(["std. error"] if single else []),
            f"{percent} interval",
            *(["noise %"] if _mixed(quantity, single) else []),
        ]
    rows = []
    for cell, label in enumerate(result.labels[:SHOWN_CELLS]):
        row = list(label)
        for quantity in quantities:
            error = float(quantity.std_error[cell])
            dated = asked.origin if quantity.name in LOCATIONS else ""
            row.append(value_text(float(quantity.estimate[cell]), error, dated))
            if single:
                row.append(number_text(error, error))
            row.append(
                f"{value_text(float(quantity.low[cell]), error, dated, floor)} … "
                f"{value_text(float(quantity.high[cell]), error, dated, ceil)}"
            )
            if _mixed(quantity, single):
                row.append(f"{100 * float(quantity.noise_share[cell]):.0f}")
        rows.append(tuple(row))
    what = f" of {asked.column}" if asked.column else ""
    by = f" by {', '.join(asked.by)}" if asked.by and asked.by != (asked.column,) else ""
    return Summary(f"{result.title}{what}{by}", tuple(header), tuple(rows), _notes(result, target))


def _mixed(quantity: Quantity, single: bool) -> bool:
    """Whether a quantity's noise share is worth a column:
    not where its error is privacy alone by definition.
    """
    return single or quantity.name != "count"


def _notes(result: Result, target: str) -> tuple[str, ...]:
    release = result.release
    notes = [
        (
            f"Privacy of this release: {statement.privacy(release.spend, release.guarantee)}, "
            f"neighbours {release.neighbors}. noise % is the share of the variance that privacy "
            "cost."
        )
    ]
    if release.description.where:
        notes.append(f"Only rows where {release.description.where}.")
    if release.public_count is not None:
        notes.append(
            f"{release.public_count} {'rows' if release.public_rows is not None else 'units'} "
            "(public)."
        )
    notes += held_notes(release)
    if isinstance(release.query, Moments):
        grid = release.query.factor.encoding
        low, high = (
            _tidy(float(grid.value(code)), float(grid.step) * grid.high)
            for code in (grid.low, grid.high)
        )
        origin = release.description.origin
        if origin:
            low, high = (text_at(origin, float(grid.value(code))) for code in (grid.low, grid.high))
        notes.append(f"Values outside {low} … {high} count as the nearest bound.")
    if release.description.origin:
        notes.append(f"As numbers, {release.description.column} is {_dated(release.description)}.")
    notes.append(
        result.about
        if target == "population"
        else "Intervals are for this data set itself: privacy error alone."
    )
    if release.neighbors.rows > 1:
        notes.append(
            "Rows of one unit may be fully alike in these intervals (sampling variance × max_rows)."
        )
    if len(result.labels) > SHOWN_CELLS:
        notes.append(f"The first {SHOWN_CELLS} of {len(result.labels)} cells; to_frame() has all.")
    if not release.secure:
        notes.append("NOT PRIVATE: drawn with seeded test noise.")
    return tuple(notes)


def _dated(asked: Description) -> str:
    return f"{units_of(asked.origin)} (params, std. error, to_frame)"


def _tidy(bound: float, half_range: float) -> str:
    """A declared bound as it was written: rounding of the last digits of the range is left out."""
    return f"{round(bound / half_range, 12) * half_range + 0.0:.6g}"


def value_text(
    value: float, error: float, origin: str, side: Callable[[float], float] = float
) -> str:
    """A number with two digits of its standard error, or the date that it counts to; an end of an
    interval is rounded to its side.
    """
    if not origin or not isfinite(value):
        return number_text(value, error)
    return text_at(origin, side(value))


def number_text(value: float, error: float) -> str:
    """A number with two digits of its standard error."""
    if not isfinite(value):
        return str(value)
    if not isfinite(error) or error <= 0:
        return f"{value:.6g}"
    digits = max(0, 1 - floor(log10(error)))
    if digits > 12:
        return f"{value:.4g}"
    return f"{value:,.{digits}f}".replace(",", " ")


def _is_number(text: str) -> bool:
    return (
        bool(text)
        and text.lstrip("<")
        .replace("…", "")
        .replace(" ", "")
        .replace("-", "")
        .replace(".", "")
        .replace("e", "")
        .isdigit()
    )
