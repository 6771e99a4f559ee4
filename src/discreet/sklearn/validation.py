"""Cross-validation out of one account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.sklearn.declared import declared_width
from discreet.sklearn.networks import PrivateMLPClassifier
from discreet.sklearn.regression import PrivateRegression
from discreet.sklearn.tables import columns_of
from discreet.trusted.noise.assignment import balanced_parts, independent_parts
from discreet.trusted.noise.source import secure_source

MOST_FOLDS = 100


@dataclass(frozen=True, slots=True)
class PrivateScores:
    """Private scores of a model, one a fold, the models, and the account they were paid from."""

    test_score: np.ndarray[Any, np.dtype[np.float64]]
    estimators: tuple[Any, ...]
    ledger: dp.Ledger

    @property
    def mean(self) -> float:
        """The mean of the scores."""
        return float(self.test_score.mean())


def private_cross_validate(
    estimator: Any,
    X: Any,  # noqa: N803
    y: Any,
    *,
    spend: Any,
    cv: int = 5,
    score_share: float = 0.5,
) -> PrivateScores:
    """Fits a private regression on all folds but one and scores it on that one, `cv` times.

    The whole costs `spend`, whatever spends the estimator names; `score_share` of it is for the
    scores. Each row is in the test part of one fold.

    Theorem.  What is returned satisfies `spend` under the estimator's relation.
    Proof.    Which fold a row is in is drawn without looking at any row (noise/assignment.py), and
              for a row that is exchanged, added or taken away the others stay where they are in an
              equally probable draw. Given the draw, each training and each test part of neighbours
              are neighbours or equal; every fit and score is debited from one ledger whose budget
              is `spend`, which is a filter (docs/theory/ledger.md). No use is made of the test
              parts being disjoint.
    Checked.  tests/test_sklearn.py::test_cross_validation_costs_its_spend_and_no_more
    """
    if not isinstance(estimator, (PrivateRegression, PrivateMLPClassifier)):
        raise InvalidParameter(
            "estimator",
            f"a {type(estimator).__name__} is not one of the private estimators",
            "every fit and every score is paid from one account",
            "pass for example PrivateLinearRegression(neighbors=…, bounds=…, target_bounds=…)",
        )
    _require_options(cv, score_share)
    fit_spend, score_spend = _spends(spend, cv, score_share)
    fold_of = _folds(columns_of(X, declared_width(estimator.bounds))[1], cv, estimator.neighbors)
    account = dp.Ledger.open(spend)
    models, scores = [], []
    for fold in range(cv):
        train, test = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        model = clone(estimator).set_params(
            spend=fit_spend, score_spend=score_spend, ledger=account, budget=None
        )
        model.fit(_safe_indexing(X, train), _safe_indexing(y, train))
        scores.append(model.score(_safe_indexing(X, test), _safe_indexing(y, test)))
        models.append(model.set_params(ledger=None))  # a model can be copied, an account cannot
    return PrivateScores(np.array(scores), tuple(models), account)


def _require_options(cv: object, score_share: object) -> None:
    if type(cv) is not int or not 2 <= cv <= MOST_FOLDS:
        raise InvalidParameter(
            "cv=",
            f"not a whole number from 2 to {MOST_FOLDS}",
            "folds are drawn at random, so that no row's place tells anything",
            "pass the number of folds, for example cv=5",
        )
    if not isinstance(score_share, float) or not 0 < score_share < 1:
        raise InvalidParameter(
            "score_share=",
            "not a number between 0 and 1",
            "fits and scores are paid from one spend",
            "pass for example score_share=0.5",
        )


def _spends(spend: Any, cv: int, score_share: float) -> tuple[Any, Any]:
    """What one fit and one score may cost."""
    if not hasattr(spend, "split"):
        raise InvalidParameter(
            "spend=",
            f"a {type(spend).__name__} cannot be split",
            "a cross-validation is made of several releases",
            "spend dp.GDP(mu), dp.ZCDP(rho), dp.PureDP(epsilon) or dp.ApproxDP(epsilon, delta)",
        )
    weights = {
        f"{kind} {fold}": weight
        for kind, weight in (("fit", 1 - score_share), ("score", score_share))
        for fold in range(cv)
    }
    shares = spend.split(weights)
    return shares["fit 0"], shares["score 0"]


def _folds(rows: int, cv: int, neighbors: Any) -> np.ndarray[Any, Any]:
    """The fold of each row: of equal sizes where the number of rows is public, else each row's own
    draw.
    """
    assigned = balanced_parts if isinstance(neighbors, dp.Replace) else independent_parts
    return assigned(secure_source(), rows, cv)
