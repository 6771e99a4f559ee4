"""The public names as type checkers see them: src/discreet/__init__.pyi, written from the records
of the estimators and the homes of all other names.

    python tests/architecture/public_stub.py    writes the stub
"""

from __future__ import annotations

from pathlib import Path

import discreet

STUB = Path(discreet.__file__).with_suffix(".pyi")
LONGEST = 100


def stub_text() -> str:
    """The stub: one import a module, and the names that it exports."""
    homes: dict[str, list[str]] = {}
    for place in discreet._PLACES.values():
        module, _, name = place.partition(":")
        homes.setdefault(module, []).append(name)
    imports = [_import(module, sorted(homes[module], key=_place)) for module in sorted(homes)]
    names = "".join(f'    "{name}",\n' for name in discreet.__all__)
    return (
        "# written by tests/architecture/public_stub.py from the records of the estimators\n"
        + "\n".join(imports)
        + f"\n\n__version__: str\n__all__ = [\n{names}]\n"
    )


def _import(module: str, names: list[str]) -> str:
    line = f"from discreet.{module} import {', '.join(names)}"
    if len(line) <= LONGEST:
        return line
    listed = "".join(f"    {name},\n" for name in names)
    return f"from discreet.{module} import (\n{listed})"


def _place(name: str) -> tuple[int, str]:
    """As ruff sorts imported names: constants, classes, functions, each without case."""
    return 0 if name.isupper() else 1 if name[0].isupper() else 2, name.lower()


if __name__ == "__main__":
    STUB.write_text(stub_text())
