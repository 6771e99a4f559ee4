"""Data, schemas and models that the tests of regressions share."""

from __future__ import annotations

import numpy as np

import discreet as dp
from discreet.encoding import Encoding
from discreet.schema import Schema
from discreet.specs.estimating.components import (
    RESPONSE_BITS,
    LevelComponent,
    ModelColumn,
    NumberComponent,
    Response,
)
from discreet.specs.estimating.model import Model
from discreet.specs.queries.plans import Factor
from discreet.testing import seeded_session

SCHEMA = {
    "x": dp.Real(-4, 4),
    "z": dp.Real(0, 10),
    "d": dp.Category(["a", "b", "c"]),
    "y": dp.Real(-20, 20),
    "b": dp.Boolean(),
    "k": dp.Integer(0, 20),
}


def number(schema, name):
    column = Schema(schema)[name]
    return NumberComponent(
        Factor(name, column.encoding(16)), low=float(column.low), high=float(column.high)
    )


def columns_of(schema, terms):
    """Model columns from names: "1", "x", "d[b]", "x:z", "x:d[b]"."""
    columns = []
    for term in terms:
        components = []
        for part in term.split(":") if term != "1" else ():
            name, _, level = part.partition("[")
            levels = getattr(schema[name], "levels", (False, True))
            components.append(
                LevelComponent(name, tuple(int(str(one) == level[:-1]) for one in levels))
                if level
                else number(schema, name)
            )
        columns.append(ModelColumn("intercept" if term == "1" else term, tuple(components)))
    return tuple(columns)


def response_of(schema, family):
    if family == "logistic":
        return Response(level=("b", 1))
    if family == "poisson":
        return Response(Factor("k", Schema(schema)["k"].encoding()))
    low, high = float(schema["y"].low), float(schema["y"].high)
    return Response(
        Factor(
            "y",
            Encoding(
                (low + high) / 2,
                2**RESPONSE_BITS / ((high - low) / 2),
                -(2**RESPONSE_BITS),
                2**RESPONSE_BITS,
            ),
        )
    )


def model_of(family="robust", terms=("1", "x", "z", "d[b]"), schema=SCHEMA, keys=()):
    return Model(columns_of(schema, terms), response_of(schema, family), keys)


def sample(n, seed):
    """Rows of a model that every family fits: y, b and k depend on x, z and d."""
    rng = np.random.default_rng(seed)
    x, z, d = rng.normal(0, 1, n), rng.uniform(0, 10, n), rng.choice(["a", "b", "c"], n)
    predictor = 0.5 + x - 0.1 * (z - 5) + 0.5 * (d == "b")
    return {
        "x": x,
        "z": z,
        "d": d,
        "y": 2 * predictor + rng.normal(0, 2, n),
        "b": rng.random(n) < 1 / (1 + np.exp(-predictor)),
        "k": rng.poisson(np.exp(0.5 * predictor)),
        "id": np.arange(n) // 2,
    }


def session_of(data, seed, *, mu=1.0, schema=SCHEMA, neighbors=None, budget=None):
    return seeded_session(
        dp.from_arrays(data, schema=schema, neighbors=neighbors or dp.Replace()),
        budget or dp.GDP(mu),
        seed,
    )


def require_answers(fit):
    """Finite coefficients and, around them, finite intervals; or, of a descent that did not
    converge, none at all, and the summary says so.
    """
    assert np.isfinite(fit.params).all()
    low, high = fit.confidence_interval().T
    assert str(fit.summary())
    if fit.fitted.unbounded:
        assert not fit.converged
        assert "NOT CONVERGED" in str(fit.summary())
        assert (low == -np.inf).all()
        assert (high == np.inf).all()
        assert np.isinf(fit.std_errors).all()
        assert (fit.p_values == 1).all()
    else:
        assert np.isfinite([*low, *high, *fit.std_errors, *fit.p_values]).all()
        assert (fit.std_errors > 0).all()
        assert (high > low).all()
