"""What an engine refuses when data are declared: decided from names, types and lengths alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.errors import DataShapeRefused, InvalidParameter


def column_not_found(
    name: str, times: int, available: Iterable[str], *, header_line: bool
) -> DataShapeRefused:
    """A needed column that is not there, or there more than once.

    Names that are the first line of a text file are not shown:
    without a header they would be a person's row.
    """
    return DataShapeRefused(
        f"column {name!r}",
        ("it is not in the data" if not times else "the data have it more than once")
        + ("" if header_line else f" (columns: {name_list(available)})"),
        "every declared column, and the unit's, must be found by its name",
        "correct the name in the schema or in unit=, or rename the column of the data"
        + ("; the first line must be the header" if header_line else ""),
    )


def name_list(names: Iterable[str], most: int = 40) -> str:
    """Names for an error text, cut where they are too many."""
    shown = list(names)
    return ", ".join(map(str, shown[:most])) + (
        f", … ({len(shown)} in all)" if len(shown) > most else ""
    )


def unit_without_ids(name: str, found: str) -> DataShapeRefused:
    """A unit column whose cells identify nobody."""
    return DataShapeRefused(
        f"unit={name!r}",
        f"its cells are of type {found}",
        "units are told apart by text or numbers; anything else would make all rows one unit",
        "turn the column into text or whole numbers",
    )


def not_a_table(found: str) -> DataShapeRefused:
    """Data that are no table."""
    return _not_columns("the data", f"a {found} is not a table with named columns")


def not_a_column(name: str, found: str) -> DataShapeRefused:
    """A column that is no column of cells."""
    return _not_columns(f"column {name!r}", f"a {found} is not a column of cells")


def _not_columns(what: str, found: str) -> DataShapeRefused:
    return DataShapeRefused(
        what,
        found,
        "every declared column must be found by its name, one cell a row",
        "pass a mapping of arrays, or a pandas, polars or pyarrow table",
    )


def different_lengths(lengths: Mapping[str, int]) -> DataShapeRefused:
    """Which columns are not as long as the first, without saying how long any is:
    that may be private.
    """
    first, *others = lengths
    named = ", ".join(name for name in others if lengths[name] != lengths[first]) + f" and {first}"
    return DataShapeRefused(
        "columns of one data set",
        "they have different lengths: " + named,
        "a row is one entry of every column",
        "pass columns of equal length",
    )


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def not_paths() -> InvalidParameter:
    """Something else where files are named."""
    return InvalidParameter(
        "path",
        "neither a path nor a list of paths",
        "data are read from files",
        "pass for example 'survey.parquet'",
    )


def unknown_format(format: str) -> InvalidParameter:
    """A format that no reader is for."""
    return InvalidParameter(
        "format=",
        f"{format!r} is not known",
        "it decides how a file is read",
        "use 'parquet' or 'csv'",
    )


def no_file(name: str) -> DataShapeRefused:
    """A path at which there is no file."""
    return DataShapeRefused(
        f"file {name!r}",
        "there is no such file",
        "data are read from it",
        "check the path",
    )


def unreadable(format: str) -> DataShapeRefused:
    """A file that its reader cannot read."""
    return DataShapeRefused(
        f"reading a {format} file",
        "the file could not be read",
        "the reader's own message may quote the data and is not shown",
        f"check that it is an intact {format} file",
    )


def types_differ(name: str) -> DataShapeRefused:
    """A column that has two types."""
    return DataShapeRefused(
        f"column {name!r}",
        "its type differs between files",
        "files of one data set have the same columns",
        "write the files with one type",
    )


def levels_not_unicode(name: str) -> InvalidParameter:
    """Levels that no text of a file can equal."""
    return InvalidParameter(
        f"levels of {name!r}",
        "one of them is not valid Unicode text",
        "levels are compared with the text of a file",
        "remove lone surrogates",
    )
