"""The import graph is the shape of the privacy proof: who may import whom, checked on the syntax tree of every module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import discreet

SOURCE = Path(discreet.__file__).parent

VOCABULARY = {"errors", "plain", "exact", "neighbors", "schema", "sensitivity", "tally", "tails", "ranges", "values"}
TRUSTED = {"balls", "seclusion", "mechanisms", "noise", "accounting", "queries", "design", "kernels", "model_kernels", "model_loops", "engines", "ledger"}  # layers 1–3
READERS = {"release", "inference", "plots", "distribution_plots", "regression_plots", "accounting_plots"}  # post-processing
ANYTHING = VOCABULARY | TRUSTED | READERS | {"session", "noisy_threshold", "datasets", "estimators", "models", "demo", "ledger_view", "account_view", "cli", "testing", "client", "local", ""}

# package → what it may import of discreet (beside itself); what is absent here is forbidden
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "plain": {"errors"},  # what passes the door
    "exact": {"errors", "plain"},
    "neighbors": {"errors", "plain"},
    "schema": {"errors", "plain", "exact"},
    "sensitivity": {"errors", "plain", "exact", "neighbors"},
    "values": {"schema"},  # one value, read by the total rules
    "tally": set(),
    "tails": set(),  # arithmetic of released counts, which searches and their readers share
    "ranges": {"tails"},
    "balls": set(),  # the one lock on the precision of ball arithmetic, which noise and accounting share
    "seclusion": set(),  # sections of a thread out of which nothing is seen
    "mechanisms": VOCABULARY,
    "noise": {"mechanisms", "balls"} | VOCABULARY,
    "accounting": {"mechanisms", "balls"} | VOCABULARY,
    "queries": VOCABULARY,
    "design": {"queries"} | VOCABULARY,
    "kernels": {"queries"} | VOCABULARY,
    "model_loops": {"queries"},
    "model_kernels": {"queries", "kernels", "model_loops", "seclusion"} | VOCABULARY,
    "engines": {"queries", "kernels", "model_kernels", "model_loops", "seclusion"} | VOCABULARY,
    "ledger": {"accounting", "mechanisms"} | VOCABULARY,
    "release": {"accounting", "mechanisms", "queries"} | VOCABULARY,
    "session": {"release"} | (TRUSTED - {"balls"}) | VOCABULARY,
    "datasets": {"session", "engines"} | VOCABULARY,
    "client_gradients": {"mechanisms", "noise"} | VOCABULARY,  # what one device does: no data set, no ledger, no engine
    "noisy_threshold": {"session", "seclusion", "release", "noise", "mechanisms", "queries"} | VOCABULARY,  # the session's second door: an open noisy threshold
    "inference": {"release", "errors", "exact", "tails", "ranges", "plots", "distribution_plots", "regression_plots"},  # plots: Result.plot alone, and plots is held to the same line
    "plots": {"release", "inference", "errors", "exact"},
    "regression_plots": {"plots", "release", "inference", "errors", "exact"},
    "distribution_plots": {"plots", "release", "inference", "errors", "exact"},
    "accounting_plots": {"plots", "accounting", "ledger", "errors", "exact"},  # an edge: pictures of guarantees and of a ledger's history
    "estimators": {"queries", "session", "noisy_threshold", "release", "inference", "accounting", "mechanisms"} | VOCABULARY,
    "models": {"design", "queries", "session", "release", "inference", "accounting", "mechanisms", "estimators"} | VOCABULARY,
    "client": {"client_gradients", "noise", "mechanisms"} | VOCABULARY,  # ships in apps: specs, exact draws, and nothing else
    "local": {"mechanisms", "accounting", "inference", "plots"} | VOCABULARY,  # reads reports; no data, no noise
    "reading": {"inference", "local", "plain"},  # an edge: results of every kind from their JSON
    "sklearn": {"", "errors", "engines", "seclusion"},  # an edge: the public functions as scikit-learn estimators
    "": ANYTHING, "__main__": ANYTHING, "cli": ANYTHING, "demo": ANYTHING, "ledger_view": ANYTHING, "account_view": {"accounting", "accounting_plots"} | VOCABULARY, "testing": ANYTHING,
}

# Other people's packages, where design §2 says which: below the line only what computes, draws or prints.
FRAMES = {"pandas", "polars", "pyarrow"}
MAY_IMPORT_OUTSIDE: dict[str, set[str]] = {
    **{package: set() for package in (*VOCABULARY, "mechanisms", "ledger", "release", "noisy_threshold", "datasets")},
    "session": set(),
    "seclusion": {"numpy"},
    "tally": {"numpy"},
    "values": {"numpy"},
    "client": {"numpy"},
    "local": {"numpy", "scipy"},
    "tails": {"numpy", "scipy"},
    "mechanisms": {"numpy"},
    "ranges": {"numpy", "scipy"},
    "balls": {"flint"},
    "noise": {"numpy", "cryptography", "flint", "numba"},
    "accounting": {"flint", "numpy", "scipy"},
    "queries": {"numpy"},
    "design": {"formulaic"},
    "kernels": {"numpy", "numba"},
    "model_kernels": {"numpy"},
    "model_loops": {"numpy", "numba"},
    "engines": {"numpy", "narwhals", "pyarrow"},
    "inference": {"numpy", "scipy", "rich"} | FRAMES,
    "plots": {"numpy", "matplotlib"},
    "distribution_plots": {"numpy", "matplotlib"},
    "regression_plots": {"numpy", "matplotlib"},
    "accounting_plots": {"numpy", "matplotlib"},
    "estimators": {"numpy"},
    "models": {"numpy", "scipy"},
}
NEVER = ("numpy.random", "random")  # noise comes from discreet.noise, everywhere
STANDARD = set(sys.stdlib_module_names)


def imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, dotted name) of every import, inside functions too, but not under ``if TYPE_CHECKING:``."""
    typing_only = {id(node) for branch in ast.walk(tree) if _is_type_checking(branch) for part in branch.body for node in ast.walk(part)}
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are written in full"
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _calls_import_by_name(node):
            yield node.lineno, _text_argument(node)
        elif isinstance(node, ast.Attribute) and node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
            yield node.lineno, "numpy.random"


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _calls_import_by_name(node: ast.Call) -> bool:
    return getattr(node.func, "id", None) == "__import__" or getattr(node.func, "attr", None) == "import_module"


def _text_argument(node: ast.Call) -> str:
    argument = node.args[0]
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else "an import by a computed name"


def package_of(module: str) -> str:
    """The row of the table: the first name below discreet, or "" for the root and its public names."""
    first = ([*module.split("."), ""])[1]
    return first if first in MAY_IMPORT or (SOURCE / first).is_dir() or (SOURCE / f"{first}.py").is_file() else ""


def violations(package: str, text: str) -> list[str]:
    """Every import of a module's text that the table does not allow to its package."""
    found = []
    for line, name in imported(ast.parse(text)):
        outer = name.split(".")[0]
        if any(name == banned or name.startswith(banned + ".") for banned in NEVER):
            found.append(f"line {line}: {name} is imported nowhere in discreet")
        elif outer == "discreet":
            target = package_of(name)
            if target != package and target not in MAY_IMPORT[package]:
                found.append(f"line {line}: {package or 'discreet'} must not import {name}")
        elif name == "an import by a computed name":
            if package:
                found.append(f"line {line}: {name}")
        elif outer not in STANDARD and package in MAY_IMPORT_OUTSIDE and outer not in MAY_IMPORT_OUTSIDE[package]:
            found.append(f"line {line}: {package} must not import {name}")
    return found


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def package_at(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


def test_every_import_is_in_the_table() -> None:
    found = [f"{path.relative_to(SOURCE)} {problem}" for path in modules() for problem in violations(package_at(path), path.read_text())]
    assert not found, "\n".join(found)


def test_every_package_has_a_row_in_the_table() -> None:
    assert {package_at(path) for path in modules()} == set(MAY_IMPORT)


BAD = [
    ("inference", "from discreet.noise import draw"),
    ("inference", "def f():\n    from discreet.engines import Engine"),
    ("inference", "def f():\n    import importlib\n    importlib.import_module('discreet.session')"),
    ("inference", "from discreet import session"),
    ("inference", "from discreet.queries import Moments"),
    ("estimators", "import discreet.ledger.core"),
    ("noise", "from numpy.random import default_rng"),
    ("noise", "import numpy as np\nrng = np.random.default_rng()"),
    ("noise", "from discreet import accounting"),
    ("session", "from discreet.estimators import mean"),
    ("engines", "if True:\n    from discreet.noise import draw"),
    ("accounting", "import pandas"),
    ("queries", "from discreet import GDP"),
    ("errors", "import random"),
]


@pytest.mark.parametrize(("package", "text"), BAD)
def test_the_checker_flags_a_bad_module(tmp_path: Path, package: str, text: str) -> None:
    module = tmp_path / "bad.py"
    module.write_text(f'"""A module that breaks the table."""\n\n{text}\n')
    assert violations(package, module.read_text())


def test_the_checker_lets_good_modules_pass() -> None:
    good = "from typing import TYPE_CHECKING\nimport numpy as np\nfrom discreet.release import Release\nif TYPE_CHECKING:\n    from discreet.session import Session\n"
    assert violations("inference", good) == []
    assert violations("inference", good.replace("if TYPE_CHECKING", "if True"))
