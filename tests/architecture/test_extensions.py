"""Most questions load no extension of the trusted part, and each extension comes with its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fresh_process import run_fresh

START = """
import sys, pathlib
import discreet as dp
schema = {"x": dp.Real(0, 10), "y": dp.Real(0, 10), "k": dp.Open(), "id": dp.Integer(0, 99)}
rows = {
    "x": [float(i % 7) for i in range(40)],
    "y": [float(i % 5) for i in range(40)],
    "k": ["a", "b"] * 20,
    "id": list(range(20)) * 2,
}
folder = pathlib.Path.cwd()

def opened(data):
    return data.open(budget=dp.ApproxDP(100, 1e-2))

def arrays(neighbors=dp.AddRemove(), names=("x", "y")):
    return opened(
        dp.from_arrays(
            rows, schema={name: schema[name] for name in names}, neighbors=neighbors
        )
    )
"""
END = """
rooms = ("extensions", "learning", "aggregation", "scale", "cluster")
print(" ".join(name.removeprefix(f"discreet.trusted.{room}.") for name in sys.modules
    for room in rooms if name.startswith(f"discreet.trusted.{room}.")))
"""
GDP = "spend=dp.GDP(1)"
QUESTIONS = {
    "mean": (f'dp.mean(arrays(), "x", {GDP})', ""),
    "sum": (f'dp.sum(arrays(), "x", {GDP})', ""),
    "model": (f'dp.ols(arrays(), "y ~ x", {GDP})', "estimating.reading"),
    "open keys": (
        'dp.table(arrays(names=("k",)), by="k", spend=dp.GDP(1), delta=1e-5)',
        "open_keys.counts",
    ),
    "parts": (
        f'dp.subsample_test(arrays(), lambda x: 0.5, columns="x", parts=2, {GDP})',
        "part_tests",
    ),
    "friends": (
        f'dp.friendly_mean(arrays(dp.Replace()), ["x", "y"], radius=3, refine=False, {GDP})',
        "friends.rows",
    ),
    "tables": (
        f'dp.synthesize(arrays(), ["x", "y"], bins={{"x": 2, "y": 2}}, {GDP})',
        "tables",
    ),
    "watch": (f"dp.watch(arrays(), 3, {GDP})", "noisy_threshold"),
    "holdout": (f"dp.holdout(arrays(), threshold=0.1, answers=2, {GDP})", "noisy_threshold"),
    "csv": (
        "(folder / 'a.csv').write_text('x\\n1\\n2\\n')\n"
        "dp.mean(opened(dp.read_csv(folder / 'a.csv', schema={'x': schema['x']}, "
        f"neighbors=dp.AddRemove())), 'x', {GDP})",
        "csv_files",
    ),
    "units in files": (
        "import pyarrow as pa, pyarrow.parquet as pq\n"
        "pq.write_table(pa.table(rows), folder / 'a.parquet')\n"
        "dp.mean(opened(dp.read_parquet(folder / 'a.parquet', schema={'x': schema['x']}, "
        f"neighbors=dp.AddRemove(unit='id', max_rows=1))), 'x', {GDP})",
        "unit_buckets",
    ),
    "units of several rows": (
        "dp.mean(opened(dp.from_arrays(rows, schema={'x': schema['x']}, "
        f"neighbors=dp.AddRemove(unit='id', max_rows=2))), 'x', {GDP})",
        "unit_sums",
    ),
}
ROOMS = {module.split(".")[0] for _, module in QUESTIONS.values()} - {""}


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_extension_is_loaded_by_its_own_question_alone(question: str, tmp_path: Path) -> None:
    asked, needed = QUESTIONS[question]
    ended = run_fresh(START + asked + END, question, tmp_path)
    assert ended.code == 0, ended.stderr
    found = ended.stdout.split()
    if not needed:
        assert found == []
        return
    assert needed in found
    assert {name.split(".")[0] for name in found} & ROOMS == {needed.split(".")[0]}
