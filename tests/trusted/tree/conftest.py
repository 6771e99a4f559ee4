"""Trees in every kind of store, for the conformance suite, and a runner for scripts that fork,
race and die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from discreet.trusted.tree.tree import BudgetTree

sys.path.append(str(Path(__file__).parents[1] / "scale"))

import postgresql

SCRIPT = Path(__file__).with_name("tree_processes.py")


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The address of a PostgreSQL of these tests' own."""
    with postgresql.server() as address:
        yield address


@pytest.fixture
def new_database(request: pytest.FixtureRequest) -> Callable[[], str]:
    """The address of a new database."""

    def made() -> str:
        address = request.getfixturevalue("cluster")
        name = f"tree_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return str(address).replace("/postgres?", f"/{quote(name)}?")

    return made


_numbers = iter(range(10**9))


@pytest.fixture(
    params=["memory", "sqlite", "held", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def open_tree(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., BudgetTree]:
    """A tree in a new place of each kind; called again, the same place, where it lasts. `held`
    is a file whose connections stay open between operations.
    """
    place, held = None, request.param == "held"
    if held or request.param == "sqlite":
        place = str(tmp_path / "budgets.db")
    if request.param == "postgresql":
        place = request.getfixturevalue("new_database")()
    return lambda **options: BudgetTree.open(place, held=held, **options)


@pytest.fixture(params=["sqlite", "postgresql"])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new place of each kind that processes can share."""
    if request.param == "sqlite":
        return str(tmp_path / "budgets.db")
    return str(request.getfixturevalue("new_database")())


@pytest.fixture
def run_process() -> Callable[..., Any]:
    """Run one command of tree_processes.py in a clean process: its JSON output, or the signal
    that killed it and what it had printed.
    """

    def run(command: str, *arguments: object) -> Any:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
            check=False,
        )
        if done.returncode < 0:
            return {"signal": -done.returncode, "printed": done.stdout}
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
