"""CSV files as their holder declares them: the declared dialect is read cell by cell, in blocks of
every size, and what no file can be written in is refused before one is opened.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from csv_reference import reference_table
from engine_reference import read_number

import discreet as dp
from discreet.errors import DataShapeRefused, InvalidParameter
from discreet.neighbors import Replace
from discreet.schema import Boolean, Category, Date, Integer, Open, Real, Schema
from discreet.specs.dialects import Dialect
from discreet.specs.queries.keys import Levels
from discreet.specs.queries.plans import SumsPlan
from discreet.specs.queries.sums import number_factor
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.extensions import csv_files

DIALECTS = (
    Dialect(";", ",", None, "cp1252", ("NA", "#N/A")),
    Dialect("\t", ".", ",", "latin-1"),
    Dialect("|", ",", ".", missing_text=("-", " ")),
    Dialect(" ", "'", "\u202f", "koi8-r"),
)
PIECES = [b'"', b'""', b",", b";", b"\t", b"|", b" ", b"\n", b"\r\n", b"\r", b"a", b"1", b"NA"]
PIECES += [b"#N/A", b"\xe9", b"\x80", b"\x81", b"\xef\xbb\xbf", b"\xc3\xa9", b"-", b"\x00", b"2,5"]


def read_table(path, block, dialect):
    """(header, rows) as `csv_files` reads them, all columns as texts."""
    found = list(csv_files.records_of(str(path), block, dialect=dialect))
    if not found:
        return [], []
    header = csv_files.fields_of(found[0], 0)
    read = csv_files.cell_reader(dialect, Schema({"other": Open()}), None)
    rows = []
    for number, records in enumerate(found):
        part = csv_files.without_first(records) if number == 0 else records
        columns = [read(part.column(place)).to_pylist() for place in range(len(header))]
        rows += [list(row) for row in zip(*columns, strict=True)]
    return header, rows


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "dialect",
    [*(pytest.param(one, marks=pytest.mark.slow) for one in DIALECTS[:2]), *DIALECTS[2:]],
    ids=lambda dialect: dialect.encoding,
)
def test_random_bytes_are_read_as_the_naive_rule_reads_them(dialect, tmp_path):
    choose, path = random.Random(5), tmp_path / "data.csv"
    for _ in range(120):
        content = b"".join(choose.choice(PIECES) for _ in range(choose.randrange(60)))
        path.write_bytes(content)
        expected = reference_table(content, dialect)
        for block in (choose.randrange(1, 9), 1 << 20):
            assert read_table(path, block, dialect) == expected, (content, block)


def naive_number(text, dialect):
    """What a number of the dialect is in plain text, or None."""
    text = text.strip(" ").replace("\u2212", "-")
    place = text.lower().find("e")
    mantissa, power = (text, "") if place < 0 else (text[:place], text[place:])
    sign = mantissa[:1] if mantissa[:1] in ("+", "-") else ""
    whole, mark, rest = mantissa[len(sign) :].partition(dialect.decimal)
    groups = [whole] if dialect.thousands is None else whole.split(dialect.thousands)
    sizes = [len(group) for group in groups[1:]]
    if sizes and not (1 <= len(groups[0]) <= 3 and {*sizes} <= {2, 3} and sizes[-1] == 3):
        return None
    digits = "".join(groups)
    if any(not part.isdigit() for part in (digits, rest) if part):
        return None
    written = sign + digits + ("." if mark else "") + rest + power
    return None if read_number(written) is None else written


@pytest.mark.few(2)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.encoding)
def test_numbers_are_read_with_the_declared_marks_alone(dialect):
    """In columns of numbers other texts are missing; beside levels they stay as they are."""
    choose = random.Random(6)
    pieces = ["1", "23", "456", "000", dialect.decimal, dialect.thousands or "_", ".", ",", "-"]
    pieces += ["\u2212", "e3", "E-2", " ", "x", "+", "'"]
    texts = [
        "".join(choose.choice(pieces) for _ in range(choose.randrange(1, 7))) for _ in range(4000)
    ]
    texts += [
        f"1{dialect.decimal}5",
        f"12{dialect.thousands or ''}345",
        "7",
        "abc",
        "1.000",
        "1,000",
    ]
    texts = [text for text in texts if text not in dialect.missing_text]
    schema = Schema(
        {"x": Real(0, 1), "c": Category(["1,000", "b", 7]), "b": Boolean(), "k": Open()}
    )
    column = pa.array(texts, type=pa.large_string())

    def read(name):
        return csv_files.cell_reader(dialect, schema, name)(column).to_pylist()

    plain = [naive_number(text, dialect) for text in texts]
    as_number = [None if text is None else read_number(text) for text in read("x")]
    assert as_number == [None if text is None else read_number(text) for text in plain]
    assert sum(number is not None for number in as_number) > 100
    for text, number, level, truth, key in zip(
        texts, plain, read("c"), read("b"), read("k"), strict=True
    ):
        assert key == text
        if number is None:
            assert (level, truth) == (text, text)
            continue
        assert read_number(truth) == read_number(number)
        assert level == text if text == "1,000" else read_number(level) == read_number(number)


def test_a_file_of_excel_is_read_as_declared(tmp_path):
    """Semicolons, decimal commas, cp1252, a missing text; ids keep their spelling."""
    schema = Schema(
        {
            "x": Real(-10, 10, missing=0.0),
            "c": Category([3, "né", "NA"]),
            "n": Integer(0, 5000),
            "d": Date("2024-01-01", "2024-12-31", missing="2024-12-31"),
        }
    )
    path = tmp_path / "data.csv"
    rows = ["id;x;c;n;d", "1,0;2,5;3,0;1.000;2024-01-03", "1;-1,5;né;2000;02.01.2024"]
    path.write_bytes("\r\n".join([*rows, "2;#N/A;NA;7;", ""]).encode("cp1252"))
    options = {"separator": ";", "decimal": ",", "thousands": ".", "encoding": "cp1252"}
    engine = FileEngine(
        path, "csv", schema, Replace(unit="id", max_rows=1), dialect=Dialect(**options)
    )
    plan = SumsPlan((Levels("c", 3),), ((), (number_factor(schema, "n", "a sum", None),)))
    assert [row[0] for row in engine.sums(plan).tolist()] == [1, 1, 1]
    assert engine.public_count() == 3  # "1,0" and "1" are two texts
    values = engine.whole().values("x").tolist()
    assert sorted(values) == [-1.5, 0.0, 2.5]
    assert sorted(engine.whole().values("d").tolist()) == [2.0, 365.0, 365.0]
    declared = FileEngine(
        path, "csv", schema, Replace(), dialect=Dialect(**options, missing_text=("NA",))
    )
    assert [row[0] for row in declared.sums(plan).tolist()] == [1, 1, 0]


REFUSED = {
    "separator": ("", "ab", "\n", '"', "a", "1", ".", "é", "-", 5, None, b","),
    "decimal": ("", ",,", " ", ",", "e", "0", "\u2212", None),
    "thousands": ("", "..", ".", "7", "+", 3),
    "encoding": (
        "utf-16",
        "utf-7",
        "gbk",
        "raw_unicode_escape",
        "cp037",
        "hz",
        "",
        "none",
        "rot13",
    ),
    "missing_text": ((1,), (None,), 5, ("\ud800",), tuple(map(str, range(1001)))),
}


@pytest.mark.parametrize("option", REFUSED)
def test_what_no_file_is_written_in_is_refused_before_one_is_opened(option, tmp_path):
    for given in REFUSED[option]:
        with pytest.raises(InvalidParameter) as caught:
            dp.read_csv(
                tmp_path / "there-is-none.csv",
                schema={"x": dp.Real(0, 1)},
                neighbors=dp.Replace(),
                **{option: given},
            )
        assert option in caught.value.asked, given
        assert all((caught.value.found, caught.value.why, caught.value.remedy))


def test_one_missing_text_may_stand_alone():
    assert Dialect(missing_text="NA").missing_text == ("NA",)
    assert Dialect(encoding="Windows-1252").encoding == "cp1252"
    assert Dialect(encoding="UTF8").encoding == Dialect(encoding="utf-8-sig").encoding == "utf-8"


def test_the_dialect_is_public_and_part_of_what_the_data_are(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x;y\n1,5;2\n")
    schema = Schema({"x": Real(0, 10)})
    engines = [
        FileEngine(path, "csv", schema, Replace(), dialect=Dialect(";", ",", missing_text=texts))
        for texts in ((), ("NA",))
    ]
    assert engines[1].describe()["dialect"] == {
        "separator": ";",
        "decimal": ",",
        "missing_text": ("NA",),
    }
    assert len({engine.data_id() for engine in engines}) == 2
    path.write_text("x\n1\n")
    plain = [FileEngine(path, "csv", schema, Replace(), dialect=one) for one in (None, Dialect())]
    assert {engine.data_id() for engine in plain} == {f"csv:{path}"}
    assert "dialect" not in plain[1].describe()


# ── headers ───────────────────────────────────────────────────────────────────────────────────────


def refusal(path, content, **columns):
    path.write_text(content)
    with pytest.raises(DataShapeRefused) as caught:
        dp.read_csv(path, schema=columns, neighbors=dp.Replace())
    return str(caught.value)


def test_a_header_that_does_not_match_is_shown_with_the_near_names(tmp_path):
    path, age = tmp_path / "data.csv", dp.Integer(0, 100)
    said = refusal(path, "Age,income,region\n73195731,2,3\n", age=age, income=dp.Real(0, 1))
    assert "columns: Age, income, region" in said
    assert "did you mean 'Age'?" in said
    assert "7319" not in said
    said = refusal(path, "agge,region\n73195731,2\n", age=age)
    assert "did you mean 'agge'?" in said
    said = refusal(path, "age;income\n1;73195731\n", age=age)
    assert "separator=';'" in said
    assert "7319" not in said


def test_a_first_line_that_holds_no_needed_name_is_not_shown(tmp_path):
    said = refusal(tmp_path / "data.csv", "73195731,planted-4417\n1,2\n", age=dp.Integer(0, 100))
    assert "7319" not in said
    assert "planted" not in said
    assert "the first line must be the header" in said


def test_names_of_frames_are_always_shown():
    with pytest.raises(DataShapeRefused, match="did you mean 'AGE'") as caught:
        dp.from_arrays(
            {"AGE": [1], "b": [2]}, schema={"age": dp.Integer(0, 9)}, neighbors=Replace()
        )
    assert "columns: AGE, b" in str(caught.value)


STATES = {
    "unreadable": ("1.5", "abc", "'2,5'", "2,5,5"),
    "missing": ("  ", "", "NA", "\u00a0"),
    "outside": ("9.000,5",),
    "": ("2,5",),
}


@pytest.mark.parametrize(
    ("text", "state"), [(text, state) for state, texts in STATES.items() for text in texts]
)
def test_what_a_dialect_cannot_read_is_told_from_what_is_not_there(text, state, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"x;y\n{text};1\n", encoding="utf-8")
    data = dp.read_csv(
        path,
        schema={"x": Real(0, 10), "y": Integer(0, 1)},
        neighbors=Replace(),
        separator=";",
        decimal=",",
        thousands=".",
        missing_text=("NA",),
    )
    assert f"x: 1 {state}" in str(data.check()) if state else "Every cell" in str(data.check())
