"""Lines of code: no blanks, no comments, no docstrings.

python tests/architecture/code_lines.py [folder]    one line a module of src/discreet/trusted
"""

from __future__ import annotations

import ast
import functools
import io
import sys
import tokenize
from pathlib import Path

TRUSTED = Path(__file__).parents[2] / "src" / "discreet" / "trusted"
# rooms beside the core, each loaded only where it is used and counted apart, with its limit
ROOMS = {
    "extensions": 3500,
    "learning": 1000,
    "aggregation": 1000,
    "scale": 1200,
    "cluster": 1050,
    "tree": 2000,
}
MOST_OF_CORE = 4500
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@functools.cache
def code_lines(text: str) -> int:
    """How many lines of a module's text hold code."""
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            held |= {*range(token.start[0], token.end[0] + 1)}
    return len(held - docstring_lines(ast.parse(text)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """The lines that docstrings of a module, its classes and its functions take."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found |= {*range(value.lineno, (value.end_lineno or value.lineno) + 1)}
    return found


def folder_lines(folder: Path) -> dict[str, int]:
    """The lines of code of every module below a folder."""
    return {
        str(path.relative_to(folder)): code_lines(path.read_text())
        for path in sorted(folder.rglob("*.py"))
    }


def lines_by_room(lines: dict[str, int]) -> dict[str, int]:
    """The lines of the core, which every release needs, and of rooms that some questions add."""
    rooms = dict.fromkeys(("core", *ROOMS), 0)
    for name, count in lines.items():
        room = name.partition("/")[0]
        rooms[room if room in ROOMS else "core"] += count
    return rooms


def trusted_lines() -> dict[str, int]:
    """The lines of the trusted folder's rooms."""
    return lines_by_room(folder_lines(TRUSTED))


if __name__ == "__main__":
    for name, lines in folder_lines(Path(sys.argv[1]) if sys.argv[1:] else TRUSTED).items():
        print(f"{lines:6} {name}")
    print(*(f"{room}={lines}" for room, lines in trusted_lines().items()))
