"""How easily the library can be read, in numbers; the last line has all of them.

core_lines, extension_lines,   code of src/discreet/trusted, without blanks, comments, docstrings:
learning_lines,                the core, and the rooms beside it that only some questions load
aggregation_lines,
scale_lines,
tree_lines
flat_modules                  modules that lie directly in src/discreet
largest_folder                most modules of a folder of it
knots                         sets of modules that import each other, lazily or not
long_lines                    lines of more than 100 columns, in src, tests, benchmarks and tools
uncited                       citations that name nothing in the repository
hops_mean, hops_robust        calls from file to file in one mean with its summary, in one
                              robust regression

The limits of most of them are held by tests/architecture/test_house.py.

    python benchmarks/house.py
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import stored

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "architecture"))

from code_lines import TRUSTED, folder_lines
from measures import import_knots, long_lines, measured, modules_by_folder
from test_citations import missing_citations

SHOWN = 10


def show(title: str, found: list[str]) -> None:
    """A list, cut where it is long."""
    if found:
        print(f"{title}:")
        for one in found[:SHOWN]:
            print(f"  {one}")
        if len(found) > SHOWN:
            print(f"  … {len(found)} in all")


def main() -> int:
    asked = stored.wanted()
    lines = sorted(folder_lines(TRUSTED).items(), key=lambda entry: -entry[1])
    show("code lines of trusted", [f"{count:4} {name}" for name, count in lines])
    show("flat modules", modules_by_folder()[""])
    show("knots", [" ↔ ".join(knot) for knot in import_knots()])
    show("long lines", long_lines())
    show("citations that name nothing", missing_citations())
    if asked:
        stored.figures(
            "house",
            about="house",
            title="How large is what must be right",
            says="Lines of code without comments and docstrings, and the shape of the rest.",
            found={name.replace("_", " "): number for name, number in asdict(measured()).items()},
        )
    print(" ".join(f"{name}={number}" for name, number in asdict(measured()).items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
