"""Rows on disk are read as they were written, have no name there, and are gone with the process."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.testing import seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.engines import batches
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.scale import spill
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.spill import Spill, StoredRows

SCHEMA = {
    "x": dp.Real(-3, 3),
    "z": dp.Real(-3, 3),
    "y": dp.Real(-9, 9),
    "b": dp.Boolean(),
    "g": dp.Category(["s", "m", "l"]),
}
CANARY = b"canary-in-a-cell"


def stored(rows, pieces, folder=None, order=None):
    """Rows on disk, put there in pieces in some order."""
    cuts = np.array_split(np.arange(len(rows)), pieces)
    made = StoredRows(folder, rows.dtype, rows.shape[1] if rows.ndim == 2 else None)
    for place in order if order is not None else range(pieces):
        made.put(place, rows[cuts[place]])
    return made.sealed()


@pytest.mark.parametrize("rows", [0, 1, 5, 600, 3000])
@pytest.mark.parametrize("width", [None, 1, 7])
def test_rows_on_disk_are_read_like_an_array(rows, width):
    rng = np.random.default_rng(rows)
    given = rng.integers(-(2**14), 2**14, (rows, width) if width else rows).astype(np.int16)
    made = stored(given, 4, order=[2, 0, 3, 1])
    assert made.shape == given.shape
    assert len(made) == rows
    for low in range(0, rows + 1, max(1, rows // 7)):
        for high in (low, low + 1, rows // 2, rows, rows + 50):
            assert np.array_equal(made[low:high], given[low:high])
    for asked in (rng.integers(0, max(rows, 1), 40 * bool(rows)), np.arange(rows)[::-1]):
        assert np.array_equal(made.take(asked, axis=0), given.take(asked, axis=0))
    for beyond in ([rows], [-1]):
        with pytest.raises(IndexError):
            made.take(np.array(beyond))
    if rows:
        assert made.min() == given.min()
        beside = made.beside(np.int32)
        beside[1:rows] = np.arange(1, rows)
        beside[0:1] = 7
        assert np.array_equal(beside[:], [7, *range(1, rows)])


def test_bytes_that_are_not_there_raise(tmp_path):
    held = Spill(str(tmp_path))
    place = held.append(b"abc")
    assert held.read(place).tobytes() == b"abc"
    with pytest.raises(OSError, match="lost bytes"):
        held.read((0, 4))
    with pytest.raises(TypeError):
        held.__reduce__()


def table(rows=3000):
    rng = np.random.default_rng(4)
    x, z = rng.normal(0, 1, (2, rows))
    return pa.table(
        {
            "x": np.where(rng.random(rows) < 0.02, np.nan, x),
            "z": z,
            "y": 1 + 2 * x - z + rng.normal(0, 1, rows),
            "b": rng.random(rows) < 1 / (1 + np.exp(-x)),
            "g": rng.choice(["s", "m", "l", "?"], rows),
            "id": rng.integers(0, rows // 3, rows),
        }
    )


def opened(folder, neighbors, limits):
    schema = dp.Schema(SCHEMA)
    engine = FileEngine(folder / "rows.parquet", "parquet", schema, neighbors, scale=limits)
    return seeded_session(Dataset(engine, schema, neighbors), dp.ApproxDP(200, 1e-4), seed=2)


FITS = {
    "least squares": lambda s: dp.ols(s, "y ~ x + z + g", spend=dp.GDP(2)),
    "logistic where": lambda s: dp.logistic(s, "b ~ x + z", where={"g": "s"}, spend=dp.GDP(2)),
    "quantiles": lambda s: dp.robust(s, "y ~ x", spend=dp.GDP(2)),
    "sampled": lambda s: dp.logistic(s, "b ~ x + z", spend=dp.GDP(2), solver=dp.SGD(delta=1e-7)),
    "minimised": lambda s: dp.erm(s, "b ~ x + z", spend=dp.GDP(2)),
    "moments": lambda s: dp.ols(s, "y ~ x + z", method="moments", spend=dp.GDP(2)),
}


def drawn(fit):
    releases = fit.releases if hasattr(fit, "releases") else (fit.release,)
    return [release.integers for release in releases]


@pytest.mark.slow
@pytest.mark.parametrize("fit", FITS)
def test_fits_on_disk_release_the_same(fit, tmp_path, monkeypatch):
    """Seeded fits, rows in memory and on disk in pieces of another size."""
    pq.write_table(table(), tmp_path / "rows.parquet", row_group_size=500)
    kept = dp.Replace()
    expected = drawn(FITS[fit](opened(tmp_path, kept, None)))
    monkeypatch.setattr(batches, "BATCH_ROWS", 700)
    made = []
    monkeypatch.setattr(
        spill.StoredRows,
        "sealed",
        lambda rows, sealed=spill.StoredRows.sealed: (made.append(rows), sealed(rows))[1],
    )
    assert drawn(FITS[fit](opened(tmp_path, kept, Limits(1 << 30, str(tmp_path))))) == expected
    assert not made
    assert drawn(FITS[fit](opened(tmp_path, kept, Limits(3200, str(tmp_path))))) == expected
    assert made or fit == "moments"


@pytest.mark.slow
def test_fits_of_units_on_disk_release_the_same(tmp_path, monkeypatch):
    pq.write_table(table(), tmp_path / "rows.parquet", row_group_size=500)
    units = dp.AddRemove(unit="id", max_rows=2)
    expected = drawn(FITS["logistic where"](opened(tmp_path, units, None)))
    monkeypatch.setattr(batches, "BATCH_ROWS", 700)
    session = opened(tmp_path, units, Limits(3200, str(tmp_path)))
    assert drawn(FITS["logistic where"](session)) == expected
    assert drawn(FITS["logistic where"](opened(tmp_path, units, None))) == expected


def test_a_full_disk_fails_the_question_and_the_same_key_goes_on(tmp_path, monkeypatch):
    pq.write_table(table(400), tmp_path / "rows.parquet")
    session = opened(tmp_path, dp.Replace(), Limits(3200, str(tmp_path)))
    spent = session.ledger.spent()

    def full(*_):
        raise OSError(errno.ENOSPC, "no room for " + CANARY.decode())

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(dp.ReleaseFailed) as failed:
            dp.ols(session, "y ~ x + z", spend=dp.GDP(1), key="fit")
    assert CANARY.decode() not in str(failed.value)
    assert failed.value.__context__ is None
    debited = session.ledger.spent()
    assert debited != spent
    fit = dp.ols(session, "y ~ x + z", spend=dp.GDP(1), key="fit")
    assert drawn(fit)


def in_fork(work):
    """What `work` gives in a forked process, as text."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(there, repr(work()).encode())
        except OSError as error:
            os.write(there, f"OSError {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    with open(here, "rb", buffering=0) as pipe:
        return pipe.read(1 << 12).decode()


def test_a_fork_reads_and_writes_nothing_over_its_parent():
    """Bytes behind the last ones are the parent's: a child that adds some would write over them."""
    spill = Spill(None)
    place = spill.append(b"before")
    assert in_fork(lambda: bytes(spill.read(place))) == "b'before'"
    assert "another process" in in_fork(lambda: spill.append(b"of the child"))
    after = spill.append(b"after it was forked")
    assert bytes(spill.read(after)) == b"after it was forked"


KILLED = """
import sys, time
import discreet as dp
from discreet.testing import seeded_session
from discreet.trusted.engines import files
schema = dp.Schema({"x": dp.Real(-3, 3), "c": dp.Open(), "y": dp.Real(-9, 9)})
from discreet.trusted.scale.limits import Limits
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.datasets import Dataset
neighbors = dp.AddRemove(unit="id", max_rows=2)
engine = FileEngine(sys.argv[1], "parquet", schema, neighbors, scale=Limits(3200, sys.argv[2]))
session = seeded_session(Dataset(engine, schema, neighbors), dp.GDP(9), seed=1)
dp.ols(session, "y ~ x", spend=dp.GDP(1))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_nothing_is_left_on_disk_while_open_and_after_a_kill(tmp_path):
    rows = table(400).append_column("c", pa.array([CANARY.decode()] * 400))
    pq.write_table(rows, tmp_path / "rows.parquet")
    folder = tmp_path / "kept"
    folder.mkdir()
    asked = [sys.executable, "-c", KILLED, str(tmp_path / "rows.parquet"), str(folder)]
    with subprocess.Popen(asked, stdout=subprocess.PIPE, env=dict(os.environ)) as process:
        assert process.stdout.readline() == b"ready\n"
        held = [
            os.stat(f"/proc/{process.pid}/fd/{number}")
            for number in os.listdir(f"/proc/{process.pid}/fd")
            if str(folder) in os.readlink(f"/proc/{process.pid}/fd/{number}")
        ]
        assert os.listdir(folder) == []
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    assert held
    assert all((facts.st_mode & 0o777, facts.st_nlink) == (0o600, 0) for facts in held)
    assert os.listdir(folder) == []
