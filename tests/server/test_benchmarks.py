"""Small versions of the benchmarks of the curator: what must be 0 is 0."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A benchmark by its name."""
    monkeypatch.setattr(sys, "path", [str(BENCHMARKS), *sys.path])

    def loaded(name: str) -> Any:
        told = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
        assert told is not None
        assert told.loader is not None
        module = importlib.util.module_from_spec(told)
        monkeypatch.setitem(sys.modules, name, module)
        told.loader.exec_module(module)
        return module

    return loaded


@pytest.mark.slow
def test_faults(benchmark: Any) -> None:
    """Every box runs out exactly while a process is killed and the database restarted."""
    found = benchmark("curator_faults").run(22, 900.0, every=0.3, restarts=4.0, web=1)
    assert found["asked"] == 22
    wrong = ("overspent", "lost", "duplicated", "unanswered", "chain_problems", "not_exact")
    assert {name: found[name] for name in wrong} == dict.fromkeys(wrong, 0)
    assert found["kills"] >= 1
    assert found["answered"] + found["refused"] == 22


@pytest.mark.slow
def test_isolation(benchmark: Any) -> None:
    found = benchmark("curator_isolation").measured(1, 8)
    assert found["revealed"] == 0
    assert found["probes"] > 300


def test_an_attacker_with_a_clock_is_told_by_the_auc(benchmark: Any) -> None:
    """The measure itself: a coin is near .5, a difference of any sign near 1."""
    import numpy as np

    auc, draw = benchmark("curator_timing").auc, np.random.default_rng(1)
    same = draw.normal(size=(2, 2000))
    assert abs(auc(*same) - 0.5) < 0.05
    assert auc(same[0], same[1] + 4) > 0.95
    assert auc(same[0] + 4, same[1]) > 0.95
