"""Texts about data on a cluster."""

from __future__ import annotations

from discreet.errors import DataShapeRefused, InvalidParameter


def no_frame() -> InvalidParameter:
    """What is no frame of Spark."""
    return InvalidParameter(
        "frame",
        "no Spark frame",
        "tasks read its rows by mapInArrow",
        "pass a pyspark.sql.DataFrame, for example spark.read.parquet(…) or spark.table(…)",
    )


def rows_stay() -> InvalidParameter:
    """A question that looks at rows one by one."""
    return InvalidParameter(
        "this question of a Spark frame",
        "it looks at single rows, or at random parts of them",
        "only sums of rows leave the cluster",
        "ask by sums (ols, robust, logistic without solver='sgd', table, median …), or write the "
        "frame to Parquet and use dp.read_parquet",
    )


def not_encrypted() -> DataShapeRefused:
    """A session whose disks hold rows in the clear."""
    return DataShapeRefused(
        "from_spark",
        "the session has no spark.io.encryption.enabled=true",
        "rows that are shuffled or kept, and exact sums of them, reach the disks of executors",
        "set it where the session is made: .config('spark.io.encryption.enabled', 'true')",
    )


def another_each_time(found: str) -> DataShapeRefused:
    """A frame whose rows may be others at the next pass."""
    return DataShapeRefused(
        "from_spark",
        f"the frame's plan has {found}, which may give other rows each time",
        "a task that runs twice could then count a row twice, and passes must read the same rows",
        "write the frame to a table first, and read that",
    )


def other_executors(version: str) -> DataShapeRefused:
    """Executors that cannot run the same code."""
    return DataShapeRefused(
        "from_spark",
        f"some executor does not run discreet {version}, or no task could be run",
        "tasks run this package's code, and another version may read a cell otherwise",
        "install the same version on all executors, or ship an environment that holds it "
        "(docs/how-to/spark.md)",
    )
