"""Records the golden cases with the code as it is: ``python tests/golden/record.py [group …]``.

Run it only to add cases, or where a change of what is released is meant and reviewed. With
``--changed`` a case that agrees with its record keeps it, to the last bit of the machine that wrote
it.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from golden_cases import (
    cases,
    computed,
    iterative,
    opened_sources,
    part_of,
    read_recorded,
    referred,
    write_recorded,
)
from golden_compare import differences


def main(words: list[str]) -> None:
    """Computes every case of the groups named (all where none is) and writes their files."""
    groups = [word for word in words if word != "--changed"]
    begun, records = time.perf_counter(), dict[str, Any]()
    known = read_recorded() if "--changed" in words else {}
    changed = 0
    with opened_sources() as sources:
        for name, case in cases().items():
            if groups and name.split("/")[0] not in groups:
                continue
            record, other = computed(sources, case), referred(name)
            if name in known and not differences(
                _whole(known, name), record, iterative=iterative(name)
            ):
                record = _whole(known, name)
            else:
                changed += 1
            if other is not None and part_of(records[other], record) == record:
                record = {"as": other, "fields": list(record)}
            records[name] = record
    write_recorded(records)
    print(f"{len(records)} cases, {changed} anew, in {time.perf_counter() - begun:.1f} s")


def _whole(known: dict[str, Any], name: str) -> Any:
    """A record that may be kept as part of another's."""
    kept = known[name]
    if isinstance(kept, dict) and "as" in kept:
        return part_of(known[kept["as"]], kept["fields"])
    return kept


if __name__ == "__main__":
    main(sys.argv[1:])
