"""Where rows are converted, multiplied or sorted: every place is on a reviewed list.

Each has the reason why a row's value cannot depend on another row; docs/theory/rows.md has the
rule. A new place fails here until it is reviewed, and so does an entry whose place is gone; the
failure prints the entries to add and to take away.
"""

from __future__ import annotations

import pytest
from conversions_on_clusters import ON_CLUSTERS
from reviewed_aggregation import AGGREGATION
from reviewed_scale import SCALE
from row_conversions import operations_of, places

DTYPE = "element by element, from one public dtype to another"
TYPED = "the column has a dtype of its own, which is public"
ONE_BY_ONE = "each cell is read for itself by a total rule, then put in an array of a fixed dtype"
OBJECTS = "cells as Python objects, each by itself"
EXACT = (
    "sums of whole numbers below 2**52 (or in int64): exact in any order, by the block theorem of "
    "kernels.py"
)
PUBLIC = "public numbers; no row is in them"
ORDER = "which rows are equal, or their order: values stay what they are"
LABELS = "labels of equal values; the label's number is used for nothing but equality"
RESULT = "a result that was released, or sums over rows"
VIEW = "an array as it is"

# (module, function): {operation: reason}
REVIEWED: dict[tuple[str, str], dict[str, str]] = {
    ("trusted/aggregation/tables.py", "axis_places"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/local/client.py", "report"): {
        "array": ONE_BY_ONE,
    },
    ("trusted/engines/arrow_cells.py", "ArrowDecimals.__iter__"): {
        "array": "the field of that name: the column itself",
        "to_pylist": "a decimal column gives decimals, cell by cell",
    },
    ("trusted/engines/arrow_cells.py", "ArrowDecimals.numbers"): {
        "array": "places of wide cells, which are whole numbers",
        "to_pylist": "a decimal column gives decimals, cell by cell",
    },
    ("trusted/engines/arrow_cells.py", "ArrowTexts.find"): {
        "array": "the field of that name: the column itself",
        "asarray": "places among the levels, 32-bit for every column",
        "to_numpy": "whole numbers of one type, no nulls among them",
    },
    ("trusted/engines/arrow_cells.py", "ArrowTexts.labelled"): {
        "array": "the field of that name: the column itself",
        "dictionary_encode": "labels are names of equal texts: what a text is read as does not "
        "depend on its label",
    },
    ("trusted/engines/arrow_cells.py", "ArrowTexts.numbers"): {
        "array": "numbers of distinct texts, one float each",
        "cast": "each text by itself; both ways of reading give the same number "
        "(tests/trusted/engines/test_arrow_cells.py)",
        "to_numpy": "floats, NaN where missing",
    },
    ("trusted/engines/arrow_cells.py", "_in_one_piece"): {
        "array": "an empty column of the declared type",
    },
    ("trusted/engines/arrow_cells.py", "_listed_texts"): {
        "array": "declared levels, not cells",
    },
    ("trusted/engines/arrow_cells.py", "_places"): {
        "asarray": "whole numbers of one type",
        "cast": "unsigned indices of a dictionary, whose type is public",
        "to_numpy": "whole numbers of one type, no nulls among them",
    },
    ("trusted/engines/arrow_cells.py", "_run_out"): {
        "array": "places of runs, which are whole numbers",
        "asarray": "the ends of runs, of the type that the column has",
    },
    ("trusted/engines/arrow_cells.py", "_small_steps"): {
        "asarray": "the mask of missing cells",
        "astype": "whole numbers below 2**53 are floats exactly",
        "frombuffer": "16 bytes a cell, as the type says",
    },
    ("trusted/engines/arrow_cells.py", "_unlisted"): {
        "array": "places in a dictionary, which are whole numbers",
    },
    ("trusted/engines/arrow_cells.py", "_wide_text"): {
        "cast": "offsets alone change; bytes stay as they are",
    },
    ("trusted/engines/arrow_cells.py", "cells_from_arrow"): {
        "asarray": "the mask of missing cells",
        "astype": "0 and 1 of a bool8 column, whose type is public",
        "to_numpy": "numbers of the column's own type, nulls filled in before",
        "to_pylist": "UUIDs, cell by cell",
    },
    ("trusted/engines/arrow_cells.py", "joined"): {
        "array": "an empty column of the declared type",
    },
    ("trusted/engines/arrow_cells.py", "python_cells"): {
        "to_pylist": "cell by cell; where one fails, each is read alone, to the same values",
    },
    ("trusted/extensions/sgd/batches.py", "RowGradients._in_numpy"): {
        "astype": RESULT,
    },
    ("trusted/extensions/sgd/batches.py", "RowGradients.gradient"): {
        "astype": RESULT,
    },
    ("trusted/engines/bounding.py", "ranks"): {
        "argsort": ORDER,
        "lexsort": ORDER,
    },
    ("trusted/engines/bounding.py", "kept_rows"): {
        "array": ONE_BY_ONE,
    },
    ("trusted/engines/cells.py", "PlainTexts.find"): {
        "fromiter": "one place a cell, of the type that is named",
    },
    ("trusted/engines/cells.py", "PlainTexts.labelled"): {
        "fromiter": "one label a cell, of the type that is named",
    },
    ("trusted/engines/cells.py", "PlainTexts.numbers"): {
        "fromiter": "one float a cell, of the type that is named",
    },
    ("trusted/engines/cells.py", "_label_objects"): {
        "fromiter": LABELS,
    },
    ("trusted/engines/columns.py", "_mask"): {
        "asarray": VIEW,
    },
    ("trusted/extensions/open_keys/labels.py", "_open_numbers"): {
        "astype": DTYPE,
        "unique": LABELS,
    },
    ("trusted/extensions/open_keys/labels.py", "_open_objects"): {
        "fromiter": LABELS,
    },
    ("trusted/engines/columns.py", "_python_cells"): {
        "to_list": OBJECTS,
    },
    ("trusted/engines/columns.py", "_texts"): {
        "to_arrow": "a text column stays text; where a cell cannot be held, all are read "
        "alone, to the same texts",
    },
    ("trusted/engines/cells.py", "boolean_codes"): {
        "array": "codes of distinct texts, of the type that is named",
        "asarray": "codes taken by label, already of one type",
        "astype": DTYPE,
        "fromiter": ONE_BY_ONE,
    },
    ("trusted/engines/cells.py", "category_codes"): {
        "array": "codes of distinct texts, of the type that is named",
        "asarray": "codes taken by label, already of one type",
        "astype": DTYPE,
        "fromiter": ONE_BY_ONE,
    },
    ("trusted/engines/columns.py", "_times"): {
        "to_numpy": "a column of dates or moments by its type; both readings give each the same",
    },
    ("trusted/engines/columns.py", "cells_from_array"): {
        "asarray": VIEW,
    },
    ("trusted/engines/columns.py", "cells_from_series"): {
        "asarray": TYPED,
        "to_arrow": "a column that is Arrow's already, by its type",
        "to_native": "to look at the type that the column has, not at its cells",
        "to_numpy": TYPED,
    },
    ("trusted/engines/columns.py", "cells_of"): {
        "from_native": "a column that has its own type",
    },
    ("trusted/engines/cells.py", "distinct_texts"): {
        "array": "places of texts, of the type that is named",
    },
    ("trusted/engines/cells.py", "numbers"): {
        "astype": DTYPE,
        "fromiter": ONE_BY_ONE,
    },
    ("trusted/extensions/open_keys/labels.py", "open_labels"): {
        "astype": DTYPE,
    },
    ("trusted/engines/cells.py", "unit_labels"): {
        "unique": LABELS,
    },
    ("trusted/extensions/date_cells.py", "_known"): {
        "array": "whole seconds of cells read one by one, of the type that is named",
    },
    ("trusted/extensions/date_cells.py", "_object_seconds"): {
        "array": "one value alone",
    },
    ("trusted/extensions/date_cells.py", "seconds_of_times"): {
        "astype": "times of one unit as their counts, element by element",
    },
    ("trusted/extensions/csv_files.py", "cell_reader"): {
        "array": "the declared missing texts and levels, which are public",
    },
    ("trusted/extensions/csv_files.py", "_cut"): {
        "array": "places and masks; bytes are cut by the block's own offsets",
    },
    ("trusted/extensions/csv_files.py", "_field_ends"): {
        "array": "the end of the block",
        "concatenate": "places in the block",
    },
    ("trusted/extensions/csv_files.py", "_stretches_in_turn"): {
        "array": "places in the block, of the type that is named",
        "astype": "flags kept as 0 and 1",
    },
    ("trusted/extensions/csv_files.py", "_texts"): {
        "array": "text of the type that is named, each decoded alone",
        "cast": "bytes that are UTF-8 are that text; both ways give the same text for them",
        "to_pylist": "bytes, cell by cell",
    },
    ("trusted/extensions/csv_files.py", "fields_of"): {
        "to_pylist": "names of the header, each decoded alone",
    },
    ("trusted/extensions/csv_files.py", "records_of"): {
        "frombuffer": "the bytes of the file as they are",
    },
    ("trusted/extensions/csv_files.py", "split"): {
        "concatenate": "places in the block",
    },
    ("trusted/engines/batches.py", "BatchEngine.gram"): {
        "asarray": "a sum of exact integers",
    },
    ("trusted/extensions/open_keys/counts.py", "KeySums.joined"): {
        "array": "exact counts, of the type that is named",
    },
    ("trusted/engines/batches.py", "BatchEngine.sums"): {
        "asarray": "a sum of exact integers",
    },
    ("trusted/extensions/estimating/reading.py", "_Parts.add"): {
        "asarray": "codes of the type that the encoding has",
    },
    ("trusted/extensions/estimating/reading.py", "Gathered.rows"): {
        "concatenate": "codes of one type, whichever part they come from",
    },
    ("trusted/engines/memory.py", "MemoryEngine.counted_units"): {
        "astype": "labels below the number of rows, which the type holds",
    },
    ("trusted/engines/memory.py", "MemoryEngine._all_level_codes"): {
        "astype": DTYPE,
    },
    ("trusted/engines/memory.py", "MemoryEngine._all_values"): {
        "astype": DTYPE,
    },
    ("trusted/engines/memory.py", "MemoryEngine.cell_index"): {
        "astype": DTYPE,
    },
    ("trusted/engines/memory.py", "MemoryEngine.content"): {
        "array": ONE_BY_ONE,
        "astype": DTYPE,
    },
    ("trusted/extensions/part_tests.py", "_given"): {
        "array": PUBLIC,
        "asarray": VIEW,
        "ascontiguousarray": VIEW,
    },
    ("trusted/extensions/part_tests.py", "_read"): {
        "asarray": VIEW,
    },
    ("trusted/engines/rehearsal.py", "_column"): {
        "array": PUBLIC,
    },
    ("trusted/engines/memory.py", "MemoryEngine._held"): {
        "astype": DTYPE,
    },
    ("trusted/engines/memory.py", "MemoryEngine._key"): {
        "array": PUBLIC,
        "astype": DTYPE,
    },
    ("trusted/extensions/estimating/reading.py", "unit_labels_of"): {
        "asarray": VIEW,
    },
    ("trusted/extensions/estimating/unit_scores.py", "_gram_of_units"): {
        "asarray": VIEW,
        "hstack": "both halves of units' sums",
    },
    ("trusted/extensions/estimating/unit_scores.py", "_unit_sums"): {
        "astype": "whole numbers below 2**53 as float64",
    },
    **ON_CLUSTERS,
    ("trusted/extensions/estimating/reading.py", "_number_codes"): {
        "asarray": VIEW,
    },
    ("trusted/engines/memory.py", "MemoryEngine.histogram"): {
        "astype": RESULT,
        "unique": ORDER,
    },
    ("trusted/engines/memory.py", "_array_reader"): {
        "from_native": TYPED,
    },
    ("trusted/engines/memory.py", "memory_engine_from_frame"): {
        "from_native": TYPED,
    },
    ("trusted/extensions/estimating/rows.py", "Unread.numbers"): {
        "array": VIEW,
    },
    ("trusted/extensions/estimating/rows.py", "_response"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/part_tests.py", "_assigned"): {
        "asarray": "parts drawn without data, taken by the label of a row's unit",
    },
    ("trusted/noise/assignment.py", "balanced_parts"): {
        "argsort": PUBLIC,
    },
    ("trusted/noise/assignment.py", "independent_parts"): {
        "asarray": PUBLIC,
    },
    **AGGREGATION,
    **SCALE,
    ("trusted/extensions/part_tests.py", "_by_part"): {
        "argsort": ORDER,
    },
    ("trusted/extensions/unit_sums.py", "_Sums.add"): {
        "argsort": ORDER,
        "astype": "labels of units, and cells below 2**31, as they are",
    },
    ("trusted/extensions/unit_sums.py", "_Sums._add_arrays"): {
        "astype": "whole numbers below 2**53, to float64 and back",
        "unique": "numbers of units and cells; equal ones are one unit's rows in one cell",
    },
    ("trusted/extensions/unit_sums.py", "_Sums.total"): {
        "column_stack": RESULT,
    },
    ("trusted/extensions/unit_sums.py", "unit_sums"): {
        "asarray": VIEW,
    },
    ("trusted/extensions/unit_buckets.py", "Buckets.deal"): {
        "argsort": "rows are put in the order of their buckets; none changes",
        "array": "row numbers",
        "concatenate": "buckets of rows, each by its own id",
    },
    ("trusted/extensions/unit_buckets.py", "bucket_of_rows"): {
        "array": "buckets of distinct ids, of the type that is named",
    },
    ("trusted/engines/kernels.py", "Totals.total"): {
        "astype": RESULT,
    },
    ("trusted/engines/kernels.py", "_blas_product"): {
        "@": EXACT,
        "astype": DTYPE,
    },
    ("trusted/engines/kernels.py", "bin_index"): {
        "asarray": PUBLIC,
        "astype": DTYPE,
    },
    ("trusted/engines/kernels.py", "blas_is_exact"): {
        "astype": PUBLIC,
        "stack": PUBLIC,
    },
    ("trusted/engines/kernels.py", "gram"): {
        "stack": "codes of integer dtypes; a wider one holds them all",
    },
    ("trusted/extensions/open_keys/counts.py", "grouped"): {
        "astype": DTYPE,
        "unique": LABELS,
    },
    ("trusted/engines/kernels.py", "integer_product"): {
        "@": EXACT,
        "asarray": VIEW,
        "astype": DTYPE,
    },
    ("trusted/engines/kernels.py", "places"): {
        "astype": DTYPE,
    },
    ("trusted/engines/kernels.py", "scatter_numpy"): {
        "astype": RESULT,
    },
    ("trusted/extensions/estimating/kernels.py", "multipliers"): {
        "asarray": VIEW,
    },
    ("trusted/extensions/estimating/kernels.py", "_places"): {
        "@": EXACT,
        "array": PUBLIC,
        "asarray": VIEW,
        "astype": DTYPE,
    },
    ("trusted/extensions/estimating/kernels.py", "_psi"): {
        "asarray": VIEW,
        "astype": DTYPE,
    },
    ("trusted/extensions/estimating/kernels.py", "_sure_length"): {
        "@": PUBLIC,
    },
    ("trusted/extensions/estimating/kernels.py", "compiled_gradient"): {
        "array": PUBLIC,
        "astype": RESULT,
    },
    ("trusted/extensions/estimating/kernels.py", "_products.gram"): {
        "astype": RESULT,
        "matmul": EXACT,
    },
    ("trusted/extensions/estimating/kernels.py", "_compiled_products.gram"): {"astype": RESULT},
    ("trusted/extensions/estimating/kernels.py", "numpy_gradient.chunk"): {
        "astype": RESULT,
        "matmul": EXACT,
    },
    ("trusted/extensions/estimating/kernels.py", "psi_and_slope"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/estimating/kernels.py", "residual_counts"): {
        "@": EXACT,
        "array": PUBLIC,
        "astype": DTYPE,
    },
    ("trusted/extensions/estimating/kernels.py", "row_weights"): {
        "array": PUBLIC,
        "ascontiguousarray": PUBLIC,
    },
    ("trusted/extensions/estimating/kernels.py", "row_weights.weigh"): {
        "matmul": EXACT,
        "vecdot": EXACT,
    },
    ("trusted/extensions/estimating/kernels.py", "weights_of"): {
        "vecdot": EXACT,
    },
    ("sklearn/estimators.py", "PrivateLogisticRegression._classes"): {
        "asarray": PUBLIC,
    },
    ("sklearn/estimators.py", "PrivateLogisticRegression.predict"): {
        "asarray": VIEW,
        "astype": DTYPE,
    },
    ("sklearn/estimators.py", "PrivateLogisticRegression.predict_proba"): {
        "stack": "two float columns beside each other",
    },
    ("sklearn/networks.py", "PrivateMLPClassifier._classes"): {"asarray": PUBLIC},
    ("sklearn/networks.py", "PrivateMLPClassifier.fit"): {"asarray": PUBLIC},
    ("sklearn/networks.py", "PrivateMLPClassifier.predict"): {"asarray": VIEW, "astype": DTYPE},
    ("sklearn/networks.py", "PrivateMLPClassifier.predict_proba"): {"asarray": VIEW},
    ("specs/estimating/layers.py", "_product"): {"@": EXACT, "asarray": VIEW},
    ("specs/estimating/layers.py", "decisions"): {"asarray": VIEW, "astype": DTYPE},
    ("specs/estimating/layers.py", "grid_places"): {"asarray": VIEW, "astype": DTYPE},
    ("specs/estimating/layers.py", "shares"): {"asarray": VIEW},
    ("trusted/learning/network/rows.py", "NetworkRows.gradient"): {
        "@": EXACT,
        "astype": RESULT,
        "concatenate": RESULT,
    },
    ("trusted/learning/network/rows.py", "_cut"): {"asarray": VIEW},
    ("trusted/learning/network/rows.py", "_errors"): {"@": EXACT},
    ("trusted/learning/network/rows.py", "_last_error"): {"asarray": VIEW},
    ("trusted/learning/network/rows.py", "agreement"): {"array": PUBLIC},
    ("trusted/learning/network/rows.py", "clip_factors"): {"asarray": VIEW, "vecdot": EXACT},
    ("sklearn/regression.py", "PrivateRegression._fitted"): {
        "array": RESULT,
    },
    ("sklearn/scaling.py", "PrivateStandardScaler.fit"): {
        "array": RESULT,
    },
    ("sklearn/scaling.py", "PrivateStandardScaler.inverse_transform"): {
        "asarray": "rows that were scaled, handed back by the caller; nothing is released of them",
    },
    ("sklearn/scaling.py", "PrivateStandardScaler.transform"): {
        "stack": "float columns beside each other",
    },
    ("sklearn/validation.py", "private_cross_validate"): {
        "array": RESULT,
    },
    ("sklearn/tables.py", "_array"): {
        "asarray": TYPED,
    },
    ("sklearn/cells.py", "clamped"): {
        "asarray": VIEW,
    },
    ("sklearn/tables.py", "columns_of"): {
        "from_native": TYPED,
        "to_native": TYPED,
    },
    ("sklearn/cells.py", "equal_to"): {
        "asarray": VIEW,
        "fromiter": ONE_BY_ONE,
    },
    ("sklearn/tables.py", "vector"): {
        "from_native": TYPED,
        "to_native": TYPED,
    },
    ("trusted/values.py", "Levels.of_booleans"): {
        "astype": DTYPE,
    },
    ("trusted/values.py", "Levels.of_numbers"): {
        "array": PUBLIC,
        "astype": "codes that are small whole numbers",
    },
    ("trusted/extensions/local/values.py", "_floats"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/local/values.py", "_grid_codes"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/local/values.py", "_whole_places"): {
        "astype": DTYPE,
    },
    ("trusted/values.py", "booleans_of"): {
        "astype": DTYPE,
    },
    ("trusted/extensions/local/values.py", "code_of"): {
        "array": ONE_BY_ONE,
    },
    ("trusted/extensions/local/values.py", "codes_of"): {
        "fromiter": ONE_BY_ONE,
    },
    ("trusted/values.py", "number_of"): {
        "astype": "one value alone",
    },
    ("trusted/extensions/local/values.py", "place_of"): {
        "array": ONE_BY_ONE,
    },
    ("trusted/extensions/local/values.py", "places_of"): {
        "astype": DTYPE,
        "fromiter": ONE_BY_ONE,
    },
    ("trusted/extensions/local/values.py", "plain_array"): {
        "array": "the same numbers of the same dtype, without a class of their own",
    },
}


def differences(found: set[tuple[str, str, str]]) -> str:
    """What to change in REVIEWED, as lines to copy; empty where nothing is."""
    known = {
        (module, function, operation)
        for (module, function), reasons in REVIEWED.items()
        for operation in reasons
    }
    new = [
        f'    review and add:  ("{module}", "{function}"): {{"{operation}": …}}'
        for module, function, operation in sorted(found - known)
    ]
    gone = [
        f'    take away:       ("{module}", "{function}"): {{"{operation}"}}'
        for module, function, operation in sorted(known - found)
    ]
    return "\n".join([*new, *gone])


def test_every_place_where_rows_are_converted_is_reviewed() -> None:
    assert not differences(places()), "\n" + differences(places())


def test_every_entry_has_a_reason() -> None:
    assert all(len(reason) > 10 for reasons in REVIEWED.values() for reason in reasons.values())


MUTANTS = {
    "a table through asarray": ("def _table(X):\n    return np.asarray(X)", "asarray"),
    "a predictor by BLAS": ("def _predictor(X, coef):\n    return X @ coef", "@"),
    "a product in place": ("def f(X, coef):\n    X @= coef", "@"),
    "a product by einsum": ("def f(X, coef):\n    return np.einsum('ij,j->i', X, coef)", "einsum"),
    "a method of the array": (
        "class A:\n    def f(self, X):\n        return X.dot(self.coef)",
        "dot",
    ),
    "types inferred by a frame": ("def f(cells):\n    return pandas.Series(cells)", "Series"),
    "another name": (
        "from numpy import asarray as quick\n\ndef f(X):\n    return quick(X)",
        "import asarray",
    ),
    "passed on as a function": ("def f(rows):\n    return list(map(np.asarray, rows))", "asarray"),
    "looked up by its text": ("def f(X):\n    return getattr(np, 'asarray')(X)", "asarray"),
    "inside a lambda": ("f = lambda X: X.astype(float)", "astype"),
}


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_new_place_would_be_noticed(mutant: str) -> None:
    text, operation = MUTANTS[mutant]
    found = operations_of(text)
    assert operation in {name for _, name in found}
    assert "review and add" in differences(
        places() | {("trusted/engines/kernels.py", function, name) for function, name in found}
    )


def test_an_entry_whose_place_is_gone_would_be_noticed() -> None:
    assert "take away" in differences(
        places() - {("trusted/engines/kernels.py", "_blas_product", "@")}
    )


def test_annotations_and_questions_of_type_are_no_places() -> None:
    assert (
        operations_of(
            "def f(series: nw.Series, n: int = 1) -> nw.Series:\n"
            "    other: pd.DataFrame = series\n    return isinstance(series, pd.Series)"
        )
        == set()
    )
