"""What readers rely on: documented names, tests that docstrings cite, small modules,
a light import.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from public_stub import STUB, stub_text

import discreet
from discreet.asking.records import RECORDS

SOURCE = Path(discreet.__file__).parent
ROOT = SOURCE.parent.parent
MODULES = sorted(SOURCE.rglob("*.py"))
MOST_LINES = 600
# 209 lines of code; the rest are its theorems and blank lines. It was 250 when a line had 160
# columns and Dataset stood beside it; 100 columns made the same text longer.
MOST_SESSION_LINES = 310


def docstrings(path: Path) -> list[str]:
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
    ]
    return [text for text in map(ast.get_docstring, nodes) if text]


@pytest.mark.parametrize("name", discreet.__all__)
def test_every_public_name_has_a_docstring_of_its_own(name: str) -> None:
    thing = getattr(discreet, name)
    text = vars(thing).get("__doc__") if isinstance(thing, type) else thing.__doc__
    assert text, f"{name} needs a docstring"
    assert not text.startswith(f"{name}("), (
        f"{name} needs a docstring: dataclasses make one that only lists fields"
    )


def test_names_homes_and_typing_imports_agree() -> None:
    assert STUB.read_text() == stub_text(), "run python tests/architecture/public_stub.py"
    names = [name for names in discreet._HOMES.values() for name in names]
    names += [record.name for record in RECORDS]
    assert sorted(names) == sorted(discreet.__all__) == sorted(set(discreet.__all__))
    tree = ast.parse(STUB.read_text())
    typed = {
        alias.name: f"{node.module}:{alias.name}".removeprefix("discreet.")
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == discreet._PLACES
    exported = next(node for node in tree.body if isinstance(node, ast.Assign))
    assert ast.literal_eval(exported.value) == discreet.__all__
    assert set(dir(discreet)) >= set(discreet.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        discreet.nonsense  # noqa: B018


CITED = re.compile(r"(tests/[\w/]+(?:\.py)?/?)(?:::(\w+))?")


def cited(text: str) -> list[tuple[str, str]]:
    """(path, function) of every test that a *Checked.* paragraph or a sentence names."""
    return CITED.findall(text)


@functools.cache
def functions_of(path: Path) -> frozenset[str]:
    return frozenset(re.findall(r"def (\w+)\(", path.read_text()))


def test_every_cited_test_exists() -> None:
    seen, missing = 0, []
    for module in MODULES:
        for text in docstrings(module):
            if "Checked." in text:
                assert cited(text.split("Checked.")[1]), f"{module.name}: Checked names no test"
            for path, function in cited(text):
                seen += 1
                target = ROOT / path
                if not target.exists() or (function and function not in functions_of(target)):
                    missing.append(
                        f"{module.relative_to(SOURCE)}: {path}{'::' + function if function else ''}"
                    )
    assert not missing, "\n".join(missing)
    assert seen > 15


def test_the_citation_pattern_reads_paths_and_functions() -> None:
    assert cited("Checked.  tests/a/test_b.py::test_c, tests/trusted/ledger/") == [
        ("tests/a/test_b.py", "test_c"),
        ("tests/trusted/ledger/", ""),
    ]


ENTRY = re.compile(r"reference\.md ((?:[A-Z]\d+(?:–[A-Z]?\d+)?)(?:, [A-Z]\d+(?:–[A-Z]?\d+)?)*)")


def test_every_citation_of_the_mathematics_names_an_entry() -> None:
    seen = 0
    for module in MODULES:
        text = re.sub(r"\s+", " ", module.read_text())
        seen += text.count("reference.md")
        assert len(ENTRY.findall(text)) == text.count("reference.md"), (
            f"{module.relative_to(SOURCE)}: reference.md without an entry such as B5"
        )
    assert seen > 10


def test_modules_are_small() -> None:
    long = {
        str(module.relative_to(SOURCE)): lines
        for module in MODULES
        if (lines := len(module.read_text().splitlines())) > MOST_LINES
    }
    assert not long
    assert len((SOURCE / "trusted" / "session.py").read_text().splitlines()) < MOST_SESSION_LINES


def fresh(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


OUTSIDE = (
    "import sys; print(' '.join(sorted({name.split('.')[0] for name in sys.modules} - "
    "set(sys.stdlib_module_names))))"
)
HEAVY = {
    "scipy",
    "duckdb",
    "pyarrow",
    "pandas",
    "polars",
    "matplotlib",
    "numba",
    "flint",
    "rich",
    "typer",
    "cryptography",
    "narwhals",
}
# what may be loaded once the public names are used
ASKING = HEAVY - {"scipy", "flint", "cryptography", "narwhals"}


def test_importing_discreet_loads_nothing_heavy() -> None:
    bare, loaded = set(fresh(OUTSIDE).split()), set(fresh("import discreet;" + OUTSIDE).split())
    assert loaded - bare <= {"discreet", "numpy"}
    assert not (loaded - bare) & HEAVY


@pytest.mark.slow
def test_the_public_names_do_not_load_what_only_some_need() -> None:
    bare, loaded = (
        set(fresh(OUTSIDE).split()),
        set(
            fresh(
                "import discreet\nfor name in discreet.__all__: getattr(discreet, name)\n" + OUTSIDE
            ).split()
        ),
    )
    assert not (loaded - bare) & ASKING


@pytest.mark.slow
def test_importing_discreet_takes_at_most_three_times_as_long_as_numpy() -> None:
    def seconds(name: str) -> float:
        return float(
            fresh(
                f"import time; start = time.perf_counter(); import {name}; "
                "print(time.perf_counter() - start)"
            )
        )

    rounds = [(seconds("discreet"), seconds("numpy")) for _ in range(5)]
    ours, theirs = (min(column) for column in zip(*rounds, strict=True))
    assert ours <= 3 * theirs, f"import discreet {ours:.3f} s, import numpy {theirs:.3f} s"
