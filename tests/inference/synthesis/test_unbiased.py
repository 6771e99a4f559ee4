"""Best unbiased tables against generalised least squares, and sums of their cells by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from discreet.inference.synthesis.model import Noisy
from discreet.inference.synthesis.unbiased import NoisyTables, merged

SIZES = (3, 2, 4)
SIGMAS = {(0, 1): 3.0, (1, 2): 5.0, (0,): 2.0, (0, 1, 2): 4.0}


def summed(joint, columns):
    return joint.sum(axis=tuple(j for j in range(3) if j not in columns))


def tables_of(joint, public, rng=None):
    def noise(columns, sigma):
        shape = [SIZES[j] for j in columns]
        return np.zeros(shape) if rng is None else rng.normal(0, sigma, shape)

    measured = {
        one: Noisy(summed(joint, one) + noise(one, sigma), sigma) for one, sigma in SIGMAS.items()
    }
    return NoisyTables(SIZES, measured, int(joint.sum()) if public else None)


def least_squares(public):
    """The covariance of the best linear estimate of all cells, by brute force."""
    rows, weights = [], []
    for columns, sigma in SIGMAS.items():
        for cell in itertools.product(*(range(SIZES[j]) for j in columns)):
            row = np.zeros(SIZES)
            at = tuple(cell[columns.index(j)] if j in columns else slice(None) for j in range(3))
            row[at] = 1
            rows.append(row.ravel())
            weights.append(sigma**-2)
    matrix = np.array(rows)
    covariance = np.linalg.inv((matrix * np.array(weights)[:, None]).T @ matrix)
    if public:  # given the total
        along = covariance.sum(axis=1)
        covariance = covariance - np.outer(along, along) / along.sum()
    return covariance


def lifted(functions, columns):
    """Functions of some columns as functions of all cells."""
    shape = [SIZES[j] if j in columns else 1 for j in range(3)]
    return np.array([np.broadcast_to(one.reshape(shape), SIZES).ravel() for one in functions])


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("columns", [(0, 1), (1, 2), (0, 1, 2), (2,), (0, 2)])
def test_no_linear_estimate_varies_less(columns, public):
    rng = np.random.default_rng(1)
    joint = rng.integers(0, 50, SIZES).astype(float)
    functions = rng.normal(size=(2, *(SIZES[j] for j in columns)))
    tables = tables_of(joint, public)
    values, covariance = tables.sums({columns: functions})
    truth = (functions * summed(joint, columns)).reshape(2, -1).sum(axis=1)
    np.testing.assert_allclose(values, truth)  # without noise: exact
    lift = lifted(functions, columns)
    np.testing.assert_allclose(
        covariance, lift @ least_squares(public) @ lift.T, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(tables.table(columns), summed(joint, columns), atol=1e-9)


@pytest.mark.parametrize("public", [True, False])
def test_sums_over_several_tables_share_their_noise(public):
    rng = np.random.default_rng(2)
    joint = rng.integers(0, 50, SIZES).astype(float)
    functions = {
        one: rng.normal(size=(2, *(SIZES[j] for j in one))) for one in ((0, 1), (1, 2), (0,))
    }
    _, covariance = tables_of(joint, public).sums(functions)
    lift = sum(lifted(function, one) for one, function in functions.items())
    np.testing.assert_allclose(
        covariance, lift @ least_squares(public) @ lift.T, rtol=1e-9, atol=1e-9
    )


@pytest.mark.slow
def test_estimates_are_unbiased_and_spread_as_stated():
    rng = np.random.default_rng(3)
    joint = rng.integers(0, 50, SIZES).astype(float)
    functions = {(0, 1): rng.normal(size=(2, 3, 2))}
    draws = np.array([tables_of(joint, True, rng).sums(functions)[0] for _ in range(1500)])
    covariance = tables_of(joint, True).sums(functions)[1]
    truth = (functions[0, 1] * summed(joint, (0, 1))).reshape(2, -1).sum(axis=1)
    errors = np.sqrt(np.diag(covariance) / len(draws))
    assert (np.abs(draws.mean(axis=0) - truth) < 6 * errors).all()
    ratio = np.diag(np.cov(draws.T)) / np.diag(covariance)
    assert (np.abs(ratio - 1) < 6 * np.sqrt(2 / len(draws))).all()


@pytest.mark.parametrize("public", [True, False])
def test_the_variance_of_a_cell_is_that_of_its_indicator(public):
    joint = np.random.default_rng(4).integers(0, 50, SIZES).astype(float)
    tables, columns = tables_of(joint, public), (0, 1)
    for share in (0.0, 0.3):
        functions = np.eye(6).reshape(6, 3, 2) - share
        wanted = np.diag(tables.sums({columns: functions})[1])
        np.testing.assert_allclose(tables.cell_variance(columns, np.full(6, share)), wanted)


def test_tables_measured_twice_are_one():
    first, second = Noisy(np.array([10.0, 20.0]), 2.0), Noisy(np.array([16.0, 14.0]), 1.0)
    found = merged([((0,), first), ((0,), second), ((1,), first)])
    np.testing.assert_allclose(found[0,].values, [14.8, 15.2])
    assert found[0,].sigma == pytest.approx((1 / 4 + 1) ** -0.5)
    assert found[1,] is first


def test_the_number_of_rows_is_public_or_the_best_mean_of_totals():
    joint = np.full(SIZES, 10.0)
    assert tables_of(joint, True).rows == 240
    tables = tables_of(joint, False)
    assert tables.rows == pytest.approx(240)
    variance = 1 / sum(
        1 / (sigma**2 * np.prod([SIZES[j] for j in one])) for one, sigma in SIGMAS.items()
    )
    assert tables.mean(())[1] == pytest.approx(variance)
