"""Code in a process of its own, started in little time.

Loading numpy, scipy, Arrow and pandas takes a second, and dozens of processes are started: so each
test worker has one process that has loaded them and waits, from which others are forked. No module
of discreet is loaded there, no thread is started, no ledger open; warnings are errors from the
first module of discreet on; and only files pass from one process to the next.
"""

from __future__ import annotations

import functools
import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext
from pathlib import Path

# none of them starts a thread when it is loaded
LOADED = (
    "cryptography.hazmat.primitives.ciphers",
    "flint",
    "matplotlib.figure",
    "narwhals",
    "numba",
    "numpy",
    "pandas",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "rich.console",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended, and what it wrote."""

    code: int | None
    stdout: str
    stderr: str


@functools.cache
def _waiting() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LOADED])
    return context


def run_fresh(code: str, name: str, folder: Path) -> Ended:
    """Run the code of a file with this name in a folder."""
    with tempfile.TemporaryDirectory() as written:
        outputs = [Path(written, stream) for stream in ("stdout", "stderr")]
        process = _waiting().Process(target=_run, args=(code, name, folder, *outputs))
        process.start()
        process.join()
        texts = (path.read_text(encoding="utf-8") for path in outputs)
        ended = Ended(process.exitcode, *texts)
        process.close()
        return ended


def run_alone(code: str, name: str, folder: Path) -> Ended:
    """The same in a process that shares nothing: its packages are loaded with errors for warnings
    too, which takes a second.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    return Ended(done.returncode, done.stdout, f"{name}: {done.stderr}")


def _run(code: str, name: str, folder: Path, stdout: Path, stderr: Path) -> None:
    """What happens in the process."""
    for path, stream in ((stdout, sys.stdout), (stderr, sys.stderr)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(descriptor, stream.fileno())
        os.close(descriptor)
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    assert not any(module.split(".")[0] == "discreet" for module in sys.modules)
    os.environ["MPLBACKEND"] = "Agg"
    os.chdir(folder)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    exec(compile(code, name, "exec"), {"__name__": "__example__"})
