"""The CSV rule of `trusted/extensions/csv_files.py`, written naively: one byte after another."""

from __future__ import annotations


def reference_records(content, separator=b","):
    """All records of a file, the header among them, as lists of bytes; a blank line is none."""
    records, fields, field, quoted, begun, place = [], [], b"", False, False, 0

    def end_record():
        nonlocal fields, field, begun
        if fields or begun:
            records.append([*fields, field])
        fields, field, begun = [], b"", False

    while place < len(content):
        byte, following = content[place : place + 1], content[place + 1 : place + 2]
        place += 1
        if quoted:
            if byte == b'"' and following == b'"':
                field, place = field + b'"', place + 1
            elif byte == b'"':
                quoted = False
            else:
                field += byte
        elif byte == b'"' and not begun:
            quoted = begun = True
        elif byte == separator:
            fields, field, begun = [*fields, field], b"", False
        elif byte in (b"\r", b"\n"):
            if byte == b"\r" and following == b"\n":
                place += 1
            end_record()
        else:
            field, begun = field + byte, True
    end_record()
    return records


def reference_table(content, dialect=None):
    """(header, rows) as text; a cell is None where the record is short, the field empty or one of
    the dialect's missing texts.
    """
    separator, encoding, missing = ",", "utf-8", ()
    if dialect is not None:
        separator, encoding, missing = dialect.separator, dialect.encoding, dialect.missing_text
    if encoding == "utf-8":
        content = content.removeprefix(b"\xef\xbb\xbf")
    else:
        content = b"".join(bytes([one]).decode(encoding, "replace").encode() for one in content)
    header, *rows = [
        [field.decode("utf-8", "replace") for field in record]
        for record in reference_records(content, separator.encode())
    ] or [[]]
    return header, [
        [
            row[place] if place < len(row) and row[place] not in ("", *missing) else None
            for place in range(len(header))
        ]
        for row in rows
    ]
