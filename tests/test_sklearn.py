"""discreet.sklearn: private regressions as scikit-learn estimators."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import discreet as dp
from discreet.sklearn import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
)
from discreet.testing import SeededSource
from discreet.trusted import datasets

COMMON = {
    "spend": dp.GDP(20),
    "neighbors": dp.Replace(),
    "bounds": (-10, 10),
    "score_spend": dp.GDP(5),
}
# the third differs from the first in the function it calls
ESTIMATORS = [
    PrivateLinearRegression(target_bounds=(-50, 50), **COMMON),
    PrivateLogisticRegression(**COMMON),
]

SECRET_NOISE = "two fits of the same data differ by their noise, which has no seed"
TOTAL = "a cell that is no ordinary number has a declared value; an error would tell of it"
DECLARED = (
    "classes are declared, never read from the labels; a label that is neither counts as the first"
)
LEFT_OUT = {
    "check_fit_idempotent": SECRET_NOISE,
    "check_regressors_int": SECRET_NOISE,
    "check_regressor_data_not_an_array": SECRET_NOISE,
    "check_classifier_data_not_an_array": SECRET_NOISE,
    "check_supervised_y_2d": SECRET_NOISE,
    "check_pipeline_consistency": SECRET_NOISE,
    "check_dtype_object": TOTAL,
    "check_supervised_y_no_nan": TOTAL,
    "check_classifiers_classes": DECLARED,
    "check_classifiers_regression_target": DECLARED,
    "check_classifier_not_supporting_multiclass": DECLARED,
    "check_classifiers_one_label": DECLARED,
    "check_array_api_input": "needs another library of arrays",
}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_the_estimator_checks_that_make_sense_pass(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in found if one["status"] != "passed"}
    assert failed <= set(LEFT_OUT), failed - set(LEFT_OUT)
    assert sum(one["status"] == "passed" for one in found) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_noise_is_the_only_reason_for_the_checks_left_out_by_noise(estimator, monkeypatch):
    """With the same noise in every fit (no privacy), the checks that compare two fits pass."""
    monkeypatch.setattr(datasets, "secure_source", lambda: SeededSource("the same"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in found if one["status"] == "failed"}
    assert not failed & {name for name, why in LEFT_OUT.items() if why == SECRET_NOISE}


def test_the_documented_list_is_this_one():
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "regression.md").read_text()
    assert all(f"`{name.removeprefix('check_')}`" in page for name in LEFT_OUT)


def draws(n=4000, seed=1):
    rng = np.random.default_rng(seed)
    X = np.clip(rng.normal(size=(n, 2)), -3, 3)
    return X, 1 + X @ [2.0, -1.0] + rng.normal(size=n), rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))


@pytest.mark.parametrize("options", [{}, {"method": "moments"}], ids=str)
def test_linear_regression_predicts_and_scores(options):
    X, y, _ = draws()
    model = PrivateLinearRegression(
        dp.GDP(5),
        neighbors=dp.Replace(),
        bounds=([-3, -4], [3, 4]),
        target_bounds=(-8, 10),
        score_spend=dp.GDP(5),
        **options,
    ).fit(X, y)
    assert np.abs(model.coef_ - [2, -1]).max() < 0.2
    assert model.intercept_ == pytest.approx(1, abs=0.2)
    np.testing.assert_allclose(model.predict(X), model.intercept_ + X @ model.coef_)
    residual = 1 - ((y - model.predict(X)) ** 2).mean() / y.var()
    assert model.score(X, y) == pytest.approx(residual, abs=0.05)
    assert model.result_.confidence_interval().shape == (3, 2)
    assert (
        PrivateLinearRegression(
            dp.GDP(5),
            neighbors=dp.AddRemove(),
            bounds=(-3, 3),
            target_bounds=(-8, 10),
            fit_intercept=False,
        )
        .fit(X, y)
        .intercept_
        == 0.0
    )


def test_logistic_regression_has_declared_classes():
    X, _, b = draws()
    labels = np.where(b, "yes", "no")
    model = PrivateLogisticRegression(
        dp.GDP(5),
        neighbors=dp.Replace(),
        bounds=(-3, 3),
        classes=("no", "yes"),
        score_spend=dp.PureDP(2),
    ).fit(X, labels)
    assert list(model.classes_) == ["no", "yes"]
    assert set(model.predict(X)) <= {"no", "yes"}
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.score(X, labels) == pytest.approx((model.predict(X) == labels).mean(), abs=0.05)
    odd = PrivateLogisticRegression(dp.GDP(5), neighbors=dp.Replace(), bounds=(-3, 3)).fit(
        X, np.full(len(X), None, dtype=object)
    )
    assert odd.predict_proba(X)[:, 1].max() < 0.5


def test_scores_are_refused_unless_they_are_paid_for():
    X, y, b = draws(200)
    for model, target in (
        (
            PrivateHuberRegressor(
                dp.GDP(1), neighbors=dp.Replace(), bounds=(-3, 3), target_bounds=(-8, 10)
            ),
            y,
        ),
        (PrivateLogisticRegression(dp.GDP(1), neighbors=dp.Replace(), bounds=(-3, 3)), b),
    ):
        with pytest.raises(dp.InvalidParameter, match="score_spend"):
            model.fit(X, target).score(X, target)


def test_a_session_can_be_fitted_by_a_formula():
    X, y, _ = draws()
    session = dp.from_arrays(
        {"a": X[:, 0], "c": X[:, 1], "y": y},
        schema={"a": dp.Real(-3, 3), "c": dp.Real(-3, 3), "y": dp.Real(-8, 10)},
        neighbors=dp.Replace(),
    ).open(budget=dp.GDP(6))
    model = PrivateHuberRegressor(dp.GDP(5)).fit(session, "y ~ a + c")
    assert model.n_features_in_ == 2
    assert model.predict([[0.0, 0.0]])[0] == model.intercept_
    with pytest.raises(dp.BudgetExceeded):
        model.fit(session, "y ~ a + c")


@pytest.mark.slow
def test_one_ledger_counts_every_fit(tmp_path):
    """Cross-validation spends once a fold, and stops where the budget ends."""
    X, y, _ = draws(600)
    model = PrivateLinearRegression(
        dp.GDP(1),
        neighbors=dp.Replace(),
        bounds=(-3, 3),
        target_bounds=(-8, 10),
        budget=dp.GDP(2.01),
        ledger=tmp_path / "account.ledger",
    )
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert copy.set_params(spend=dp.GDP(0.5)).spend == dp.GDP(0.5)
    assert cross_val_predict(model, X, y, cv=4).shape == (600,)
    with pytest.raises(dp.BudgetExceeded):
        clone(model).fit(X, y)
    piped = make_pipeline(
        FunctionTransformer(),
        PrivateHuberRegressor(
            dp.GDP(1), neighbors=dp.Replace(), bounds=(-3, 3), target_bounds=(-8, 10)
        ),
    )
    assert piped.fit(X, y).predict(X).shape == (600,)


def test_names_of_a_frame_choose_bounds():
    X, y, _ = draws(500)
    frame = pandas.DataFrame(X, columns=["odd name", "~"])
    model = PrivateLinearRegression(
        dp.GDP(2),
        neighbors=dp.Replace(),
        bounds={"odd name": (-3, 3), "~": (-4, 4)},
        target_bounds=(-8, 10),
    ).fit(frame, y)
    assert list(model.feature_names_in_) == ["odd name", "~"]
    assert model.predict(frame).shape == (500,)


def test_the_outcome_does_not_depend_on_cells():
    """NaN, infinities, text and None give a fit as any other data would."""
    X, y, _ = draws(50)
    spoilt = X.astype(object)
    spoilt[0], spoilt[1], spoilt[2] = ["text", None], [float("nan"), float("inf")], [{}, 10**400]
    target = y.astype(object)
    target[0] = "text"
    model = PrivateLinearRegression(
        dp.GDP(1),
        neighbors=dp.Replace(),
        bounds=(-3, 3),
        target_bounds=(-8, 10),
        score_spend=dp.GDP(1),
    ).fit(spoilt, target)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.score(spoilt, target))


def test_what_is_not_declared_is_refused():
    X, y, b = draws(50)
    full = {
        "spend": dp.GDP(1),
        "neighbors": dp.Replace(),
        "bounds": (-3, 3),
        "target_bounds": (-8, 10),
    }
    for change, error in (
        ({"spend": None}, dp.InvalidParameter),
        ({"neighbors": None}, dp.NeighborsMissing),
        ({"bounds": None}, dp.InvalidParameter),
        ({"bounds": (3, -3)}, dp.InvalidParameter),
        ({"bounds": ([1, 2, 3], 4)}, dp.InvalidParameter),
        ({"target_bounds": None}, dp.InvalidParameter),
        ({"neighbors": dp.Replace(unit="id", max_rows=2)}, dp.InvalidParameter),
    ):
        with pytest.raises(error):
            PrivateLinearRegression(**(full | change)).fit(X, y)
    with pytest.raises(dp.InvalidParameter, match="classes"):
        PrivateLogisticRegression(
            dp.GDP(1), neighbors=dp.Replace(), bounds=(-3, 3), classes=(1, 1)
        ).fit(X, b)
    with pytest.raises(NotFittedError):
        PrivateLinearRegression(**full).predict(X)
    with pytest.raises(dp.InvalidParameter, match="sample_weight"):
        PrivateLinearRegression(**full, score_spend=dp.GDP(1)).fit(X, y).score(
            X, y, sample_weight=np.ones(50)
        )
