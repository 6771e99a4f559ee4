"""How a CSV file is written, as its holder declares it: nothing of it is guessed from rows.

    separator      between fields: one ASCII character, a comma unless declared
    decimal        before the decimals of a number: a point unless declared
    thousands      between groups of digits: none unless declared
    encoding       UTF-8 unless declared; else one of the encodings of one byte a character
                   (cp1252, latin-1, …), so that no byte changes how the next one is read
    missing_text   cells that mean a missing value, compared character by character after quotes
                   are taken away; an empty field always does

A reader that guessed any of these from the file would let one row decide how all others are read
(docs/theory/rows.md). What is declared is public: it stands in the data's description, and a file
read by another dialect is another data set.

Numbers follow the grammar of `schema.py`, with the declared marks in place of the point: in columns
of numbers a text that does not fit it is missing; in a Category or Boolean column a text that fits
it is read as its number (unless it is a level as it stands), and other text stays what it is. The
columns of dates, of an `Open` kind and of unit ids keep their texts.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from discreet import plain
from discreet.errors import data, shown
from discreet.schema import MINUS

MOST_MISSING_TEXTS = 1000
_ONE_BYTE = ("ascii", "iso8859-1")  # those without a table of their own
_NO_MARK = re.compile(rf'[0-9A-Za-z+"\r\n{MINUS}-]')


@plain.kept()
@dataclass(frozen=True, slots=True)
class Dialect:
    """How a CSV file is written; the default is a comma, a decimal point and UTF-8."""

    separator: str = ","
    decimal: str = "."
    thousands: str | None = None
    encoding: str = "utf-8"
    missing_text: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "separator", _mark(self.separator, "separator="))
        if not self.separator.isascii() or self.separator == ".":
            raise data.bad_dialect(
                "separator=",
                f"{shown(self.separator)} is no mark between fields",
                "pass for example ',', ';', '|' or '\\t'",
            )
        object.__setattr__(self, "decimal", _mark(self.decimal, "decimal="))
        if self.decimal == self.separator or self.decimal == " ":
            raise data.bad_dialect(
                "decimal=",
                f"{shown(self.decimal)} also separates fields, or words",
                "pass '.' or ',', and another separator=",
            )
        if self.thousands is not None:
            object.__setattr__(self, "thousands", _mark(self.thousands, "thousands="))
        if self.thousands == self.decimal:
            raise data.bad_dialect(
                "thousands=",
                f"{shown(self.thousands)} is the decimal mark too",
                "pass two different marks, or leave thousands= out",
            )
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        object.__setattr__(self, "missing_text", _missing(self.missing_text))

    @property
    def has_plain_numbers(self) -> bool:
        """Whether numbers are written as the grammar of `schema.py` reads them."""
        return self.decimal == "." and self.thousands is None

    def number_pattern(self) -> str:
        """The regular expression of a number in this dialect."""
        point, sign = re.escape(self.decimal), f"[+{MINUS}-]"
        whole = "[0-9]+"
        if self.thousands is not None:
            mark = re.escape(self.thousands)
            whole = f"(?:[0-9]{{1,3}}(?:{mark}[0-9]{{2,3}})*{mark}[0-9]{{3}}|[0-9]+)"
        return f"{sign}?(?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE]{sign}?[0-9]+)?"

    def to_dict(self) -> dict[str, object]:
        """What differs from the default."""
        return {
            name: held for name, held in asdict(self).items() if held != asdict(Dialect())[name]
        }

    def name(self) -> str:
        """Its place in a data set's id: nothing for the default."""
        return json.dumps(self.to_dict(), sort_keys=True) if self.to_dict() else ""


def _mark(given: object, name: str) -> str:
    mark = plain.text(given, name)
    if len(mark) != 1 or _NO_MARK.match(mark) or not _is_unicode(mark):
        raise data.bad_dialect(
            name,
            f"{shown(mark)} is not one character that can stand beside digits",
            "pass one mark, no letter, digit, sign, quote or line end",
        )
    return mark


def _encoding(given: object) -> str:
    """The codec's own name, of UTF-8 or of a codec of one byte a character that begins as ASCII."""
    name = plain.text(given, "encoding=", longest=40)
    try:
        found = codecs.lookup(name)
        if found.name in ("utf-8", "utf-8-sig"):
            return "utf-8"
        module = sys.modules[getattr(found.incrementaldecoder, "__module__", "")]
        first = bytes(range(128)).decode(found.name)
        single = found.name in _ONE_BYTE or hasattr(module, "decoding_table")
    except Exception:
        single, first = False, ""
    if not single or first != bytes(range(128)).decode():
        raise data.bad_dialect(
            "encoding=",
            f"{shown(name)} is neither UTF-8 nor a known encoding of one byte a character",
            "pass for example 'utf-8', 'cp1252' or 'latin-1', or write the file anew in UTF-8",
        )
    return found.name


def _missing(given: object) -> tuple[str, ...]:
    if plain.derives(type(given), str) or not hasattr(type(given), "__iter__"):
        found: Sequence[object] = (given,)
    else:
        found = plain.members(given, "missing_text=")  # type: ignore[arg-type]
    texts = tuple(plain.text(one, "missing_text=") for one in found)
    if len(texts) > MOST_MISSING_TEXTS or not all(map(_is_unicode, texts)):
        raise data.bad_dialect(
            "missing_text=",
            f"more than {MOST_MISSING_TEXTS} texts, or one that is not Unicode",
            "pass for example missing_text=('NA', '#N/A')",
        )
    return tuple(dict.fromkeys(texts))


def _is_unicode(text: str) -> bool:
    try:
        return text.encode() is not None
    except UnicodeEncodeError:
        return False
