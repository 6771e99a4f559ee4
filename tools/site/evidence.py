"""Tables of measured figures: benchmarks/results/*.json says what was measured, by which command,
when, with which version and with what Monte-Carlo error. Benchmarks write them (`--store`,
benchmarks/stored.py), pages show them; nobody types them.

    title      what the table is called           about    which part of the page it stands in
    says       one sentence: what it shows
    command    that measured it        date, version, machine   when, of what, on what
    runs       simulated data sets a figure, or null            error   what ± is, or null
    columns    [{"key", "title"}], with "digits" and "target" where they have some
    rows       [{key: text, number, or {"value": x, "error": y}}]
    notes      sentences below the table
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "evidence" / "index.md"  # what stands above the tables
REQUIRED = ("title", "about", "says", "command", "date", "version", "machine", "runs", "error",
            "columns", "rows")  # fmt: skip


# the parts of the page, in order: what a table is about, the heading, what is asked there
PARTS = {
    "coverage": ("Coverage", "Does a 95 % interval hold the truth in 95 of 100 samples?"),
    "width": ("Width", "How much wider is it than an interval that knew more?"),
    "size": ("Size of tests", "How often does a test reject what is true?"),
    "power": ("Power of tests", "How often does it find what is there?"),
    "accuracy": ("Accuracy", "How near does an answer come, beside other libraries?"),
    "privacy": ("Privacy, attacked", "What do audits and attacks find?"),
    "speed": ("Speed", "What does it cost in time and memory?"),
    "house": ("The house", "How large is what must be right, and how is it checked?"),
}


class BadEvidence(RuntimeError):
    """A file of measured figures does not say what it must."""


def stored() -> dict[str, dict[str, Any]]:
    """All measured tables by name."""
    return {path.stem: read(path) for path in sorted(FOLDER.glob("*.json"))}


def read(path: Path) -> dict[str, Any]:
    """One measured table, checked."""
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    lost = [field for field in REQUIRED if field not in table]
    if lost:
        raise BadEvidence(f"{path.name} lacks {', '.join(lost)}")
    if table["about"] not in PARTS:
        raise BadEvidence(f"{path.name} is about {table['about']!r}, not one of {', '.join(PARTS)}")
    keys = [column["key"] for column in table["columns"]]
    for row in table["rows"]:
        if [*row] != keys:
            raise BadEvidence(f"{path.name}: a row has {[*row]}, the columns are {keys}")
    if table["runs"] is not None and not table["error"]:
        raise BadEvidence(f"{path.name}: simulated figures need their Monte-Carlo error")
    return table


def table_text(table: dict[str, Any]) -> str:
    """The table with where its figures come from, in Markdown."""
    columns = table["columns"]
    numeric = [
        all(not isinstance(row[column["key"]], str) for row in table["rows"]) for column in columns
    ]
    titles = [column["title"] for column in columns]
    lines = [
        table["says"],
        "",
        "| " + " | ".join(titles) + " |",
        "|" + "|".join(" --: " if number else " :-- " for number in numeric) + "|",
    ]
    for row in table["rows"]:
        cells = (cell(row[column["key"]], column.get("digits")) for column in columns)
        lines.append("| " + " | ".join(cells) + " |")
    wanted = [
        f"{column['title']}: {column['target']}" for column in columns if column.get("target")
    ]
    said = [*([f"Wanted: {'; '.join(wanted)}."] if wanted else []), *table.get("notes", [])]
    lines += ["", provenance(table), *(f"{sentence}" for sentence in said), "{ .provenance }", ""]
    return "\n".join(lines)


def cell(value: object, digits: int | None) -> str:
    """A value as it stands in a cell: text, a number, or a number ± its error."""
    if isinstance(value, dict):
        return f"{cell(value['value'], digits)} ± {cell(value['error'], digits)}"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    if isinstance(value, (int, float)):
        plain = f"{value:.{digits}f}" if digits is not None else f"{value:,}".replace(",", " ")
        return plain.replace("-", "−")
    return str(value).replace("|", "\\|")


def provenance(table: dict[str, Any]) -> str:
    """Where the figures come from, in one line."""
    runs = f" {table['runs']:,} runs a figure;".replace(",", " ") if table["runs"] else ""
    error = f" ± is {table['error']}." if table["error"] else ""
    return (
        f"Measured by `{table['command']}` with discreet {table['version']}, {table['date']}, "
        f"on {table['machine']};{runs}{error}".rstrip(";").rstrip(".")
        + "."
    )


def overview(tables: dict[str, dict[str, Any]]) -> str:
    """The page of all measured tables."""
    lines = [PAGE.read_text(encoding="utf-8")]
    for about, (heading, asked) in PARTS.items():
        found = [name for name, table in tables.items() if table["about"] == about]
        if found:
            lines += [f"## {heading}", "", asked, ""]
        for name in found:
            lines += [f"### {tables[name]['title']} {{ #{name} }}", ""]
            lines += [f"<!-- evidence: {name} -->", ""]
    return "\n".join(lines)
