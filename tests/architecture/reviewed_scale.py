"""Where rows are converted on their way from streams and databases, and on disk, each place with
its reason; read by test_row_conversions.py.
"""

from __future__ import annotations

VIEW = "an array as it is"
ORDER = "which rows are equal, or their order: values stay what they are"
COUNTS = "places and counts, 64-bit whole numbers all of them"
WORDS = "numbers of rows and of parts, which follow from random bits alone"

SCALE: dict[tuple[str, str], dict[str, str]] = {
    ("trusted/scale/databases.py", "_texts"): {
        "cast": "text as its own bytes",
    },
    ("trusted/scale/key_runs.py", "_counts"): {
        "to_numpy": "counts, none of them missing",
        "to_pylist": "keys, which are texts all of them",
    },
    ("trusted/scale/key_runs.py", "_merged"): {"cast": "counts and texts as they are"},
    ("trusted/scale/key_runs.py", "run_of"): {"array": "keys that are texts, and their counts"},
    ("trusted/scale/part_rows.py", "Buckets.deal"): {"argsort": ORDER},
    ("trusted/scale/part_rows.py", "_in_order_of_rows"): {"argsort": WORDS, "astype": WORDS},
    ("trusted/scale/part_rows.py", "_parted"): {"argsort": ORDER},
    ("trusted/scale/part_rows.py", "assigned_parts"): {"astype": WORDS},
    ("trusted/scale/part_rows.py", "rows_of_parts"): {"astype": WORDS},
    ("trusted/scale/tallies.py", "StoredHistogram.folded"): {"column_stack": COUNTS},
    ("trusted/scale/tallies.py", "StoredHistogram.of"): {
        "column_stack": COUNTS,
        "concatenate": COUNTS,
    },
    ("trusted/scale/tallies.py", "StoredHistogram.window"): {"concatenate": COUNTS},
    ("trusted/scale/tallies.py", "Tally._put"): {"column_stack": COUNTS},
    ("trusted/scale/tallies.py", "merged"): {"argsort": ORDER, "concatenate": COUNTS},
    ("trusted/scale/spill.py", "Spill.append"): {
        "cast": VIEW,
    },
    ("trusted/scale/spill.py", "StoredRows.put"): {
        "ascontiguousarray": "codes of the type that the array has",
    },
    ("trusted/scale/spill.py", "StoredRows.take"): {
        "argsort": "places of rows, of which the order of reading alone follows",
    },
    ("trusted/scale/streams.py", "_bits"): {
        "astype": "whole numbers as 64 bits, floats as wider ones",
    },
    ("trusted/scale/streams.py", "words_of"): {
        "array": "words for a sum that nobody sees",
        "asarray": VIEW,
        "cast": "text as its own bytes",
        "dictionary_encode": "equal cells once; each keeps its own word",
        "to_numpy": "cells of the type that the column has",
        "to_pylist": "cells for a sum that nobody sees",
    },
    ("trusted/scale/units.py", "KeptUnits.first"): {
        "argsort": ORDER,
        "array": "numbers of rows and of units",
    },
}
