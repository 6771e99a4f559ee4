"""The estimators: ordinary, Huber and logistic regressions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.seclusion import Secluded
from discreet.sklearn.base import filled
from discreet.sklearn.cells import bounded, clamped, equal_to
from discreet.sklearn.declared import TARGET, ends_of, half_of
from discreet.sklearn.regression import PrivateRegression
from discreet.sklearn.tables import vector


class _PrivateRegressor(RegressorMixin, PrivateRegression):  # type: ignore[misc]
    """Regressions of a number with declared bounds."""

    target_bounds: Any

    def _target(self, target: Any) -> tuple[Any, Any]:
        return target, filled(*ends_of(self.target_bounds, "target_bounds=", 1, None)[0])

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The mean response for the rows of X."""
        return self._predictor(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private R² of predictions on (X, y): half of `score_spend` for the mean squared error,
        half for the variance of y.

        Refused unless `score_spend` was given.
        Predictions are clipped to the target's bounds, so that errors are bounded.
        """
        spend = self._scoring(sample_weight)
        low, high = ends_of(self.target_bounds, "target_bounds=", 1, None)[0]
        check_is_fitted(self, "coef_")
        table = self._table(X, reset=False)
        target = vector(y, table.rows)
        columns, schema = self._declared(table, target)
        with Secluded():
            predicted = np.clip(self._sum(bounded(table, schema)), low, high)
            errors = clamped(target, low, high) - predicted
            errors = np.square(np.clip(errors, low - high, high - low))
        session = self._opened(
            {"error": errors, TARGET: columns[TARGET]},
            {"error": dp.Real(0, (high - low) ** 2), TARGET: schema[TARGET]},
            spend,
        )
        half = half_of(spend)
        self.score_results_ = (
            dp.mean(session, "error", spend=half),
            dp.variance(session, TARGET, spend=half),
        )
        squares, spread = (result.estimate for result in self.score_results_)
        return 1 - max(squares, 0.0) / max(spread, 1e-300)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class PrivateLinearRegression(_PrivateRegressor):
    """dp.ols as a scikit-learn regressor; `method` is "clipped" or "moments", `base` as there (for
    formulas on an open session).
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        method: str = "clipped",
        base: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            target_bounds,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend, self.method, self.base = (
            budget,
            ledger,
            score_spend,
            method,
            base,
        )

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.ols(session, formula, spend=self.spend, method=self.method, base=self.base)


class PrivateHuberRegressor(_PrivateRegressor):
    """dp.robust as a scikit-learn regressor;
    `c` is Huber's constant (chosen by the noise index unless given).
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        target_bounds: Any = None,
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        c: float | None = None,
        base: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.target_bounds, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            target_bounds,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend, self.c, self.base = (
            budget,
            ledger,
            score_spend,
            c,
            base,
        )

    def _regression(self, session: dp.Session, formula: str) -> Any:
        return dp.robust(session, formula, spend=self.spend, c=self.c, base=self.base)


class PrivateLogisticRegression(ClassifierMixin, PrivateRegression):  # type: ignore[misc]
    """dp.logistic as a scikit-learn classifier of two declared classes;
    a label that is neither counts as the first.

    `method` and `penalty` are those of dp.logistic: "objective" and "output" take a pure spend too.
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        classes: Any = (0, 1),
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        base: Any = None,
        method: str = "clipped",
        penalty: float | None = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.classes, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            classes,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend, self.base = budget, ledger, score_spend, base
        self.method, self.penalty = method, penalty

    def _regression(self, session: dp.Session, formula: str) -> Any:
        self.classes_ = self._classes()
        return dp.logistic(
            session,
            formula,
            spend=self.spend,
            base=self.base,
            method=self.method,
            penalty=self.penalty,
        )

    def _classes(self) -> np.ndarray[Any, Any]:
        labels = np.asarray(self.classes)
        if labels.shape != (2,) or labels[0] == labels[1]:
            raise InvalidParameter(
                "classes=",
                "not two different labels",
                "classes are declared, never read from the data",
                "pass for example classes=(0, 1)",
            )
        return labels

    def _target(self, target: Any) -> tuple[Any, Any]:
        return equal_to(target, self._classes()[1]), dp.Boolean()

    def decision_function(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The log odds of the second class."""
        return self._predictor(X)

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """Probabilities of both classes."""
        second = 1 / (1 + np.exp(-np.clip(self._predictor(X), -700, 700)))
        return np.stack([1 - second, second], axis=1)

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The more probable class."""
        second = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[second])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private accuracy on (X, y), released at `score_spend`;
        refused unless that was given.
        """
        spend = self._scoring(sample_weight)
        check_is_fitted(self, "coef_")
        table = self._table(X, reset=False)
        columns, schema = self._declared(table, vector(y, table.rows))
        with Secluded():
            right = (self._sum(bounded(table, schema)) > 0) == columns[TARGET]
        session = self._opened({"right": right}, {"right": dp.Boolean()}, spend)
        self.score_results_ = (dp.proportion(session, "right", spend=spend),)
        return float(min(max(self.score_results_[0].estimate, 0.0), 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


class PrivateLinearSVC(PrivateLogisticRegression):
    """dp.erm with the Huberised hinge as a scikit-learn classifier of two declared classes: a
    linear support vector machine, without probabilities.
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        classes: Any = (0, 1),
        fit_intercept: bool = True,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
        method: str = "objective",
        penalty: float | None = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.classes, self.fit_intercept = (
            spend,
            neighbors,
            bounds,
            classes,
            fit_intercept,
        )
        self.budget, self.ledger, self.score_spend = budget, ledger, score_spend
        self.method, self.penalty = method, penalty

    def _regression(self, session: dp.Session, formula: str) -> Any:
        self.classes_ = self._classes()
        return dp.erm(
            session,
            formula,
            loss="huber-hinge",
            spend=self.spend,
            method=self.method,
            penalty=self.penalty,
        )

    @property
    def predict_proba(self) -> Any:
        """A margin has no probability."""
        raise AttributeError("PrivateLinearSVC has margins (decision_function), no probabilities")
