"""Where rows are converted in functions on parts and among friends, each place with its reason;
read by test_row_conversions.py.
"""

from __future__ import annotations

AGGREGATION: dict[tuple[str, str], dict[str, str]] = {
    ("trusted/aggregation/friends/rows.py", "_points"): {
        "astype": "element by element, from one public dtype to another",
        "column_stack": "codes, which are 64-bit whole numbers all of them",
    },
    ("trusted/aggregation/friends/rows.py", "core_of"): {
        "@": "whole weights below 2**16 times codes below 2**26 of at most 2**16 rows: 64 bits",
    },
    ("trusted/aggregation/friends/rows.py", "friend_counts"): {
        "@": "whole numbers whose products sum to less than 2**52: exact in any order",
        "astype": "codes below 2**26, to float64",
    },
    ("trusted/aggregation/friends/rows.py", "labelled"): {
        "concatenate": "coordinates of each row beside each other, 64-bit whole numbers",
    },
    ("trusted/aggregation/friends/rows.py", "clipped_sums"): {
        "array": "a public centre; no row is in it",
    },
    ("trusted/aggregation/part_outputs.py", "_Process.answer"): {
        "frombuffer": "the numbers of one part, as they were written",
    },
    ("trusted/aggregation/part_outputs.py", "_cells"): {
        "array": "declared levels, each an object of its own",
        "astype": "codes of levels, small whole numbers",
    },
    ("trusted/aggregation/part_outputs.py", "in_processes"): {
        "frombuffer": "a row of numbers for each part, each written by itself",
    },
    ("trusted/aggregation/part_outputs.py", "read"): {
        "array": "the numbers of one part, each read by itself",
    },
}
