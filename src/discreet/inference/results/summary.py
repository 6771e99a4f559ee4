"""Tables for people: the same rows and notes in the terminal (rich), in a notebook (HTML), in
Markdown and in LaTeX.
"""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, isnan, log10
from typing import TYPE_CHECKING, Literal

from discreet.accounting import statement
from discreet.accounting.statement import table_html
from discreet.dates import text_at, units_of
from discreet.inference.results.held import cautions, data_notes, unit_notes
from discreet.inference.results.rendering import latex_table, markdown_table
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.unit_sums import UnitSums

if TYPE_CHECKING:
    from discreet.inference.results.results import Quantity, Result
    from discreet.trusted.release import Description

SHOWN_CELLS = 60
TINY = 5  # decimals: a number below 0.01 that needs more is written in powers of ten
LOCATIONS = ("mean", "median", "quantile")  # quantities that are dates where the column is
WIDTH, LEAST_LABEL = 100, 14  # columns of a printed table, and of a label in it
# columns that belong to the quantity before them
BESIDE = ("interval", "noise %", "std. error", "std err", "sampling", "privacy", "unit")


@dataclass(frozen=True, slots=True)
class Summary:
    """A rendered result: `print(summary)` in a terminal, a table in a notebook (HTML),
    `to_markdown` and `to_latex` for a page or a paper. `notes` stand below the table in all.
    """

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def with_notes(self, *notes: str) -> Summary:
        """The same table with further notes below it."""
        return replace(self, notes=(*self.notes, *notes))

    def __str__(self) -> str:
        rows = self._wrapped()
        body = "\n".join(self._printed(rows, places) for places in self._blocks(rows))
        return f"{self.title}\n{body}\n" + "\n".join(map(_in_lines, self.notes))

    def _printed(self, rows: list[tuple[str, ...]], places: list[int]) -> str:
        """Some of the columns, as text."""
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        numeric = self._numeric()
        for place in places:
            side: Literal["left", "right"] = "right" if numeric[place] else "left"
            table.add_column(Text(self.header[place]), justify=side, no_wrap=True)
        for row in rows:  # a label is no markup, nor is a title or a name
            table.add_row(*(Text(row[place]) for place in places))
        buffer = io.StringIO()
        console = Console(
            file=buffer,
            width=max(WIDTH, 12 * len(self.header) + 40),
            color_system=None,
            legacy_windows=False,
        )
        console.print(table)
        return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).rstrip()

    def _blocks(self, rows: list[tuple[str, ...]]) -> list[list[int]]:
        """The columns in blocks that are at most `WIDTH` wide: a quantity stays together with its
        interval and its noise, and every block begins with the labels.
        """
        widths = [
            max(len(name), *(len(line) for row in rows for line in row[place].split("\n")), 0) + 3
            for place, name in enumerate(self.header)
        ]
        numeric = self._numeric()
        first = next((place for place, number in enumerate(numeric) if number), len(numeric))
        labels, groups = list(range(first)), list[list[int]]()
        for place in range(first, len(self.header)):
            if groups and self.header[place].endswith(BESIDE):
                groups[-1].append(place)
            else:
                groups.append([place])
        spare = WIDTH + 1 - sum(widths[place] for place in labels)
        blocks: list[list[int]] = []
        left = 0
        for group in groups:
            wide = sum(widths[place] for place in group)
            if not blocks or wide > left:
                blocks.append([*labels])
                left = spare
            blocks[-1] += group
            left -= wide
        return blocks or [labels]

    def __repr__(self) -> str:
        return str(self)

    def to_html(self) -> str:
        """An HTML table that needs no style sheet."""
        return table_html(self.title, self.header, self.rows, self.notes, self._numeric())

    def to_markdown(self) -> str:
        """A pipe table in Markdown."""
        return markdown_table(self.title, self.header, self.rows, self.notes, self._numeric())

    def to_latex(self, *, label: str | None = None) -> str:
        """A LaTeX table; it needs the package booktabs."""
        return latex_table(
            self.title, self.header, self.rows, self.notes, self._numeric(), label=label
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def _numeric(self) -> tuple[bool, ...]:
        return tuple(
            all(_is_number(row[position]) for row in self.rows)
            for position in range(len(self.header))
        )

    def _wrapped(self) -> list[tuple[str, ...]]:
        """The rows, long labels in several lines where the table would pass `WIDTH` columns."""
        numeric = self._numeric()
        widths = [
            max(len(name), *(len(row[place]) for row in self.rows), 0)
            for place, name in enumerate(self.header)
        ]
        words = [place for place, number in enumerate(numeric) if not number]
        spare = (
            WIDTH
            - 3 * len(widths)
            - 2
            - sum(width for place, width in enumerate(widths) if numeric[place])
        )
        least = max([LEAST_LABEL, *(len(self.header[place]) for place in words)])
        if not words or sum(widths[place] for place in words) <= spare:
            return list(self.rows)
        longest = _fair_widths([widths[place] for place in words], spare, least)
        limits = dict(zip(words, longest, strict=True))
        return [
            tuple(
                wrapped_label(cell, limits[place]) if place in limits else cell
                for place, cell in enumerate(row)
            )
            for row in self.rows
        ]


def _in_lines(note: str) -> str:
    """A note in lines of at most `WIDTH` columns; what follows the first is set in."""
    return "\n".join(
        textwrap.wrap(
            note, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
        or [note]
    )


def _fair_widths(wanted: list[int], spare: int, least: int) -> list[int]:
    """Widths of label columns that fill what is spare: short ones as they are, the rest alike."""
    given = dict.fromkeys(range(len(wanted)), 0)
    left = list(given)
    while left:
        each = max(least, (spare - sum(given.values())) // len(left))
        short = [place for place in left if wanted[place] <= each]
        for place in short or left:
            given[place] = min(wanted[place], each)
        left = [place for place in left if place not in short] if short else []
    return list(given.values())


def wrapped_label(label: str, width: int) -> str:
    """A label in lines of at most `width` columns, broken after a colon (between the factors of an
    interaction), else at a space, else before a level's bracket, else anywhere.
    """
    lines, line = [], ""
    parts = re.findall(r"[^:\s]*(?::|\s+|$)", label)
    for part in _broken(parts, width):
        if line and len(line) + len(part.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += part
        while len(line.rstrip()) > width:
            lines.append(line[:width])
            line = line[width:]
    return "\n".join([*lines, line.rstrip()] if line.strip() else lines)


def _broken(parts: list[str], width: int) -> Iterator[str]:
    """The parts of a label, those that pass a line in two at their brackets."""
    for part in parts:
        yield from [part] if len(part.rstrip()) <= width else re.findall(r"\[?[^\[]+", part)


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
                row.append(percent_text(float(quantity.noise_share[cell])))
        rows.append(tuple(row))
    return Summary(title_of(result), tuple(header), tuple(rows), _notes(result, target))


def title_of(result: Result) -> str:
    """What a result is, of which column, by which keys."""
    asked = result.release.description
    what = f" of {asked.column}" if asked.column else ""
    by = f" by {', '.join(asked.by)}" if asked.by and asked.by != (asked.column,) else ""
    return f"{result.title}{what}{by}"


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
        counted = "rows" if release.neighbors.unit is None else "units"
        notes.append(f"{release.public_count} {counted} (public).")
    notes += data_notes(release)
    factor = release.query.factor if isinstance(release.query, (Moments, UnitSums)) else None
    if factor is not None:
        grid = factor.encoding
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
        notes += unit_notes(release)
    if len(result.labels) > SHOWN_CELLS:
        notes.append(f"The first {SHOWN_CELLS} of {len(result.labels)} cells; to_frame() has all.")
    notes += cautions(release)
    return tuple(notes)


def _dated(asked: Description) -> str:
    return f"{units_of(asked.origin)} (params, std. error, to_frame)"


def _tidy(bound: float, half_range: float) -> str:
    """A declared bound as it was written: rounding of the last digits of the range is left out."""
    return grouped(round(bound / half_range, 12) * half_range + 0.0)


def value_text(
    value: float, error: float, origin: str, side: Callable[[float], float] = float
) -> str:
    """A number with two digits of its standard error, or the date that it counts to; an end of an
    interval is rounded to its side.
    """
    if not origin or not isfinite(value):
        return number_text(value, error)
    return text_at(origin, side(value))


def percent_text(share: float) -> str:
    """A share in percent; a dash where it is not known."""
    return "–" if isnan(share) else f"{100 * share:.0f}"


def number_text(value: float, error: float) -> str:
    """A number with two digits of its standard error; a dash where it is not known."""
    if not isfinite(value):
        return "–" if isnan(value) else str(value)
    if not isfinite(error) or error <= 0:
        return grouped(value)
    digits = max(0, 1 - floor(log10(error)))
    if digits > 12:
        return f"{value:.4g}"
    if digits > TINY and abs(value) < 0.01:
        return f"{value:.{max(0, digits + floor(log10(abs(value))))}e}" if value else "0"
    return f"{value:,.{digits}f}".replace(",", " ")


def grouped(value: float, digits: int = 6) -> str:
    """A number with so many digits; the thousands of a large one are set apart."""
    text = f"{value:.{digits}g}"
    if abs(value) < 1e4 or abs(value) >= 1e15:
        return text
    whole = value if abs(value) >= 10**digits else float(text)
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    return f"{whole:,.{decimals}f}".replace(",", " ")


def _is_number(text: str) -> bool:
    return text == "–" or (
        bool(text)
        and text.lstrip("<")
        .replace("…", "")
        .replace(" ", "")
        .replace("-", "")
        .replace("−", "")
        .replace(".", "")
        .replace("e", "")
        .replace("+", "")
        .isdigit()
    )
