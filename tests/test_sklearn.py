"""discreet.sklearn: private regressions as scikit-learn estimators."""

from __future__ import annotations

import contextlib
import itertools
import warnings
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import discreet as dp
from discreet.sklearn import (
    PrivacyWarning,
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMLPClassifier,
    PrivateStandardScaler,
    check_pipeline,
    make_private_pipeline,
    private_cross_validate,
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
    PrivateMLPClassifier(
        hidden_layer_sizes=(4,),
        max_iter=20,
        delta=1e-6,
        **(COMMON | {"budget": dp.ApproxDP(900, 1e-2)}),
    ),
    PrivateStandardScaler(dp.GDP(20), neighbors=dp.Replace(), bounds=(-10, 10)),
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
    "check_transformer_data_not_an_array": SECRET_NOISE,
    "check_transformer_general": SECRET_NOISE,
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
def test_the_estimator_checks_that_make_sense_pass(estimator, monkeypatch):
    fits = itertools.count()
    monkeypatch.setattr(datasets, "secure_source", lambda: SeededSource(f"fit {next(fits)}"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in found if one["status"] != "passed"}
    assert failed <= set(LEFT_OUT), failed - set(LEFT_OUT)
    assert sum(one["status"] == "passed" for one in found) >= 35


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_noise_is_the_only_reason_for_the_checks_left_out_by_noise(estimator, monkeypatch):
    """With the same noise in every fit (no privacy), the checks that compare two fits pass."""
    monkeypatch.setattr(datasets, "secure_source", lambda: SeededSource("the same"))
    passed = 0
    for one, check in estimator_checks_generator(estimator):
        if LEFT_OUT.get(check.func.__name__) == SECRET_NOISE:
            # a few of them are not for every kind of estimator
            with warnings.catch_warnings(), contextlib.suppress(SkipTest):
                warnings.simplefilter("ignore")
                check(one)
                passed += 1
    assert passed


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


# ── pipelines, scaling, cross-validation ──────────────────────────────────────────────────────────


def line(**changes):
    """A regression of two columns within −3 … 3."""
    full = {"neighbors": dp.Replace(), "bounds": (-3, 3), "target_bounds": (-8, 10)}
    return PrivateLinearRegression(**({"spend": dp.GDP(5)} | full | changes))


def test_a_step_that_learns_without_privacy_is_warned_of():
    with pytest.warns(PrivacyWarning, match=r"standardscaler \(StandardScaler\)") as caught:
        pipeline = make_private_pipeline(StandardScaler(), line())
    assert "PrivateStandardScaler" in str(caught[0].message)
    X, y, _ = draws(200)
    with pytest.warns(PrivacyWarning) as again:
        pipeline.fit(X, y)
    with pytest.warns(PrivacyWarning) as other:
        pipeline.fit(np.zeros((200, 2)), np.full(200, None, dtype=object))
    assert str(again[0].message) == str(other[0].message) == str(caught[0].message)
    nested = make_pipeline(
        ColumnTransformer([("first", make_pipeline(PCA(1)), [0]), ("rest", "passthrough", [1])]),
        line(),
    )
    with pytest.warns(PrivacyWarning, match="PCA"):
        assert check_pipeline(nested) == ("columntransformer.first.pca",)


def test_a_pipeline_that_learns_privately_is_silent():
    X, y, _ = draws(4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = make_private_pipeline(
            FunctionTransformer(),
            PrivateStandardScaler(dp.GDP(5), neighbors=dp.Replace(), bounds=(-3, 3)),
            PolynomialFeatures(1, include_bias=False),
            line(bounds=(-4, 4)),
        )
        assert check_pipeline(pipeline) == ()
        predicted = pipeline.fit(X, y).predict(X)
    # the rows' own error has standard deviation 1, that of the response is 2.4
    assert np.std(y - predicted) < 1.1
    assert clone(pipeline).get_params().keys() == pipeline.get_params().keys()


@pytest.mark.few(2)
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
@pytest.mark.parametrize("spend", [dp.GDP(5), dp.PureDP(20), dp.ApproxDP(20, 1e-6)], ids=str)
def test_the_scaler_learns_from_one_release_a_column(tmp_path, neighbors, spend):
    X, _, _ = draws(4000)
    X = X * [1, 5] + [0, 20]
    frame = pandas.DataFrame(X, columns=["a", "odd name"])
    scaler = PrivateStandardScaler(
        spend,
        neighbors=neighbors,
        bounds={"a": (-3, 3), "odd name": (0, 40)},
        ledger=tmp_path / "account.ledger",
        budget=spend,
    ).set_output(transform="pandas")
    scaled = scaler.fit_transform(frame)
    assert list(scaled.columns) == list(scaler.get_feature_names_out()) == ["a", "odd name"]
    assert list(scaler.feature_names_in_) == ["a", "odd name"]
    # noise adds about 0.02 at these spends
    np.testing.assert_allclose(scaled.mean(), 0, atol=0.1)
    np.testing.assert_allclose(scaled.std(), 1, atol=0.1)
    np.testing.assert_allclose(scaler.inverse_transform(scaled), X, atol=1e-9)
    np.testing.assert_allclose(scaler.scaled_bounds_[0], ([-3, 0] - scaler.mean_) / scaler.scale_)
    account = dp.Ledger.open(None, path=tmp_path / "account.ledger")
    assert sum(entry.kind == "debit" for entry in account.entries()) == 2
    with pytest.raises(dp.BudgetExceeded):
        scaler.fit(frame)


def test_the_scaler_has_an_answer_for_every_table():
    for cells in ([[None, "text"]], [[1, float("nan")], [float("inf"), {}]], [[1, 1]] * 30):
        for spend in (dp.GDP(0.01), dp.GDP(50)):
            scaler = PrivateStandardScaler(spend, neighbors=dp.AddRemove(), bounds=(-3, 3))
            scaled = scaler.fit(cells).transform(cells)
            assert scaled.shape == (len(cells), 2)
            assert ((scaler.scale_ >= 6e-3) & (scaler.scale_ <= 3)).all()
            assert (np.abs(scaler.mean_) <= 3).all()


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_cross_validation_costs_its_spend_and_no_more(neighbors):
    X, y, _ = draws(1500)
    found = private_cross_validate(line(neighbors=neighbors), X, y, spend=dp.GDP(30), cv=3)
    assert found.test_score.shape == (3,)
    # 1 − 1/Var y is 0.83
    assert found.mean == pytest.approx(0.83, abs=0.15)
    account = found.ledger
    assert account.budget == dp.GDP(30)
    assert account.verify().ok
    # three fits and three scores, of two releases each, and nothing left that buys another fold
    assert account.how_many(dp.GDP(30 / 6**0.5)) == 0
    assert [type(model).__name__ for model in found.estimators] == ["PrivateLinearRegression"] * 3
    assert clone(found.estimators[0]).spend == found.estimators[0].spend


def test_cross_validation_puts_each_row_in_one_test_part(monkeypatch):
    """The parts are those of the assignment: all rows, each once."""
    X, _, b = draws(60)
    X[:, 0] = np.arange(60) / 20 - 1.5
    seen = []
    model = PrivateLogisticRegression(neighbors=dp.Replace(), bounds=(-3, 3))
    monkeypatch.setattr(PrivateLogisticRegression, "fit", lambda self, X, y: self)
    monkeypatch.setattr(
        PrivateLogisticRegression, "score", lambda self, X, y: seen.append(X[:, 0]) or 0.5
    )
    private_cross_validate(model, X, b, spend=dp.ApproxDP(1, 1e-6), cv=4)
    assert [len(part) for part in seen] == [15] * 4
    assert sorted(np.concatenate(seen)) == sorted(X[:, 0])
    assert any((np.diff(part) < 0).any() or len(set(np.diff(part))) > 1 for part in seen)


def test_wrong_cross_validations_are_refused():
    X, y, _ = draws(50)
    for options, error in (
        ({"spend": 1}, dp.InvalidParameter),
        ({"spend": dp.GDP(1), "cv": 1}, dp.InvalidParameter),
        ({"spend": dp.GDP(1), "cv": True}, dp.InvalidParameter),
        ({"spend": dp.GDP(1), "score_share": 1.0}, dp.InvalidParameter),
    ):
        with pytest.raises(error):
            private_cross_validate(line(), X, y, **options)
    with pytest.raises(dp.InvalidParameter, match="StandardScaler"):
        private_cross_validate(StandardScaler(), X, y, spend=dp.GDP(1))
    with pytest.raises(dp.NeighborsMissing):
        private_cross_validate(line(neighbors="replace"), X, y, spend=dp.GDP(1))


@pytest.mark.slow
def test_a_pipeline_of_sklearns_own_warns_when_a_private_step_fits():
    X, y, _ = draws(200)
    for pipeline in (
        make_pipeline(StandardScaler(), line()),
        make_pipeline(make_pipeline(FunctionTransformer(), StandardScaler()), line()),
        make_pipeline(FunctionTransformer(), make_pipeline(StandardScaler(), line())),
    ):
        with pytest.warns(PrivacyWarning, match="StandardScaler") as caught:
            pipeline.fit(X, y)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(FunctionTransformer(), line()).fit(X, y)
        line().fit(X, y)


def test_four_bounds_of_two_columns_that_can_be_read_in_two_ways_are_not_guessed():
    X, y, _ = draws(200)
    for bounds in ([(-3, 4), (-2, 5)], ((-3, 4), (-2, 5)), np.array([[-3, 4], [-2, 5]])):
        with pytest.raises(dp.InvalidParameter, match="neither is guessed"):
            line(bounds=bounds).fit(X, y)
    pairs = line(bounds=[(-3, 3), (-4, 4)]).fit(X, y).result_
    arrays = line(bounds=([-3, -4], [3, 4])).fit(X, y).result_
    assert pairs.releases[0].query == arrays.releases[0].query
    three = np.column_stack([X, X[:, 0]])
    assert line(bounds=[(-3, 3), (-4, 4), (-3, 3)]).fit(three, y).coef_.shape == (3,)


def test_the_result_has_the_names_of_the_columns_where_a_formula_can_hold_them():
    X, y, _ = draws(200)
    named = line().fit(pandas.DataFrame(X, columns=["age", "hours"]), y)
    assert named.result_.names == ("intercept", "age", "hours")
    odd = line().fit(pandas.DataFrame(X, columns=["odd name", "target"]), y)
    assert odd.result_.names == ("intercept", "x0", "x1")


# ── networks ──────────────────────────────────────────────────────────────────────────────────────


def network(**changes):
    options = {
        "spend": dp.ApproxDP(200, 1e-4),
        "neighbors": dp.Replace(),
        "bounds": (-3, 3),
        "hidden_layer_sizes": (8,),
        "max_iter": 200,
        "batch_size": 400,
        "score_spend": dp.GDP(20),
    }
    return PrivateMLPClassifier(**(options | changes))


@pytest.mark.slow
def test_a_network_classifies_predicts_and_scores():
    X, _, _ = draws(3000)
    ring = np.where((X**2).sum(axis=1) > 2, "out", "in")
    model = network(classes=("in", "out")).fit(X, ring)
    right = np.mean(model.predict(X) == ring)
    assert right > 0.85
    assert model.score(X, ring) == pytest.approx(right, abs=0.01)
    chances = model.predict_proba(X)
    assert chances.shape == (3000, 2)
    assert set(model.predict(X)) <= {"in", "out"}
    assert len(model.score_results_[0].confidence_interval()[0]) == 2
    assert clone(model).get_params()["hidden_layer_sizes"] == (8,)
    frame = pandas.DataFrame(X, columns=["a", "b"])
    assert (network(classes=("in", "out")).fit(frame, ring).predict(frame) == ring).mean() > 0.8


@pytest.mark.slow
def test_a_network_of_several_classes_and_of_a_session():
    X, _, _ = draws(3000)
    thirds = np.digitize(X[:, 0], [-0.7, 0.7]) * 10
    model = network(classes=(0, 10, 20)).fit(X, thirds)
    assert np.mean(model.predict(X) == thirds) > 0.85
    assert model.predict_proba(X).shape == (3000, 3)
    assert model.__sklearn_tags__().classifier_tags.multi_class
    schema = {"u": dp.Real(-3, 3), "k": dp.Category(["lo", "mid", "hi"])}
    columns = {"u": X[:, 0], "k": np.array(["lo", "mid", "hi"])[thirds // 10]}
    session = dp.from_arrays(columns, schema=schema, neighbors=dp.Replace()).open(
        budget=dp.ApproxDP(300, 1e-3)
    )
    fitted = network().fit(session, "k ~ u")
    assert np.mean(fitted.predict(columns) == columns["k"]) > 0.85
    with pytest.raises(dp.InvalidParameter, match="session"):
        fitted.score(X, thirds)


def test_a_network_refuses_what_is_not_declared_or_not_paid_for():
    X, _, b = draws(60)
    with pytest.raises(dp.InvalidParameter, match="labels"):
        network(classes=(1, 1)).fit(X, b)
    with pytest.raises(dp.InvalidParameter, match="hidden"):
        network(hidden_layer_sizes=()).fit(X, b)
    model = network(score_spend=None, max_iter=5, batch_size=20).fit(X, b)
    with pytest.raises(dp.InvalidParameter, match="score_spend"):
        model.score(X, b)
    with pytest.raises(NotFittedError):
        network().predict(X)


def test_networks_are_cross_validated_from_one_spend():
    X, _, b = draws(1500)
    model = network(classes=(False, True), max_iter=60, delta=1e-6)
    scores = private_cross_validate(model, X, b, spend=dp.ApproxDP(60, 1e-3), cv=2)
    assert scores.test_score.shape == (2,)
    assert (scores.test_score > 0.5).all()
    debits = [entry for entry in scores.ledger.entries() if entry.kind == "debit"]
    assert len(debits) == 4
