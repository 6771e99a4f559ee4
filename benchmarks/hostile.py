"""Hostile objects in every parameter of public functions, ledgers, devices and specifications.

The trials of `tests/reliability/hostile.py`: an object that holds a right value and behaves
otherwise is handed to one parameter, and the call must be refused with an error of this library, or
end exactly as with the plain value. The last line counts the trials, the private values or unpaid
answers that got out (leaks), errors of other kinds, second answers under one key, and ledgers that
spent something else than the price. The run fails unless all but the first of these are 0.

    python benchmarks/hostile.py [--stride 1]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "reliability"))
if Path(__file__).resolve().parent == Path(sys.path[1]).resolve():
    del sys.path[1]  # this file has the name of the module that it runs

import hostile_newer
import hostile_trials

import hostile

FEWEST = 5000
SLOW = 12  # of calls that take a second, one trial in so many


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--stride", type=int, default=1, help="run one trial in so many")
    stride = options.parse_args().stride
    counts, start = hostile_trials.Counts(), time.perf_counter()
    quick = [*hostile.quick_calls(), *hostile_newer.newer_quick_calls()]
    slow = [*hostile.slow_calls(), *hostile_newer.newer_slow_calls()]
    quick += hostile_newer.newer_specification_calls([*quick, *slow])
    for call in [*quick, *slow]:
        before = counts.objects
        for trial in hostile_trials.some([call], stride * SLOW if call in slow else stride):
            hostile_trials.judge(trial, counts)
        print(f"{call.name:28} {counts.objects - before:6} objects", flush=True)
    for note in counts.notes:
        print(note)
    print(
        f"{counts.refused} were refused, {counts.objects - counts.refused} went on as the plain "
        f"value, in {time.perf_counter() - start:.0f} s"
    )
    print(counts.line())
    return 0 if counts.sound and (stride > 1 or counts.objects >= FEWEST) else 1


if __name__ == "__main__":
    sys.exit(main())
