"""The places where rows are converted, read from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import discreet

SOURCE = Path(discreet.__file__).parent
TRUSTED = (
    "trusted/engines",
    "trusted/extensions/csv_files.py",
    "trusted/extensions/date_cells.py",
    "trusted/extensions/unit_buckets.py",
    "trusted/extensions/unit_sums.py",
    "trusted/extensions/estimating",
    "trusted/extensions/open_keys/labels.py",
    "trusted/extensions/open_keys/counts.py",
    "trusted/extensions/sgd/batches.py",
    "trusted/learning/network",
    "trusted/aggregation/tables.py",
    "specs/estimating/layers.py",
    "trusted/extensions/part_tests.py",
    "trusted/aggregation/friends/rows.py",
    "trusted/aggregation/part_outputs.py",
    "trusted/cluster",
    "trusted/scale",
    "trusted/extensions/local/client.py",
    "trusted/extensions/local/gradients.py",
    "trusted/extensions/local/values.py",
    "trusted/noise/assignment.py",
    "trusted/values.py",
    "sklearn",
)
OPERATIONS = {
    "array",
    "asarray",
    "asanyarray",
    "ascontiguousarray",
    "asfortranarray",
    "astype",
    "fromiter",
    "frombuffer",
    "stack",
    "column_stack",
    "vstack",
    "hstack",
    "concatenate",
    "dot",
    "vdot",
    "inner",
    "outer",
    "einsum",
    "tensordot",
    "matmul",
    "vecdot",
    "matvec",
    "sort",
    "argsort",
    "lexsort",
    "partition",
    "argpartition",
    "unique",
    "factorize",
    "DataFrame",
    "Series",
    "from_native",
    "to_native",
    "to_numpy",
    "to_list",
    "to_pylist",
    "to_pandas",
    "to_polars",
    "to_arrow",
    "from_arrow",
    "from_pandas",
    "from_dict",
    "from_records",
    "fetchnumpy",
    "fetch_arrow_table",
    "df",
    "arrow",
    "dictionary_encode",
    "convert_dtypes",
    "infer_objects",
    "to_numeric",
    "cast",
}


def operations_of(text: str) -> set[tuple[str, str]]:
    """(function, operation) of every conversion, product and sort in a module's text.

    A method is named with its class. Type annotations and the types that `isinstance` asks about
    are no operations. A name that is imported, or looked up by its text, is one where that
    happens, so that another name for it hides nothing.
    """
    found: set[tuple[str, str]] = set()

    def walk(node: ast.AST, where: str) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns"):
                continue
            children = value if isinstance(value, list) else [value]
            if (
                field == "args"
                and isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "isinstance"
            ):
                children = children[:1]
            for child in children:
                if isinstance(child, ast.AST):
                    look(child, where)

    def look(node: ast.AST, where: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            walk(node, f"{where}.{node.name}".lstrip("."))
            return
        if isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.MatMult):
            found.add((where, "@"))
        if isinstance(node, ast.Attribute) and node.attr in OPERATIONS:
            found.add((where, node.attr))
        if isinstance(node, ast.ImportFrom):
            found.update(
                (where, f"import {alias.name}") for alias in node.names if alias.name in OPERATIONS
            )
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "getattr",
            "methodcaller",
        ):
            found.update(
                (where, argument.value)
                for argument in node.args
                if isinstance(argument, ast.Constant) and argument.value in OPERATIONS
            )
        walk(node, where)

    walk(ast.parse(text), "")
    return found


def places() -> set[tuple[str, str, str]]:
    """(module, function, operation) in all trusted modules that touch cells."""
    files = [
        path
        for name in TRUSTED
        for path in sorted(
            (SOURCE / name).rglob("*.py") if (SOURCE / name).is_dir() else [SOURCE / name]
        )
    ]
    return {
        (str(path.relative_to(SOURCE)), where, operation)
        for path in files
        for where, operation in operations_of(path.read_text())
    }
