"""What must be right is small, and its page says of every file what breaks if it is wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from code_lines import MOST_OF_CORE, ROOMS, code_lines, folder_lines, lines_by_room

import discreet

TRUSTED = Path(discreet.__file__).parent / "trusted"
ROOT = Path(__file__).parents[2]
PAGE = (TRUSTED / "README.md").read_text()


def test_what_must_be_right_is_small() -> None:
    lines = lines_by_room(folder_lines(TRUSTED))
    assert lines.pop("core") <= MOST_OF_CORE
    assert {room: count for room, count in lines.items() if count > ROOMS[room]} == {}


def test_code_is_counted_without_blanks_comments_and_docstrings() -> None:
    text = (
        '"""A page\nof words."""\n\n# a note\nx = (\n    1,  # one\n)\n\n\n'
        'def f():\n    """Words."""\n    return """a\n\nb"""\n'
    )
    assert code_lines(text) == 3 + 1 + 3
    rooms = lines_by_room({"a.py": 2, "extensions/b.py": 3, "c/d.py": 4})
    assert (rooms["core"], rooms["extensions"]) == (6, 3)


# -- the page ----------------------------------------


def rows_of(page: str) -> dict[str, list[str]]:
    """The rows of the page's tables about files: the file, and what is said of it."""
    rows: dict[str, list[str]] = {}
    for line in page.splitlines():
        found = re.match(r"\| `([\w/]+\.(?:py|npy))` \|(.*)\|$", line)
        if found:
            assert found[1] not in rows, f"two rows about {found[1]}"
            rows[found[1]] = [cell.strip() for cell in found[2].split("|")]
    return rows


def problems(page: str, files: set[str], root: Path) -> list[str]:
    """Files without a row, rows without a file, rows that leave something out, tests that are not
    there."""
    rows = rows_of(page)
    found = [f"no row is about {name}" for name in sorted(files - set(rows))]
    found += [f"the row about {name} has no file" for name in sorted(set(rows) - files)]
    for name, cells in rows.items():
        if len(cells) != 3 or not all(cells):
            found.append(f"{name}: say what it guarantees, what breaks, and which test notices")
        elif not re.findall(r"`(tests/[^`]+)`", cells[-1]):
            found.append(f"{name}: no test is named")
        for test in re.findall(r"`(tests/[^`]+)`", cells[-1] if cells else ""):
            path, _, function = test.partition("::")
            place = root / path
            if not place.exists() or (function and f"def {function}(" not in place.read_text()):
                found.append(f"{name}: {test} is not there")
    return found


def files_of(folder: Path) -> set[str]:
    """Every file that can be wrong; an `__init__` holds words alone (tested below)."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")}
    return {
        name
        for name in names
        if name.endswith((".py", ".npy")) and not name.endswith("__init__.py")
    }


def test_every_file_has_a_row_and_every_row_a_file() -> None:
    found = problems(PAGE, files_of(TRUSTED), ROOT)
    assert not found, "\n".join(found)


def test_packages_hold_words_alone() -> None:
    full = [
        name
        for name, count in folder_lines(TRUSTED).items()
        if name.endswith("__init__.py") and count
    ]
    assert not full


GOOD = "| `a.py` | holds | breaks | `tests/architecture/test_trusted.py` |\n"


@pytest.mark.parametrize(
    ("page", "files", "said"),
    [
        (GOOD, {"a.py", "b.py"}, "no row is about b.py"),
        (GOOD, set(), "the row about a.py has no file"),
        (GOOD.replace("breaks", ""), {"a.py"}, "what breaks"),
        (GOOD.replace("| breaks ", ""), {"a.py"}, "what breaks"),
        (GOOD.replace("`tests", "`test"), {"a.py"}, "no test is named"),
        (GOOD.replace("test_trusted", "test_gone"), {"a.py"}, "test_gone.py is not there"),
        (GOOD.replace(".py` |\n", ".py::test_gone` |\n"), {"a.py"}, "test_gone is not there"),
    ],
)
def test_a_page_that_leaves_something_out_is_noticed(page: str, files: set[str], said: str) -> None:
    assert any(said in problem for problem in problems(page, files, ROOT))
    assert problems(GOOD, {"a.py"}, ROOT) == []


# -- what the folder reads ----------------------------------------


def test_the_rooms_that_the_folder_reads_are_listed() -> None:
    read = {
        name
        for path in TRUSTED.rglob("*.py")
        for line in path.read_text().splitlines()
        for name in re.findall(r"^\s*from discreet\.(\w+)[\w.]* import", line)
    } - {"trusted"}
    listed = set(re.findall(r"^\| `discreet/(\w+)", PAGE, flags=re.MULTILINE))
    assert read <= listed, sorted(read - listed)
