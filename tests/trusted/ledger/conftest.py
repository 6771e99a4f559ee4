"""Ledgers of every kind for the conformance suite, and a runner for scripts that fork,
race and die.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from discreet.accounting.guarantees import PureDP
from discreet.trusted.ledger.core import Ledger

SCRIPT = Path(__file__).with_name("processes.py")


@pytest.fixture(params=["memory", "sqlite"])
def open_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Ledger]:
    """`Ledger.open` on a new place of each kind."""
    path = tmp_path / "test.ledger" if request.param == "sqlite" else None

    def opened(budget: Any = None, **options: Any) -> Ledger:
        return Ledger.open(budget or PureDP(1), path=path, **options)

    return opened


@pytest.fixture
def ledger_file(tmp_path: Path) -> Path:
    """A file whose box holds ε = 1."""
    path = tmp_path / "test.ledger"
    Ledger.open(PureDP(1), path=path)
    return path


@pytest.fixture
def run_process() -> Callable[..., Any]:
    """Run one command of processes.py in a clean process:
    its JSON output, or its exit code if it was killed.
    """

    def run(command: str, *arguments: object) -> Any:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, str(SCRIPT), command, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=600,
            env=environment,
            check=False,
        )
        if done.returncode < 0:
            return {"signal": -done.returncode, "printed": done.stdout}
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
