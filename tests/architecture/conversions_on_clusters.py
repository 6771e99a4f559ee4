"""Where tasks of a cluster convert arrays, and why no cell decides how another is read."""

from __future__ import annotations

RESULT = "a result that was released, or sums over rows"
ORDER = "which rows are equal, or their order: values stay what they are"
ONE_BY_ONE = "each cell is read for itself by a total rule, then put in an array of a fixed dtype"
AS_WRITTEN = "bytes that a task wrote, of the type that they were written as"

# (module, function): {operation: reason}
ON_CLUSTERS: dict[tuple[str, str], dict[str, str]] = {
    ("trusted/cluster/answers.py", "counted_names"): {"array": RESULT},
    ("trusted/cluster/answers.py", "placed"): {"asarray": RESULT},
    ("trusted/cluster/answers.py", "put_together"): {"array": RESULT, "astype": RESULT},
    ("trusted/cluster/answers.py", "size_of"): {"asarray": RESULT},
    ("trusted/cluster/plans.py", "another_each_time"): {"partition": "the text of a plan"},
    ("trusted/cluster/spark.py", "_cells"): {"cast": "a column of nulls"},
    ("trusted/cluster/spark.py", "_is_nothing"): {"partition": "the name of a type"},
    ("trusted/cluster/tasks.py", "_block"): {"frombuffer": AS_WRITTEN},
    ("trusted/cluster/tasks.py", "_engine_of_kept.pieces"): {"frombuffer": AS_WRITTEN},
    ("trusted/cluster/tasks.py", "_engine_of_rows.pieces"): {
        "array": "sums of a pass",
        "to_numpy": "hashes of 64 bits that Spark made, none of them missing",
    },
    ("trusted/cluster/tasks.py", "_partial"): {"array": RESULT},
    ("trusted/cluster/tasks.py", "_with"): {"array": "whole numbers of 64 bits"},
    ("trusted/cluster/tasks.py", "encoding.task"): {
        "asarray": "codes as they are",
        "astype": "codes of a response, which fit in 32 bits",
    },
    ("trusted/cluster/tasks.py", "few_of_units.task"): {
        "array": "row numbers",
        "to_numpy": "whole numbers that tasks wrote, none of them missing",
    },
    ("trusted/cluster/tasks.py", "kept_of_units.task"): {
        "array": "row numbers",
        "astype": "hashes below 2**31, none of them negative",
        "to_numpy": "whole numbers that tasks wrote, none of them missing",
    },
    ("trusted/cluster/tasks.py", "together.task"): {"array": "row numbers"},
    ("trusted/cluster/units.py", "groups_of"): {
        "array": ONE_BY_ONE,
        "astype": "states, one small whole number a cell",
        "lexsort": ORDER,
    },
    ("trusted/cluster/units.py", "least_copies"): {"concatenate": "numbers of one type"},
    ("trusted/cluster/units.py", "least_rows"): {"argsort": ORDER},
}
