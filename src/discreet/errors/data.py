"""What an engine refuses when data are declared: decided from names, types and lengths alone."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence

from discreet.errors import DataShapeRefused, InvalidParameter

_CORRECT_NAME = "correct the name in the schema or in unit=, or rename the column of the data"
LONGEST_HEADER = 1 << 16  # characters of a first line that are looked through for separators


def column_not_found(
    name: str,
    times: int,
    available: Sequence[str],
    *,
    header_line: bool = False,
    needed: Iterable[str] = (),
) -> DataShapeRefused:
    """A needed column that is not there, or there more than once.

    The first line of a text file is shown only where it is seen to be a header, since some needed
    name stands in it, or nearly: without a header it would be a person's row.
    """
    near = near_names(name, available) if not times else []
    is_header = not header_line or any(near_names(one, available) for one in needed)
    separator = _other_separator(name, available) if header_line else None
    return DataShapeRefused(
        f"column {name!r}",
        ("it is not in the data" if not times else "the data have it more than once")
        + (f" (columns: {name_list(available)})" if is_header else ""),
        "every declared column, and the unit's, must be found by its name",
        (f"did you mean {' or '.join(map(repr, near))}? If not, " if near and is_header else "")
        + ("rename one of them" if times else _CORRECT_NAME)
        + ("; the first line must be the header" if header_line else "")
        + (
            f"; with separator={separator!r} the first line has that name (in a file that declares "
            f'the data: [dialect] separator = "{separator}")'
            if separator
            else ""
        ),
    )


def near_names(name: str, available: Iterable[str]) -> list[str]:
    """The names that `name` may stand for: but for case, blanks and a letter or two."""
    folded = {one.strip("\ufeff \t").casefold(): one for one in available}
    found = difflib.get_close_matches(name.strip().casefold(), folded, n=3, cutoff=0.75)
    return [folded[one] for one in found]


def _other_separator(name: str, available: Sequence[str]) -> str | None:
    """The mark that would have found a name in a first line of one field."""
    if len(available) != 1:
        return None
    line = available[0][:LONGEST_HEADER]
    for mark in (";", "\t", "|", ","):
        if mark in line and name in (field.strip('" ') for field in line.split(mark)):
            return mark
    return None


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


def not_a_frame(frame: object) -> DataShapeRefused:
    """A table that cannot be read as one: a name may stand in it twice."""
    try:
        listed: Iterable[object] = getattr(frame, "column_names", getattr(frame, "columns", ()))
        names = [name for name in listed if type(name) is str]
    except Exception:
        names = []
    again = [name for name in names if names.count(name) > 1]
    if again:
        return column_not_found(again[0], 2, names)
    return not_a_table(type(frame).__name__)


def not_a_column(name: str, found: str) -> DataShapeRefused:
    """A column that is no column of cells."""
    return _not_columns(f"column {name!r}", f"a {found} is not a column of cells")


def _not_columns(what: str, found: str) -> DataShapeRefused:
    return DataShapeRefused(
        what,
        found,
        "every declared column must be found by its name, one cell a row",
        "pass a mapping of arrays, or a pandas, polars, pyarrow or DuckDB table",
    )


def no_range_of_dates(kind: str, found: str) -> InvalidParameter:
    """Bounds of a Date or Datetime column that are none."""
    return InvalidParameter(
        f"{kind} bounds",
        found,
        "bounds set the noise and are never read from the data",
        f"pass the first and the last, as ISO text or datetime.date: dp.{kind}('2020-01-01', "
        "'2024-12-31'); a longer range fits dp.Date",
    )


def not_collected(found: str) -> DataShapeRefused:
    """A table that is computed on demand, and could not be."""
    return DataShapeRefused(
        "the data",
        f"the {found} could not be carried out",
        "the message of its own engine may quote the data and is not shown",
        "carry it out yourself (polars: .collect(), DuckDB: .to_arrow_table()) and pass the table",
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


def bad_dialect(asked: str, found: str, remedy: str) -> InvalidParameter:
    """A way of writing that no CSV file has."""
    return InvalidParameter(
        asked, found, "how a file is written is declared, and never guessed from its rows", remedy
    )


def no_file(name: str) -> DataShapeRefused:
    """A path at which there is no file."""
    return DataShapeRefused(
        f"file {name!r}",
        "there is no such file",
        "data are read from it",
        "check the path",
    )


def file_twice() -> DataShapeRefused:
    """A file that is named twice, or has two names."""
    return DataShapeRefused(
        "files",
        "one of them is there twice: named twice, found by a pattern too, or under two names",
        "each of its rows would count twice, and the guarantee is about rows that count once",
        "name every file once, and folders or patterns that share none",
    )


def unreadable(kind: str) -> DataShapeRefused:
    """A file that its reader cannot read, or a stream that does not give what it gave."""
    if kind not in ("parquet", "csv"):
        return DataShapeRefused(
            f"reading a {kind}",
            "it was cut short, failed, or gave other rows or types than before",
            "its own message may quote the data and is not shown",
            "see that each pass gets the same rows, and ask again with the same key",
        )
    return DataShapeRefused(
        f"reading a {kind} file",
        "the file could not be read",
        "the reader's own message may quote the data and is not shown",
        f"check that it is an intact {kind} file",
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


# ── what is kept of rows ──────────────────────────────────────────────────────────────────────────


def not_a_limit() -> InvalidParameter:
    """A limit that is no number of bytes."""
    return InvalidParameter(
        "memory_limit=",
        "not a number of bytes",
        "batches are as large as it allows",
        "pass for example '500MB', '2GB' or a whole number of bytes",
    )


def limit_too_small(asked: object, least: int) -> InvalidParameter:
    """A limit within which no batch fits."""
    return InvalidParameter(
        "memory_limit=",
        f"{asked!r} is too small for so many columns",
        "a batch of rows, and what is worked out of it, must fit",
        f"pass at least '{least}MB', or declare fewer columns",
    )


def no_cache_folder() -> InvalidParameter:
    """A folder in which nothing can be kept."""
    return InvalidParameter(
        "cache=",
        "not a folder in which files can be made",
        "encoded rows are kept there, in files without a name, while the data set is open",
        "pass a folder that exists, 'temporary' for the system's, or None to keep nothing on disk",
    )


def no_stream() -> DataShapeRefused:
    """A reader that gives no Arrow batches."""
    return DataShapeRefused(
        "make_reader",
        "make_reader(columns) gave no Arrow stream",
        "it is called with the names of the columns once a pass, and must give a fresh reader; the "
        "message of its own error may quote the data and is not shown",
        "let it return a pyarrow.RecordBatchReader, or an iterator with at least one RecordBatch",
    )


def no_reader(kind: str) -> DataShapeRefused:
    """What is no function that makes readers."""
    return DataShapeRefused(
        "make_reader",
        f"a {kind} is no function",
        "it is called with the names of the columns once a pass, and must give a fresh reader; a "
        "reader that was gone through gives no second pass",
        "pass for example lambda columns: dataset.scanner(columns).to_reader(); a frame or a list "
        "of columns in memory is declared by dp.from_frame or dp.from_arrays",
    )


def no_table_name() -> InvalidParameter:
    """A table that has no name that a database could have."""
    return InvalidParameter(
        "table",
        "not the name of a table, nor a list of a schema's and a table's",
        "names are quoted as they stand, and nothing of them is carried out",
        "pass for example 'visits' or ('public', 'visits')",
    )


def unknown_database() -> InvalidParameter:
    """An address of another kind of database; it is not shown, for a password may be in it."""
    return InvalidParameter(
        "uri",
        "neither postgresql://… nor sqlite:///…",
        "other databases are read by dp.from_batches, and checked by discreet.testing.engines",
        "pass for example 'postgresql://user@host/name' or 'sqlite:///folder/file.db'",
    )


def no_database(what: str) -> DataShapeRefused:
    """A database, or a table of it, that could not be read."""
    return DataShapeRefused(
        what,
        "the database refused, or could not be reached",
        "its own message may hold a password or data and is not shown",
        "try the address, the user's rights and the name of the table with the database's own tool",
    )
