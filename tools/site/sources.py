"""Pages of the repository's files that other pages lead to: what is cited can be read."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
# what may be shown: everything that is part of the project, nothing that was built
ROOMS = ("src", "tests", "benchmarks", "tools", "examples", "docs")
BESIDE = ("README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md", "LICENSE", "Makefile",
          "CITATION.cff", "pyproject.toml", "constraints.txt", "mkdocs.yml")  # fmt: skip
LANGUAGES = {".py": "python", ".pyi": "python", ".toml": "toml", ".md": "markdown", ".json": "json"}
HIDDEN = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n"
MOST_SHOWN = 200_000  # characters


def known(path: str) -> bool:
    """Whether a path of the repository can be shown."""
    whole = ROOT / path
    inside = Path(path).parts[:1]
    return whole.exists() and (inside[0] in ROOMS or path in BESIDE) if inside else False


def source_page(path: str) -> str:
    """The page of a file, or of a folder's names."""
    whole = ROOT / path
    if whole.is_dir():
        names = sorted(
            one.name for one in whole.iterdir() if not one.name.startswith(("__pycache__", "."))
        )
        listed = "\n".join(f"- `{name}`" for name in names)
        return f"{HIDDEN}# `{path}`\n\n{listed}\n"
    text = whole.read_text(encoding="utf-8")[:MOST_SHOWN]
    fence = "`" * 4 if "```" in text else "`" * 3
    language = LANGUAGES.get(whole.suffix, "text")
    return (
        f"{HIDDEN}# `{path}`\n\n"
        f'{fence} {{ .{language} linenums="1" .source }}\n{text.rstrip()}\n{fence}\n'
    )


def line_of(path: str, name: str) -> int | None:
    """The line where a module defines a name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return node.lineno
    return None
