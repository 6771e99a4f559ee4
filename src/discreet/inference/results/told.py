"""What everything with a table says the same way: text, a notebook's HTML, Markdown, LaTeX, and a
repr of three lines.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.inference.results.named import Entry, Name, name_text
from discreet.inference.results.summary import Summary, number_text

WIDTH = 100


class Told:
    """A thing with a `summary()`: it prints, renders in a notebook, and goes into a paper."""

    __slots__ = ()

    def summary(self) -> Summary:
        """A table to print; renders in a notebook too."""
        raise NotImplementedError

    def to_html(self, **asked: Any) -> str:
        """The table of `summary(**asked)` as HTML that needs no style sheet."""
        return self.summary(**asked).to_html()

    def to_markdown(self, **asked: Any) -> str:
        """The table of `summary(**asked)` as Markdown (pipe table)."""
        return self.summary(**asked).to_markdown()

    def to_latex(self, *, label: str | None = None, **asked: Any) -> str:
        """The table of `summary(**asked)` as LaTeX; it needs the package booktabs."""
        return self.summary(**asked).to_latex(label=label)

    def lines(self) -> tuple[str, str, str]:
        """What `repr` shows: the answer, what it cost, what was asked."""
        told = self.summary()
        answer = "; ".join(cell for cell in told.rows[0] if cell) if told.rows else "nothing"
        cost, asked = (*told.notes, "", "")[:2]
        return f"{told.title}: {answer}", cost, asked

    def _repr_html_(self) -> str:
        return self.summary().to_html()

    def __str__(self) -> str:
        return str(self.summary())

    def __repr__(self) -> str:
        return "\n".join(shortened(line) for line in self.lines())


def shortened(line: str, width: int = WIDTH) -> str:
    """A line of at most `width` columns; what is cut off is marked."""
    one = " ".join(line.split())
    return one if len(one) <= width else one[: width - 1].rstrip() + "…"


def answers_line(what: str, entries: Iterable[Entry], *, many: bool) -> str:
    """Estimates with their intervals, as many as a line holds, and how many more there are."""
    rest, line = list(entries), f"{what}:"
    if not rest:
        return f"{line} nothing"
    level = f"{100 * rest[0].level:g}%"
    while rest:
        one = rest[0]
        ends = " … ".join(number_text(end, one.std_error) for end in one.interval)
        mark, name = f"{level}: " if line[-1] == ":" else "", f" {name_text(one.name)}"
        told = f" {number_text(one.estimate, one.std_error)} ({mark}{ends})"
        more = f"{name}{told};" if many else told
        if not mark and len(line) + len(more) > WIDTH - 10:
            break
        line += more
        rest.pop(0)
    return f"{line} {len(rest)} more" if rest else line.rstrip(";")


def share_text(shares: Iterable[float]) -> str:
    """How much of the variances privacy cost."""
    found = [share for share in shares if share == share]
    if not found:
        return "the share of noise is not known"
    low, high = (f"{100 * end:.0f}" for end in (min(found), max(found)))
    return f"noise is {low if low == high else f'{low} … {high}'} % of the variance"


def named(labels: list[tuple[str, ...]], otherwise: str) -> tuple[Name, ...]:
    """The names of cells: their label, its parts where there are several, or `otherwise` for the
    one cell without a label.
    """
    return tuple(label[0] if len(label) == 1 else label if label else otherwise for label in labels)
