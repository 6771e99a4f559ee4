"""Records the golden cases with the code as it is: ``python tests/golden/record.py [group …]``.

Run it only to add cases, or where a change of what is released is meant and reviewed.
"""

from __future__ import annotations

import sys
import time

from golden_cases import cases, computed, opened_sources, part_of, referred, write_recorded


def main(groups: list[str]) -> None:
    """Computes every case of the groups named (all where none is) and writes their files."""
    begun, records = time.perf_counter(), {}
    with opened_sources() as sources:
        for name, case in cases().items():
            if groups and name.split("/")[0] not in groups:
                continue
            record, other = computed(sources, case), referred(name)
            if other is not None and part_of(records[other], record) == record:
                record = {"as": other, "fields": list(record)}
            records[name] = record
    write_recorded(records)
    print(f"{len(records)} cases in {time.perf_counter() - begun:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
