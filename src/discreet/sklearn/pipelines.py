"""Pipelines in which every step that learns from data does so privately, or is named in a warning
before anything is fitted.

A pipeline of scikit-learn's own is checked too, where a private estimator in it fits
(`learning.check_surroundings`); this one is checked when it is made.
"""

from __future__ import annotations

from typing import Any

from discreet.sklearn.base import CheckedPipeline
from discreet.sklearn.learning import check_pipeline


class PrivatePipeline(CheckedPipeline):
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
