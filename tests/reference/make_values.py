"""Makes the values again that tests store with many digits.

    python tests/reference/make_values.py [part of a name]

prints name=value, one line each, and ends with status 1 where a value differs from the stored one
by more than the stored one allows, or is no longer in the file that it was stored in.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

if __name__ == "__main__":  # run as a file, the folder above `tests` is not on the path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.reference import composition, gaussian, losses, proportion_values, quantiles, renyi
from tests.reference.stored import Stored

VALUES: tuple[Stored, ...] = (
    *gaussian.VALUES,
    *composition.VALUES,
    *renyi.VALUES,
    *losses.VALUES,
    *proportion_values.VALUES,
    *quantiles.VALUES,
)


def differences(one: Stored, found: float) -> list[str]:
    """What is wrong with a stored value, in words."""
    wrong = [f"{file} does not hold {one.value!r}" for file in one.missing()]
    if not one.agrees(found):
        wrong.append(f"{one.name}: stored {one.value!r}, computed {found!r} {one.why}".rstrip())
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Makes stored values again.")
    parser.add_argument("part", nargs="?", default="", help="only names that contain it")
    asked = parser.parse_args()
    wrong: list[str] = []
    for one in VALUES:
        if asked.part not in one.name:
            continue
        found = one.again()
        print(f"{one.name}={found!r}", flush=True)
        wrong += differences(one, found)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
