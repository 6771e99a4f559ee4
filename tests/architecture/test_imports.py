"""The import graph is the shape of the privacy proof: `import_table.TABLE`, checked on the syntax
tree of every module; no module imports itself by a detour; random bits come from one place."""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from import_table import PAGE, ROWS, TABLE, written

import discreet

SOURCE = Path(discreet.__file__).parent
STANDARD = set(sys.stdlib_module_names)
NEVER = ("numpy.random", "random")  # noise comes from discreet.trusted.noise, everywhere
COMPUTED = "an import by a computed name"

# who may import by a computed name: places of records, which test_records.py walks, and of
# extensions, whose texts are read here as imports; the engine that is named at a terminal, and the
# reader of a stream that an operator names
MAY_COMPUTE = ("asking.records", "trusted.later", "testing.engines", "server.work.connections")

# who may ask the system for random bits: keys of the generator, and names that identify
BITS = ("secrets", "os.urandom", "os.getrandom", "uuid.uuid1", "uuid.uuid4", "ssl")
MAY_ASK_FOR_BITS = {
    "trusted/noise/source.py": "the generator's key",
    "trusted/session.py": "the name of a question without a key",
    "trusted/ledger/core.py": "the name of a reservation",
    "trusted/ledger/opening.py": "the name of a ledger",
    "trusted/tree/records.py": "the names of nodes and reservations",
    "trusted/engines/memory.py": "the name of a data set in memory",
    "trusted/ledger/sqlite.py": "the name of a file that is being made",
    "server/accounts/marks.py": "ids, tokens, passwords told once, the key of pins",
    "trusted/cluster/spark.py": "the key of sums that are never shown, and a name",
    "trusted/scale/files.py": "the key of a digest that is never shown",
    "trusted/scale/sources.py": "the name of a data set that has none",
    "trusted/scale/streams.py": "the key of sums that are never shown",
}


@functools.cache
def imports_of(text: str) -> tuple[tuple[int, str], ...]:
    """`imported` of a module's text: several checks read the same modules."""
    return tuple(imported(ast.parse(text)))


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, lazy ones too, but not under ``if TYPE_CHECKING:``."""
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and _is_type_checking(branch)
        for part in branch.body
        for node in ast.walk(part)
    }
    called = _names_of_modules(tree)
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are written in full"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _calls_import_by_name(node, called):
            yield node.lineno, _text_argument(node)
        elif (whole := _attribute(node, called)) == "numpy.random" or whole in BITS:
            yield node.lineno, whole


def _names_of_modules(tree: ast.Module) -> dict[str, str]:
    """What each name that an import makes stands for, in full."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _attribute(node: ast.AST, called: dict[str, str]) -> str:
    """`module.name` in full, written with a dot or with getattr; "" for anything else."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{called.get(node.value.id, node.value.id)}.{node.attr}"
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "getattr":
        holder, name = (*node.args, None, None)[:2]
        if isinstance(holder, ast.Name) and isinstance(name, ast.Constant):
            return f"{called.get(holder.id, holder.id)}.{name.value}"
    return ""


def _is_type_checking(node: ast.If) -> bool:
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _calls_import_by_name(node: ast.Call, called: dict[str, str]) -> bool:
    name, attribute = getattr(node.func, "id", ""), getattr(node.func, "attr", None)
    by_name = ("__import__", "importlib.import_module", "discreet.trusted.later.later")
    return called.get(name, name) in by_name or (attribute in ("import_module", "__import__"))


def _text_argument(node: ast.Call) -> str:
    argument = node.args[0]
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        return argument.value
    return COMPUTED


def modules() -> dict[str, Path]:
    """Every module by its dotted name below discreet; "" is the package itself."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room_of(name: str) -> str:
    """The longest room that a dotted name begins with; "public" for the package and its names."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        room = ".".join(parts[:length])
        if room in ROWS:
            return room
    return "public"


def _allowed(name: str, room: str) -> bool:
    """Whether a room may import a name: its own, or what begins with a name in its row."""
    if room_of(name) == room:
        return True
    rooms = ROWS[room].may
    return any(name == one or name.startswith(f"{one}.") for one in rooms) or (
        "public" in rooms and room_of(name) == "public"
    )


def violations(room: str, text: str, *, computes: bool = False) -> list[str]:
    """Every import of a module's text that the table does not allow to its room; `computes`: it
    may import by a computed name.
    """
    found = []
    for line, name in imports_of(text):
        outer = name.split(".")[0]
        if any(name == banned or name.startswith(f"{banned}.") for banned in NEVER):
            found.append(f"line {line}: {name} is imported nowhere in discreet")
        elif room == "public":
            continue
        elif outer == "discreet":
            if not _allowed(name.removeprefix("discreet").removeprefix("."), room):
                found.append(f"line {line}: {room} must not import {name}")
        elif name == COMPUTED:
            if not computes:
                found.append(f"line {line}: {name}")
        elif outer not in STANDARD and outer not in ROWS[room].outside:
            found.append(f"line {line}: {room} must not import {name}")
    return found


def test_every_import_is_in_the_table() -> None:
    found = [
        f"{path.relative_to(SOURCE)} {problem}"
        for name, path in MODULES.items()
        for problem in violations(room_of(name), path.read_text(), computes=name in MAY_COMPUTE)
    ]
    assert not found, "\n".join(found)


def test_every_module_has_a_room_and_every_room_a_module() -> None:
    assert [name for name in MODULES if room_of(name) == "public"] == [""]
    rooms = {room_of(name) for name in MODULES} - {"public"}
    assert sorted(rooms) == sorted(ROWS)
    assert len(TABLE) == len(ROWS)


def test_the_page_shows_the_table() -> None:
    page = PAGE.read_text()
    assert page == written(page), "run python tests/architecture/import_table.py"


BAD = [
    ("inference", "from discreet.trusted.noise import draw"),
    ("inference", "def f():\n    from discreet.trusted.engines import Engine"),
    ("inference", "import importlib\nimportlib.import_module('discreet.trusted.session')"),
    ("inference", "from discreet.trusted import session"),
    ("inference", "from discreet.trusted.ledger import Ledger"),
    ("inference", "from discreet import Session"),
    ("estimators", "import discreet.trusted.ledger.core"),
    ("trusted.noise", "from numpy.random import default_rng"),
    ("trusted.noise", "import numpy as np\nrng = np.random.default_rng()"),
    ("trusted.noise", "from discreet import accounting"),
    ("trusted.noise", "from discreet.trusted.engines import Engine"),
    ("trusted.session", "from discreet.estimators import mean"),
    ("trusted.engines", "if True:\n    from discreet.trusted.noise import draw"),
    ("trusted.extensions.local", "from discreet.trusted.session import Session"),
    (
        "trusted.noise",
        "from discreet.trusted.later import later\n"
        "f = later('discreet.trusted.engines.memory', 'sums')",
    ),
    ("trusted.noise", "from discreet.trusted.later import later\nf = later(place, 'sums')"),
    ("accounting", "import pandas"),
    ("specs", "from discreet import GDP"),
    ("errors", "import random"),
    ("asking", "import importlib\nimportlib.import_module(name)"),
]


@pytest.mark.parametrize(("room", "text"), BAD)
def test_the_checker_flags_a_bad_module(room: str, text: str) -> None:
    assert violations(room, f'"""A module that breaks the table."""\n\n{text}\n')


def test_the_checker_lets_good_modules_pass() -> None:
    good = (
        "from typing import TYPE_CHECKING\n"
        "import numpy as np\n"
        "from discreet.trusted.release import Release\n"
        "from discreet.specs.queries import Moments\n"
        "if TYPE_CHECKING:\n"
        "    from discreet.trusted.session import Session\n"
    )
    assert violations("inference", good) == []
    assert violations("inference", good.replace("if TYPE_CHECKING", "if True"))


# -- who may ask for random bits ----------------------------------------


def asks_for_bits(text: str) -> list[str]:
    names = [name for _, name in imports_of(text)]
    return [
        name for name in names if any(name == one or name.startswith(f"{one}.") for one in BITS)
    ]


def test_random_bits_come_from_the_noise_and_from_ids() -> None:
    found = {
        str(path.relative_to(SOURCE))
        for path in MODULES.values()
        if asks_for_bits(path.read_text())
    }
    assert found <= set(MAY_ASK_FOR_BITS), sorted(found - set(MAY_ASK_FOR_BITS))
    assert found >= set(MAY_ASK_FOR_BITS), sorted(set(MAY_ASK_FOR_BITS) - found)


@pytest.mark.parametrize(
    "text",
    [
        "import secrets",
        "from secrets import token_bytes",
        "import os\nos.urandom(8)",
        "from os import urandom",
        "import uuid\nuuid.uuid4()",
    ],
)
def test_a_module_that_asks_for_bits_is_noticed(text: str) -> None:
    assert asks_for_bits(text)


# -- no module imports itself by a detour ----------------------------------------


def import_graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which module imports which, by their names; lazy imports count, and so does what a package
    imports when a module of it is imported from outside.
    """
    graph: dict[str, set[str]] = {}
    for name, text in sources.items():
        graph[name] = set()
        for _, target in imports_of(text):
            if target.split(".")[0] != "discreet":
                continue
            whole = target.removeprefix("discreet").removeprefix(".")
            while whole not in sources and "." in whole:
                whole = whole.rsplit(".", 1)[0]
            if whole in sources and whole not in ("", name):
                graph[name].add(whole)
            graph[name] |= {one for one in packages_of(whole, name) if one in sources}
    return graph


def packages_of(target: str, importer: str) -> list[str]:
    """The packages that an import of a module loads first; not those that the importer is in."""
    parts = target.split(".")
    outer = [".".join(parts[:length]) for length in range(1, len(parts))]
    return [one for one in outer if not f"{importer}.".startswith(f"{one}.")]


def knots(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import each other by some detour."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph[name]
        reached[start] = seen
    return sorted(
        {
            tuple(sorted(other for other in seen if name in reached[other]))
            for name, seen in reached.items()
            if name in seen
        }
    )


def test_no_module_imports_itself_by_a_detour() -> None:
    found = knots(import_graph({name: path.read_text() for name, path in MODULES.items()}))
    assert not found, "\n".join(", ".join(knot) for knot in found)


def test_a_knot_is_noticed() -> None:
    tied = {"a": "from discreet.b import x", "b": "def f():\n    from discreet.a import y"}
    assert knots(import_graph(tied)) == [("a", "b")]
    assert knots(import_graph({**tied, "b": ""})) == []


def test_a_knot_through_a_package_is_noticed() -> None:
    tied = {
        "a": "from discreet.b.c import x",
        "b": "from discreet.b.d import y",
        "b.c": "",
        "b.d": "from discreet.a import z",
    }
    assert knots(import_graph(tied)) == [("a", "b", "b.d")]
    assert knots(import_graph({**tied, "b": ""})) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from importlib import import_module\nimport_module('random')", "random"),
        ("from importlib import import_module as load\nload('random')", "random"),
        ("import importlib as i\ni.import_module('random')", "random"),
        ("import importlib\nimportlib.__import__('random')", "random"),
        ("import numpy as n\nn.random.normal()", "numpy.random"),
        ("import numpy\ngetattr(numpy, 'random')", "numpy.random"),
        ("from numpy import random as r", "numpy.random"),
        ("import os as system\nsystem.urandom(3)", "os.urandom"),
    ],
)
def test_imports_by_other_names_are_noticed(text: str, found: str) -> None:
    assert found in [name for _, name in imported(ast.parse(text))]
