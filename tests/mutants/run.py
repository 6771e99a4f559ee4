"""Applies hand-made mutants to a copy of src, one at a time, and runs the tests that must notice.

    python tests/mutants/run.py                    all of them
    python tests/mutants/run.py noise ledger       those of some rooms
    python tests/mutants/run.py no-margin          some by name
    python tests/mutants/run.py --jobs 2           two at a time
    python tests/mutants/run.py --control          the same tests, nothing changed: all must pass

A mutant stands in a file of this folder, one file a room: the text that it takes away, found
exactly once; what it puts there; what that breaks; and the tests that must fail. If a module has
moved, the text is looked for in all of src/discreet, in modules of the same name first. Tests run
in children of a process that has loaded what they need (nursery.py). Exit 1 where a mutant
survives, does not apply, or its tests cannot be run.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SECONDS = 600  # a mutant that does not end is noticed as well
FAILED, PASSED, LATE = "1", "0", "late"  # codes of pytest, and that of the nursery


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change that the named tests must notice."""

    room: str
    name: str
    path: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    def place(self, root: Path) -> Path:
        """The file below `root` that holds the old text, exactly once."""
        named = root / self.path
        if named.exists() and named.read_text().count(self.old) == 1:
            return named
        holds = [
            path
            for path in sorted((root / "src" / "discreet").rglob("*.py"))
            for _ in range(path.read_text().count(self.old))
        ]
        moved = [path for path in holds if path.name == named.name]
        if len(holds) != 1 and len(moved) != 1:
            raise LookupError(f"{self.name}: its old text is in src {len(holds)} times")
        return (moved if len(moved) == 1 else holds)[0]

    def apply(self, root: Path) -> None:
        path = self.place(root)
        path.write_text(path.read_text().replace(self.old, self.new))
        for kept in path.parent.glob("__pycache__/*.nb?"):  # numba looks at one module's date alone
            kept.unlink()


def mutants() -> list[Mutant]:
    """All mutants, room by room."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        for name, record in tomllib.loads(path.read_text()).items():
            found.append(
                Mutant(
                    room=path.stem,
                    name=name,
                    path=record["path"],
                    old=record["old"],
                    new=record["new"],
                    breaks=record["breaks"],
                    tests=tuple(record["tests"]),
                )
            )
    return found


def outcome(mutant: Mutant, nursery: Nursery, *, changed: bool = True) -> str:
    """ "killed", "survived", or what went wrong."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        root = Path(folder)
        shutil.copytree(ROOT / "src", root / "src")
        if changed:
            try:
                mutant.apply(root)
            except LookupError as error:
                return str(error)
        code = nursery.code(root / "src", mutant.tests)
    named = {FAILED: "killed", PASSED: "survived", LATE: "killed"}
    return named.get(code, f"its tests cannot be run (pytest gave {code})")


class Nursery:
    """One process that runs tests of mutants, one after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def code(self, source: Path, tests: Sequence[str]) -> str:
        """What pytest gives for some tests with another source."""
        asked = {"source": str(source), "seconds": SECONDS, "tests": list(tests)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(asked), file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        """Closes its input; it then ends by itself."""
        self._process.communicate()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="rooms or mutants; all where none is named")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--control", action="store_true", help="change nothing: tests must pass")
    asked = parser.parse_args()
    every = mutants()
    unknown = set(asked.names) - {one.name for one in every} - {one.room for one in every}
    if unknown:
        parser.error(f"no such room or mutant: {', '.join(sorted(unknown))}")
    wanted = [one for one in every if not asked.names or {one.name, one.room} & {*asked.names}]
    expected = "survived" if asked.control else "killed"

    def judged(mutant: Mutant) -> bool:
        start = time.monotonic()
        nursery = free.get()
        found = outcome(mutant, nursery, changed=not asked.control)
        free.put(nursery)
        if asked.control and found in ("killed", "survived"):
            said = "passes" if found == expected else "FAILS without a mutant"
        else:
            said = found if found == expected else found.upper()
        took = time.monotonic() - start
        print(f"{said:10}  {mutant.room}/{mutant.name}  {took:.0f} s: {mutant.breaks}", flush=True)
        return found == expected

    free: SimpleQueue[Nursery] = SimpleQueue()
    for _ in range(asked.jobs):
        free.put(Nursery())
    with ThreadPoolExecutor(asked.jobs) as pool:
        good = list(pool.map(judged, wanted))
    for _ in range(asked.jobs):
        free.get().end()
    print(f"{sum(good)} of {len(good)} {'pass' if asked.control else 'killed'}")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
