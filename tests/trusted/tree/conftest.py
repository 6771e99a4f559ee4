"""Trees in every kind of store, and places that several processes and threads can share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from discreet.trusted.tree.tree import BudgetTree

sys.path.append(str(Path(__file__).parents[1] / "scale"))

import postgresql


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


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new place of each kind that processes can share."""
    if request.param == "sqlite":
        return str(tmp_path / "budgets.db")
    return str(request.getfixturevalue("new_database")())
