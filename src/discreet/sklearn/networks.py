"""dp.network as a scikit-learn classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

import discreet as dp
from discreet.asking.sessions import is_session
from discreet.errors import InvalidParameter
from discreet.sklearn.base import Columns, PrivateEstimator
from discreet.sklearn.cells import equal_to, numbers_of
from discreet.sklearn.declared import TARGET, formula_names
from discreet.sklearn.tables import Table, vector


class PrivateMLPClassifier(ClassifierMixin, PrivateEstimator):  # type: ignore[misc]
    """dp.network as a scikit-learn classifier of declared classes; a label that is none of them
    counts as the first.

    `delta` is δ₀, which a spend of ε and δ brings along. `score` is dp.accuracy of (X, y).
    """

    def __init__(
        self,
        spend: Any = None,
        *,
        neighbors: Any = None,
        bounds: Any = None,
        classes: Any = (0, 1),
        hidden_layer_sizes: Any = (32,),
        activation: str = "relu",
        max_iter: int = 1000,
        batch_size: int | None = None,
        learning_rate: float = 1.0,
        clip: float = 1.0,
        delta: float | None = None,
        budget: Any = None,
        ledger: str | Path | None = None,
        score_spend: Any = None,
    ) -> None:
        self.spend, self.neighbors, self.bounds, self.classes = spend, neighbors, bounds, classes
        self.hidden_layer_sizes, self.activation = hidden_layer_sizes, activation
        self.max_iter, self.batch_size, self.learning_rate = max_iter, batch_size, learning_rate
        self.clip, self.delta = clip, delta
        self.budget, self.ledger, self.score_spend = budget, ledger, score_spend

    def fit(self, X: Any, y: Any) -> PrivateMLPClassifier:  # noqa: N803
        """Fits on arrays (X, y), or on an open session X with a formula y; debits `spend`."""
        if is_session(X):
            self.result_ = self._network(X, y)
            self.classes_ = np.asarray(self.result_.classes)
            self.from_session_ = True
            return self
        self.classes_, self.from_session_ = self._classes(), False
        columns, schema = self._declared(self._table(X, reset=True), y)
        formula = f"{TARGET} ~ " + " + ".join(name for name in columns if name != TARGET)
        self.result_ = self._network(self._opened(columns, schema, self.spend), formula)
        return self

    def _network(self, session: dp.Session, formula: str) -> Any:
        solver = dp.SGD(
            steps=self.max_iter,
            batch=self.batch_size,
            step_size=self.learning_rate,
            delta=self.delta,
        )
        self.n_iter_ = self.max_iter
        return dp.network(
            session,
            formula,
            hidden=self.hidden_layer_sizes,
            spend=_within(self.spend),
            solver=solver,
            activation=self.activation,
            clip=self.clip,
        )

    def _declared(self, table: Table, y: Any) -> tuple[Columns, Columns]:
        """Columns and their declaration, with the place of each row's class."""
        columns, schema = self._features(table)
        target, labels = vector(y, table.rows), self._classes()
        if len(labels) == 2:
            return columns | {TARGET: equal_to(target, labels[1])}, schema | {
                TARGET: dp.Boolean(missing=False)
            }
        places = np.zeros(table.rows, dtype=np.int64)
        for place in range(1, len(labels)):
            places[equal_to(target, labels[place])] = place
        declared = dp.Category(tuple(range(len(labels))), missing=0)
        return columns | {TARGET: places}, schema | {TARGET: declared}

    def _classes(self) -> np.ndarray[Any, Any]:
        labels = np.asarray(self.classes)
        if labels.ndim != 1 or len(labels) < 2 or len(set(labels.tolist())) != len(labels):
            raise InvalidParameter(
                "classes=",
                "not two or more different labels",
                "classes are declared, never read from the data",
                "pass for example classes=(0, 1)",
            )
        return labels

    def predict(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """The class of every row; X is a frame with the formula's columns after a fit on a
        session.
        """
        check_is_fitted(self, "result_")
        found = self.result_.predict(self._frame(X))
        return found if self.from_session_ else np.asarray(self.classes_[found.astype(np.int64)])

    def predict_proba(self, X: Any) -> np.ndarray[Any, Any]:  # noqa: N803
        """Probabilities of all classes, in the order of `classes_`."""
        check_is_fitted(self, "result_")
        return np.asarray(self.result_.predict_proba(self._frame(X)))

    def _frame(self, X: Any) -> Any:  # noqa: N803
        """X by the names of the fit's columns."""
        if self.from_session_:
            return X
        columns = self._table(X, reset=False).columns
        names = formula_names(len(columns), getattr(self, "feature_names_in_", None))
        return {name: numbers_of(column) for name, column in zip(names, columns, strict=True)}

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """A private accuracy on (X, y), released at `score_spend`; refused unless that was
        given.
        """
        spend = self._scoring(sample_weight)
        check_is_fitted(self, "result_")
        if self.from_session_:
            raise InvalidParameter(
                "score",
                "the fit was of a session",
                "its formula names columns that an array does not have",
                "ask dp.accuracy(holdout, model.result_, spend=…)",
            )
        columns, schema = self._declared(self._table(X, reset=False), y)
        session = self._opened(columns, schema, spend)
        self.score_results_ = (dp.accuracy(session, self.result_, spend=spend),)
        return float(min(max(self.score_results_[0].estimate, 0.0), 1.0))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = len(np.shape(self.classes)) == 1 and (
            np.shape(self.classes)[0] > 2
        )
        tags.classifier_tags.poor_score = True
        return tags


def _within(spend: Any) -> Any:
    """A spend of ε and δ that fits a budget of the same ε and δ, whose parts ledgers round down."""
    if isinstance(spend, dp.ApproxDP):
        return dp.ApproxDP(spend.epsilon * (1 - 1e-9), spend.delta)
    return spend
