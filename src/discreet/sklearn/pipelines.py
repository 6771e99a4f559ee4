"""Pipelines in which every step that learns from data does so privately, or is named in a warning.

A private fit protects the rows that reach it. A step before it that learnt from all rows (a mean,
a component, a list of levels) has put what it learnt into each of them, at no price and with no
noise.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from discreet.sklearn.base import PrivateEstimator

# learn the number of columns and nothing else
LEARN_SHAPES = ("PolynomialFeatures",)
_HINTS = {"StandardScaler": "PrivateStandardScaler"}


class PrivacyWarning(UserWarning):
    """A step of a pipeline learns from the data without privacy."""


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """scikit-learn's Pipeline, checked by `check_pipeline` before every fit."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:  # noqa: N803
        check_pipeline(self)
        return super().fit(X, y, **params)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:  # noqa: N803
        check_pipeline(self)
        return super().fit_transform(X, y, **params)

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:  # noqa: N803
        check_pipeline(self)
        return super().fit_predict(X, y, **params)


def make_private_pipeline(*steps: Any) -> PrivatePipeline:
    """A `PrivatePipeline` of these estimators, named by their classes; warns at once where one of
    them learns from the data without privacy.
    """
    names = [type(step).__name__.lower() for step in steps]
    numbered = [
        name if names.count(name) == 1 else f"{name}-{names[:place].count(name) + 1}"
        for place, name in enumerate(names)
    ]
    pipeline = PrivatePipeline(list(zip(numbered, steps, strict=True)))
    check_pipeline(pipeline)
    return pipeline


def check_pipeline(pipeline: Any) -> tuple[str, ...]:
    """The steps that learn from the data without privacy, by name; warns of them where there are
    any. Only classes and parameters are looked at, so the text is the same for all data.
    """
    found = list(_learning("", pipeline))
    if found:
        named = ", ".join(f"{path} ({kind})" for path, kind in found)
        private = [_HINTS[kind] for _, kind in found if kind in _HINTS]
        warnings.warn(
            f"learns from the data without privacy: {named}. What such a step learns is in every "
            "row that it hands on, and the guarantee of a private fit does not cover it. Use "
            + (f"{', '.join(dict.fromkeys(private))} or " if private else "")
            + "a FunctionTransformer with public constants instead.",
            PrivacyWarning,
            stacklevel=3,
        )
    return tuple(path for path, _ in found)


def _learning(path: str, step: Any) -> Iterator[tuple[str, str]]:
    """(path, class) of what learns without privacy, through pipelines, unions and searches."""
    inner = _inner_steps(step)
    if inner:
        for name, part in inner:
            yield from _learning(f"{path}.{name}" if path else name, part)
    elif hasattr(step, "fit") and not isinstance(step, PrivateEstimator):
        kind = type(step).__name__
        if kind not in LEARN_SHAPES and get_tags(step).requires_fit:
            yield path or kind, kind


def _inner_steps(step: Any) -> list[tuple[str, Any]]:
    """The named estimators inside a composite one; none for a plain one."""
    for field in ("steps", "transformer_list", "transformers", "estimators"):
        held = getattr(step, field, None)
        if isinstance(held, list):
            return [(str(one[0]), one[1]) for one in held]
    held = getattr(step, "estimator", None) or getattr(step, "regressor", None)
    return [("estimator", held)] if hasattr(held, "fit") else []
