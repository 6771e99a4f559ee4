"""What a function says when it is called with arguments that it does not take:
the signature, which argument is too many or absent, and the way such a thing is said here.

Only names, positions and a caller's own numbers are shown.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from discreet.errors import InvalidParameter, UnknownName, shown

_SPEND = "pass for example spend=dp.GDP(0.1), spend=dp.PureDP(0.5) or spend=dp.ApproxDP(1, 1e-6)"
_BOX = "pass for example budget=dp.ApproxDP(epsilon=1, delta=1e-6)"
_BOTH = (
    "pass both, for example dp.ApproxDP(1, 1e-6), with a delta far below one over the number of "
    "people, or dp.PureDP(1), which has no delta"
)
_DECLARED = "bounds and levels are declared and never read from the data, since they set the noise"
_SEED = "noise is secret, so it has no seed; tests use discreet.testing.seeded_session"
_OPENED = (
    "questions are asked of a session: declare the data with dp.from_frame(frame, schema=…, "
    "neighbors=…) and pass what .open(budget=…) returned"
)
_DESCENT = "a descent is declared by itself: solver=dp.SGD(steps=2000, batch=1024, step_size=1.0)"
_GUARANTEES = "an epsilon is dp.PureDP(epsilon), or dp.ApproxDP(epsilon, delta) with a delta"
_BY = (
    "dp.table(session, column, by=…, spend=…) has the counts and means of groups, "
    "and dp.compare tests them"
)

# an absent parameter: why it is needed, and what to do
_ABSENT: dict[str, tuple[str, str]] = {
    "spend": ("every answer says what it may cost, and there is no default", _SPEND),
    "budget": ("a session stops when its budget is spent", _BOX),
    "schema": (
        _DECLARED,
        "pass schema={'age': dp.Integer(18, 90), …} and neighbors=dp.Replace() or dp.AddRemove()",
    ),
    "session": (
        "questions are asked of an open session, which has a budget",
        "pass what data.open(budget=...) returned as the first argument",
    ),
    "column": ("a question is about a declared column", "name one, for example 'age'"),
    "formula": ("a model is written as a formula", 'pass for example "income ~ age + region"'),
    "by": (
        "the cells of a table are declared, never learnt from the data",
        "pass for example by='region' or by={'age': [18, 40, 65, 90]}",
    ),
    "levels": (_DECLARED, "pass a list such as dp.Category(['N', 'S', 'E', 'W'])"),
    "epsilon": ("noise is computed from it", _BOTH),
    "delta": ("noise is computed from it", _BOTH),
    "mu": ("noise is computed from it", "pass for example dp.GDP(0.1)"),
}

# words of other libraries: the parameter meant, or a sentence where there is none
_WORDS: dict[str, tuple[str, ...]] = {
    "by": ("groupby", "group_by", "group", "groups", "keys"),
    "where": ("filter", "query", "mask", "condition", "subset"),
    "column": ("col", "variable", "field", "x"),
    "frame": ("data", "df"),
    "arrays": ("data", "df", "columns"),
    "formula": ("model",),
    "spend": ("budget", "privacy", "guarantee", "cost"),
    "budget": ("spend", "privacy", "guarantee"),
    "low": ("min", "minimum", "lower", "start"),
    "high": ("max", "maximum", "upper", "end", "stop"),
    "levels": ("categories", "values", "choices"),
    "missing": ("fill", "fillna", "fill_value", "default", "na"),
    "level": ("confidence", "confidence_level", "conf_level"),
    "separator": ("sep", "delimiter"),
    "missing_text": ("na_values", "null_values", "na"),
    "epsilon": ("eps",),
    "q": ("quantile", "probability", "p", "prob", "alpha"),
    "penalty": ("C", "lam", "regularization", "l2", "reg_lambda"),
    "k": ("n_clusters", "clusters", "centers"),
    "prior": ("alpha", "beta", "a", "b"),
    "step_size": ("lr", "learning_rate", "eta"),
    "steps": ("iterations", "max_iter", "n_iter"),
    "hidden": ("layers", "hidden_layer_sizes", "units"),
    "trials": ("n_trials", "n_iter"),
    "score": ("scoring", "metric"),
    "rounds": ("T", "iterations", "n_rounds"),
    "parts": ("splits", "partitions", "k", "m", "n_parts"),
    "samples": ("draws", "size", "n_samples"),
    "memory_limit": ("memory", "max_memory", "chunksize", "batch_size"),
    "token": ("password", "api_key", "auth"),
    "url": ("host", "address", "server"),
    "unit": ("id", "user", "person", "user_id"),
    "neighbors": ("neighbours", "adjacency", "relation", "input_distance"),
}
_SENTENCES = {
    **dict.fromkeys(("epochs", "learning_rate", "lr", "batch_size", "optimizer"), _DESCENT),
    "seed": _SEED,
    "random_state": _SEED,
    "rng": _SEED,
    "bounds": f"{_DECLARED}: in the schema, dp.Real(low, high)",
    "range": f"{_DECLARED}: in the schema, dp.Real(low, high)",
    "lower": f"{_DECLARED}: in the schema, dp.Real(low, high)",
    "upper": f"{_DECLARED}: in the schema, dp.Real(low, high)",
    "bins": "edges of a number are part of by=: by={'age': [18, 40, 65, 90]}",
    "edges": "edges of a number are part of by=: by={'age': [18, 40, 65, 90]}",
    "alpha": "name the level itself, 0.95 for an alpha of 0.05: result.confidence_interval(0.95)",
    "data": _OPENED,
    "df": _OPENED,
    "frame": _OPENED,
    "epsilon": _GUARANTEES,
    "eps": _GUARANTEES,
    "groupby": _BY,
    "group_by": _BY,
    "by": _BY,
    "delta": "a delta belongs to its guarantee: dp.ApproxDP(epsilon, delta)",
}
# too many arguments by position, where the names do not say enough
_POSITIONS = {
    "PureDP": "for a delta use dp.ApproxDP(epsilon, delta)",
    "Category": "pass the levels as one list: dp.Category(['N', 'S', 'E', 'W'])",
    "Replace": "name the column that says whose a row is: dp.Replace(unit='id', max_rows=3)",
    "AddRemove": "name the column that says whose a row is: dp.AddRemove(unit='id', max_rows=3)",
}

# public names of other libraries
_NAMES = {
    "mean": ("average", "avg", "bounded_mean", "private_mean"),
    "std": ("stdev", "sd", "standard_deviation", "stddev"),
    "variance": ("var",),
    "sum": ("total", "bounded_sum"),
    "ols": ("linear_regression", "LinearRegression", "lm", "regression", "OLS"),
    "logistic": ("logit", "Logit", "LogisticRegression", "glm"),
    "robust": ("huber", "HuberRegressor", "rlm"),
    "histogram": ("hist", "bincount"),
    "table": ("crosstab", "groupby", "group_by", "value_counts", "pivot_table"),
    "quantile": ("percentile",),
    "correlation": ("corr", "corrcoef"),
    "covariance": ("cov",),
    "compare_means": ("ttest", "t_test", "ttest_ind", "anova"),
    "read_csv": ("load_csv", "from_csv", "scan_csv"),
    "read_parquet": ("load_parquet", "from_parquet", "scan_parquet"),
    "from_frame": ("from_pandas", "from_polars", "from_dataframe", "DataFrame"),
    "from_arrays": ("from_dict", "from_numpy", "from_columns"),
    "ApproxDP": ("epsilon_delta", "ApproximateDP", "EpsilonDelta"),
    "PureDP": ("epsilon", "Epsilon", "EpsilonDP"),
    "GDP": ("mu", "GaussianDP"),
    "ZCDP": ("rho", "zCDP"),
    "Real": ("Float", "Number", "Continuous"),
    "Integer": ("Int",),
    "Category": ("Categorical", "Enum", "Factor"),
    "Boolean": ("Bool",),
    "Session": ("Analysis", "BudgetAccountant"),
}


_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def unknown_name(name: str, known: Sequence[str]) -> UnknownName:
    """A public name that there is not."""
    meant = [own for own, others in _NAMES.items() if name in others and own in known]
    folded = {one.casefold(): one for one in known}
    near = difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.75)
    found = meant or [folded[one] for one in near]
    return UnknownName(
        f"dp.{name}",
        f"module 'discreet' has no attribute {name!r}",
        "another name could mean another question",
        f"did you mean {' or '.join(f'dp.{one}' for one in found)}?"
        if found
        else "dir(discreet) and the documentation have all names",
    )


def wrong_call(
    function: str,
    parameters: Sequence[inspect.Parameter],
    positional: Sequence[Any],
    named: Mapping[str, Any],
) -> InvalidParameter:
    """The refusal of arguments that do not fit the parameters of a function."""
    known = [one.name for one in parameters if one.kind not in _ANY]
    by_position = [
        one.name
        for one in parameters
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    asked = f"{function}({_signature(parameters)})"
    others = [name for name in named if name not in known]
    takes_any = {one.kind for one in parameters}
    hint = _as_guarantee(named, known) or _as_words(others, known)
    if others and (hint or inspect.Parameter.VAR_KEYWORD not in takes_any):
        return _unexpected(asked, others, hint or _as_near(others[0], known))
    if len(positional) > len(by_position) and inspect.Parameter.VAR_POSITIONAL not in takes_any:
        return _too_many(asked, function, len(positional), by_position, known)
    filled = by_position[: len(positional)]
    again = [name for name in filled if name in named]
    if again:
        return InvalidParameter(
            asked,
            f"{again[0]} was given twice, by position and by name",
            "a parameter has one value",
            f"leave {again[0]}= out, or name every argument",
        )
    if filled[:1] == ["session"] and type(positional[0]) in (str, dict, list):
        why, remedy = _ABSENT["session"]
        found = f"a {type(positional[0]).__name__} is not a session"
        return InvalidParameter(asked, found, why, remedy)
    absent = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind not in _ANY and one.name not in (*filled, *named)
    ]
    return _not_given(asked, absent)


def _signature(parameters: Sequence[inspect.Parameter]) -> str:
    """The parameters as they are written, with short defaults and without types."""
    bare = [one.replace(annotation=one.empty) for one in parameters]
    written = [
        one
        if one.default is one.empty or len(shown(one.default)) <= 12
        else one.replace(default=...)
        for one in bare
    ]
    return str(inspect.Signature(written))[1:-1].replace("Ellipsis", "…")


def _not_given(asked: str, absent: Sequence[str]) -> InvalidParameter:
    names = " and ".join(filter(None, [", ".join(absent[:-1]), *absent[-1:]]))
    known = next((name for name in absent if name in _ABSENT), "")
    why, remedy = _ABSENT.get(
        known,
        ("it has no default, and nothing is guessed from the data", f"pass {names} as well"),
    )
    rest = [f"{name}=" for name in absent if known not in ("", name) and remedy != _BOTH]
    return InvalidParameter(
        asked,
        f"{names} {'was' if len(absent) == 1 else 'were'} not given",
        why,
        remedy + (f"; and give {', '.join(rest)}" if rest else ""),
    )


def _too_many(
    asked: str, function: str, given: int, by_position: Sequence[str], known: Sequence[str]
) -> InvalidParameter:
    rest = [f"{name}=" for name in known if name not in by_position]
    return InvalidParameter(
        asked,
        f"it takes {len(by_position) or 'no'} argument{'' if len(by_position) == 1 else 's'} by "
        f"position, and {given} {'was' if given == 1 else 'were'} given",
        "arguments that are named cannot be mistaken for each other",
        _POSITIONS.get(function)
        or (f"write the others by name: {', '.join(rest)}" if rest else "leave the others out"),
    )


def _unexpected(asked: str, others: Sequence[str], remedy: str) -> InvalidParameter:
    return InvalidParameter(
        asked,
        f"{', '.join(f'{other}=' for other in others)} "
        f"{'is none' if len(others) == 1 else 'are none'} of its parameters",
        "what is not understood is refused: it would otherwise be left out in silence",
        remedy,
    )


def _as_guarantee(named: Mapping[str, Any], known: Sequence[str]) -> str:
    """A privacy parameter where a guarantee is taken, with the caller's own numbers."""
    taker = next((name for name in ("spend", "budget") if name in known), "")
    if not taker:
        return ""
    numbers = {
        name: f"{held!r}" if type(held) in (int, float) else name for name, held in named.items()
    }
    epsilon = next((numbers[name] for name in ("epsilon", "eps") if name in numbers), "")
    if epsilon and "delta" in numbers:
        meant = f"dp.ApproxDP({epsilon}, {numbers['delta']})"
    elif epsilon:
        meant = f"dp.PureDP({epsilon})"
    elif "mu" in numbers and "mu" not in known:
        meant = f"dp.GDP({numbers['mu']})"
    elif "rho" in numbers:
        meant = f"dp.ZCDP({numbers['rho']})"
    else:
        return ""
    return f"write it as {taker}={meant}"


def _as_words(others: Sequence[str], known: Sequence[str]) -> str:
    """What another library's words are called here."""
    words = {other: own for own, said in _WORDS.items() if own in known for other in said}
    meant = list(dict.fromkeys(f"{words[other]}=" for other in others if other in words))
    if meant:
        return f"{'it is' if len(meant) == 1 else 'they are'} called {', '.join(meant)} here"
    return next((_SENTENCES[other] for other in others if other in _SENTENCES), "")


def _as_near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.7)
    if near:
        return f"did you mean {near[0]}=?"
    return f"it takes {', '.join(known)}" if known else "it takes no parameters"
