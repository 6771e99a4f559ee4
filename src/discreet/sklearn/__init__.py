"""Private regressions as scikit-learn estimators, with spending made explicit.

    model = PrivateLinearRegression(
        spend=dp.GDP(1), neighbors=dp.Replace(), bounds=(-4, 4), target_bounds=(0, 100)
    )
    model.fit(X, y)  # debits the spend
    model.fit(session, "y ~ x + z")  # or on an open session of declared data, out of its budget
    model.predict(X)
    model.coef_
    model.result_.summary()

Bounds, classes and the neighbour relation are parameters: nothing about them is read from data, and
a value outside its bounds counts as the nearest bound. Each `fit(X, y)` is a new release at the
full spend: cross-validation and grid searches spend once a fit. Give `ledger=` (a file) and
`budget=` to keep one account over all of them; without, every fit opens an account of its own in
memory. There is no random state: noise is secret. `score` reads data too, so it is refused until
`score_spend=` says what it may cost.

A row's cells are read for themselves, by the total rules of `discreet.trusted.values`, and its
predictor is added up column by column: what one row becomes cannot depend on another
(docs/theory/rows.md). An array or a frame has a public type a column. A list of rows has none:
every cell is read by its own type, rows that are shorter than the table have missing cells, and
cells beyond it are ignored. How many columns a list has is what `bounds` declares; where one pair
is given for all of them, it is the length that most rows have (of two such lengths the smaller),
so no single row decides it.

A step of a pipeline that learns from the data without privacy (StandardScaler, PCA, …) is not
covered by the guarantee of the fit after it. A private estimator that fits inside a pipeline warns
of it (in this thread: workers of a parallel search cannot see what they are part of);
`make_private_pipeline` and `check_pipeline` warn before anything is fitted.
`PrivateStandardScaler` learns from one release of moments a column.
`private_cross_validate` pays all fits and scores from one spend.
"""

from __future__ import annotations

from discreet.errors import MissingExtra

try:
    from sklearn.utils.validation import validate_data  # noqa: F401 (1.6 has it, and what is used)
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn", "discreet.sklearn") from None

from discreet.sklearn.estimators import (
    PrivateHuberRegressor,
    PrivateLinearRegression,
    PrivateLinearSVC,
    PrivateLogisticRegression,
)
from discreet.sklearn.learning import PrivacyWarning, check_pipeline
from discreet.sklearn.networks import PrivateMLPClassifier
from discreet.sklearn.pipelines import PrivatePipeline, make_private_pipeline
from discreet.sklearn.scaling import PrivateStandardScaler
from discreet.sklearn.validation import PrivateScores, private_cross_validate

__all__ = [
    "PrivacyWarning",
    "PrivateHuberRegressor",
    "PrivateLinearRegression",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateMLPClassifier",
    "PrivatePipeline",
    "PrivateScores",
    "PrivateStandardScaler",
    "check_pipeline",
    "make_private_pipeline",
    "private_cross_validate",
]
