"""Spark itself, in processes of their own: at hand, by Spark Connect, and on a cluster with faults.

One process is one session; what it is asked is in spark_sessions.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import discreet
from discreet.testing.odd_tables import CANARY

HERE = Path(__file__).parent
MINUTES = 8
# sessions of a minute: to compile their code thoroughly takes longer than to run it
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
EXPECTED = {
    "hand": 15,
    "connect": 5,
    "cluster": 3,
}


def ran(kind, folder):
    """What each check of a session found, and all that the process wrote."""
    paths = [str(Path(discreet.__file__).parents[1]), str(HERE.parents[2])]
    ended = subprocess.run(
        [sys.executable, str(HERE / "spark_sessions.py"), kind, str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "JAVA_TOOL_OPTIONS": JAVA},
        capture_output=True,
        text=True,
        timeout=60 * MINUTES,
        check=False,
    )
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"check"')]
    return {line["check"]: line["found"] for line in lines}, ended.stdout + ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXPECTED)
def test_sessions(kind, tmp_path):
    found, written = ran(kind, tmp_path)
    assert len(found) == EXPECTED[kind], written[-3000:]
    assert {name: wrong for name, wrong in found.items() if wrong} == {}
    assert CANARY not in written
