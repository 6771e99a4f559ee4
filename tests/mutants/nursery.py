"""A process that has loaded what all tests need, and forks one child for each mutant.

Loading numpy, scipy, numba and pytest takes longer than most of the tests that notice a mutant. The
library itself is loaded in the child alone, from the mutant's source. A line of standard input
names a source, a limit of seconds and tests, as JSON; a line of standard output is pytest's code,
or "late".
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
from pathlib import Path

# of others, and none that starts threads when it is loaded: a fork would not have them
LOADED = ("hypothesis", "mpmath", "numba", "numpy", "pytest", "scipy.optimize", "scipy.stats")
ROOT = Path(__file__).parents[2]


def tested(source: str, tests: list[str]) -> int:
    """In the child: pytest's code for some tests with another source."""
    import pytest

    paths = [source, str(ROOT / "tests")]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # of processes that tests start
    sys.path[:0] = paths
    os.chdir(ROOT)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    known = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"  # hypothesis is
    return int(pytest.main([*options, "-W", known, *tests]))


def code_of(source: str, seconds: float, tests: list[str]) -> str:
    """What became of a child: pytest's code, or "late", and then it is killed with its own."""
    child = os.fork()
    if child == 0:
        code = 3  # pytest's word for an error of its own
        try:
            os.setpgid(0, 0)
            code = tested(source, tests)
        finally:
            os._exit(code)
    ended = os.pidfd_open(child)
    late = not select.select([ended], [], [], seconds)[0]
    os.close(ended)
    if late:
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return "late" if late else str(os.waitstatus_to_exitcode(status))


def main() -> None:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in LOADED:
        importlib.import_module(name)
    assert "discreet" not in sys.modules
    for line in sys.stdin:
        print(code_of(**json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
