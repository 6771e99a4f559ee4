"""A table for a paper or a page: Markdown and LaTeX, with everything in it escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

Rows = Sequence[Sequence[str]]

# characters that Markdown or the HTML inside it would read as marks
_MARKDOWN = re.compile(r"([\\`*_\[\]<>#|~$&])")
_LATEX_MARKS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
}
# signs that a LaTeX without further packages does not know
_LATEX_SIGNS = {
    sign: f"$\\{name}$"
    for sign, name in {
        "α": "alpha",
        "β": "beta",
        "γ": "gamma",
        "δ": "delta",
        "ε": "varepsilon",
        "η": "eta",
        "θ": "theta",
        "μ": "mu",
        "ν": "nu",
        "π": "pi",
        "ρ": "rho",
        "σ": "sigma",
        "χ": "chi",
        "≤": "leq",
        "≥": "geq",
        "≠": "neq",
        "≈": "approx",
        "×": "times",
        "·": "cdot",
        "±": "pm",
        "∞": "infty",
        "⊥": "bot",
    }.items()
} | {
    "−": "$-$",
    "…": r"\ldots{}",
    "–": "--",
    "—": "---",
    "²": "$^2$",
    "₀": "$_0$",
    "½": "$1/2$",
    "\u00a0": "~",
}
_LATEX = str.maketrans(_LATEX_MARKS | _LATEX_SIGNS)


def markdown_text(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex_text(text: str) -> str:
    """A text that LaTeX sets as it is."""
    return " ".join(text.split()).translate(_LATEX)


def markdown_table(
    title: str, header: Sequence[str], rows: Rows, notes: Sequence[str], numeric: Sequence[bool]
) -> str:
    """A pipe table below its title, the notes below it."""
    marks = ("---:" if number else ":---" for number in numeric)
    lines = [
        f"**{markdown_text(title)}**",
        "",
        _piped(map(markdown_text, header)),
        _piped(marks),
        *(_piped(map(markdown_text, row)) for row in rows),
    ]
    return "\n".join([*lines, *(f"\n{markdown_text(note)}" for note in notes)]) + "\n"


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def latex_table(
    title: str,
    header: Sequence[str],
    rows: Rows,
    notes: Sequence[str],
    numeric: Sequence[bool],
    *,
    label: str | None = None,
) -> str:
    """A floating table in the style of booktabs, the notes below it in a smaller size."""
    columns = "".join("r" if number else "l" for number in numeric)
    named = [rf"\label{{{re.sub(r'[^A-Za-z0-9:._-]', '', label)}}}"] if label else []
    small = [r"\par\smallskip", r"\begin{minipage}{\linewidth}\footnotesize"]
    told = [f"{latex_text(note)}\\par" for note in notes]
    return (
        "\n".join(
            [
                r"% \usepackage{booktabs}",
                r"\begin{table}[htbp]",
                r"\centering",
                rf"\caption{{{latex_text(title)}}}",
                *named,
                rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
                r"\toprule",
                _ampersands(header),
                r"\midrule",
                *map(_ampersands, rows),
                r"\bottomrule",
                r"\end{tabular}",
                *([*small, *told, r"\end{minipage}"] if told else []),
                r"\end{table}",
            ]
        )
        + "\n"
    )


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"
