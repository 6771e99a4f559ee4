"""Measured figures as files: a benchmark with ``--store`` leaves what it measured in
benchmarks/results/NAME.json, and the site's evidence shows it.

    import stored

    stored.option(parser)                                   # --store
    ...
    if options.store:
        stored.table(
            "coverage_basic",
            about="coverage",
            title="Nominal 95 % intervals of means",
            says="Shares of runs whose interval holds the truth.",
            columns=[stored.column("law"), stored.column("covered", digits=3, target="≥ 0.94")],
            rows=[{"law": "normal", "covered": stored.share(held, runs)}],
            runs=runs,
            error="the standard error of a share of the runs",
        )

The command is the one that was given, the date today's, the version that of the library: nothing of
it is typed. Read by tools/site/evidence.py, which refuses a file that lacks a field, a row that
lacks a column, and simulated figures (``runs``) without their Monte-Carlo error.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import discreet as dp

FOLDER = Path(__file__).parent / "results"
# what a table is about: the parts of the evidence page, in its order
ABOUT = ("coverage", "width", "size", "power", "accuracy", "privacy", "speed", "house")
SIGNIFICANT = 6


def option(parser: argparse.ArgumentParser) -> None:
    """The flag of a benchmark that can leave its figures."""
    parser.add_argument(
        "--store", action="store_true", help="write what was measured to benchmarks/results"
    )


def wanted() -> bool:
    """Whether ``--store`` was given to a benchmark whose other arguments are read by their places;
    it is taken out of them.
    """
    found = "--store" in sys.argv
    sys.argv[:] = [one for one in sys.argv if one != "--store"]
    return found


def column(
    key: str, title: str = "", *, digits: int | None = None, target: str = ""
) -> dict[str, Any]:
    """A column: its heading, how many decimals are shown, and what was wanted of its figures."""
    said = {"key": key, "title": title or key, "digits": digits, "target": target}
    return {name: value for name, value in said.items() if value not in (None, "")}


def share(hits: float, runs: int) -> dict[str, float]:
    """A share of the runs with its standard error (of a share one run from the end, at least)."""
    part = hits / runs
    inside = min(max(part, 1 / runs), 1 - 1 / runs) if runs > 1 else 0.5
    return {"value": part, "error": math.sqrt(inside * (1 - inside) / runs)}


def measured(value: float, error: float) -> dict[str, float]:
    """A figure with its Monte-Carlo standard error."""
    return {"value": value, "error": error}


def table(
    name: str,
    *,
    about: str,
    title: str,
    says: str,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    runs: int | None = None,
    error: str | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Write a table; ``runs`` is the simulated data sets a figure, ``error`` what ± stands for."""
    if about not in ABOUT:
        raise ValueError(f"about is one of {', '.join(ABOUT)}, not {about!r}")
    keys = [one["key"] for one in columns]
    if any([*row] != keys for row in rows) or not rows:
        raise ValueError(f"each row of {name} has the columns {keys}, in this order")
    if runs is not None and not error:
        raise ValueError(f"{name}: simulated figures need their Monte-Carlo error")
    written = {
        "title": title,
        "about": about,
        "says": says,
        "command": command(),
        "date": date.today().isoformat(),
        "version": dp.__version__,
        "machine": machine(),
        "runs": runs,
        "error": error,
        "columns": [dict(one) for one in columns],
        "rows": [{key: _rounded(value) for key, value in row.items()} for row in rows],
        "notes": [*notes, *(_busy() if about == "speed" else ())],
    }
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    text = json.dumps(written, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def figures(
    name: str,
    *,
    about: str,
    title: str,
    says: str,
    found: Mapping[str, Any],
    runs: int | None = None,
    error: str | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """A table of single figures by what they are; a value may be a pair of a figure and what was
    wanted of it.
    """
    pairs = {
        what: value if isinstance(value, tuple) else (value, "") for what, value in found.items()
    }
    wanted = any(limit for _, limit in pairs.values())
    rows = [
        {"what": what, "figure": figure} | ({"wanted": limit} if wanted else {})
        for what, (figure, limit) in pairs.items()
    ]
    columns = [column(key) for key in rows[0]]
    return table(
        name,
        about=about,
        title=title,
        says=says,
        columns=columns,
        rows=rows,
        runs=runs,
        error=error,
        notes=notes,
    )


def command() -> str:
    """The command that measures it again."""
    asked = [one for one in sys.argv[1:] if one != "--store"]
    more = f" ARGS={shlex.quote(shlex.join(asked))}" if asked else ""
    return f"make bench NAME={Path(sys.argv[0]).stem}{more}"


def machine() -> str:
    """On what: the kind of processor, how many of them, which Python."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def _busy() -> list[str]:
    """Whether others computed on the machine while times were taken."""
    load, cores = os.getloadavg()[1], os.cpu_count() or 1
    if load <= cores + 1:
        return []
    return [f"The machine was shared: {load:.0f} processes wanted its {cores} cores."]


def _rounded(value: Any) -> Any:
    """Six significant digits: more is noise, and makes every run another file."""
    if isinstance(value, Mapping):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else _significant(number)


def _significant(number: float) -> float:
    return float(f"{number:.{SIGNIFICANT}g}")
