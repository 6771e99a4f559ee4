"""The filter theorem, on strategies whose exact δ can be computed (docs/theory/ledger.md).

The true δ at ε of a two-step strategy is ∫ p₁(y) · max over second steps of δ₂(ε − L₁(y)) dy:
the analyst sees y, whose privacy loss is L₁(y), and picks the second step that hurts most.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from discreet.accounting.guarantees import ApproxDP
from discreet.accounting.renyi.conversions import pure_rho
from discreet.accounting.renyi.rdp import ZCDP
from discreet.trusted.losses.pricing import open_box

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]
EPSILON, DELTA = 1.0, 1e-6


def gaussian(mu_squared: float) -> Curve:
    """δ_μ(ε), for every real ε."""
    mu = np.sqrt(mu_squared)
    return lambda epsilon: (
        ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2))
    )


def failure(delta: float) -> Curve:
    return lambda epsilon: delta + (1 - delta) * np.maximum(0.0, 1 - np.exp(epsilon))


def randomised_response(pure: float) -> Curve:
    keep = 1 / (1 + np.exp(-pure))
    return lambda epsilon: (
        np.maximum(0.0, keep - np.exp(epsilon) * (1 - keep))
        + np.maximum(0.0, (1 - keep) - np.exp(epsilon) * keep)
    )


def after_gaussian(mu_squared: float, *choices: Curve) -> Curve:
    """First a Gaussian step, then whichever of the choices hurts most."""
    mu, grid = np.sqrt(mu_squared), np.linspace(-12, 12, 4_801)
    weights = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * (grid[1] - grid[0])
    loss = mu * grid + mu_squared / 2

    def curve(epsilon: Array) -> Array:
        worst = [
            np.max([choice(one - loss) for choice in choices], axis=0) @ weights
            for one in np.atleast_1d(epsilon)
        ]
        return np.asarray(worst)

    return curve


def after_response(pure: float, *choices: Curve) -> Curve:
    keep = 1 / (1 + np.exp(-pure))
    return lambda epsilon: sum(
        weight * np.max([choice(epsilon - loss) for choice in choices], axis=0)
        for weight, loss in ((keep, pure), (1 - keep, -pure))
    )


def test_the_calculation_knows_that_gaussian_steps_add() -> None:
    whole, parts = gaussian(0.05), after_gaussian(0.02, gaussian(0.03))
    at = np.array([0.0, 0.5, 1.0])
    assert parts(at) == pytest.approx(whole(at), rel=1e-8)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_choosing_the_next_gaussian_step_after_the_answer_gains_nothing(share: float) -> None:
    box = float(open_box(ApproxDP(EPSILON, DELTA), delta0=0).mu_squared)
    choices = [gaussian((1 - share) * box * part) for part in (1e-6, 0.3, 0.7, 1.0)]
    true = float(after_gaussian(share * box, *choices)(np.array([EPSILON]))[0])
    assert true == pytest.approx(DELTA, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_pure_gaussian_and_failure_steps_in_any_order_stay_within_their_box(share: float) -> None:
    box = open_box(ApproxDP(EPSILON, DELTA), pure=0.4)
    mu_squared, pure, delta = float(box.mu_squared), float(box.epsilon), float(box.delta)
    rest = (1 - share) * mu_squared
    pure_last = after_gaussian(rest, randomised_response(pure))
    gaussian_last = after_response(pure, gaussian(rest))
    half_each = after_response(
        pure / 2,
        after_gaussian(rest / 2, gaussian(rest / 2), after_response(pure / 2, gaussian(rest / 2))),
    )
    grid = np.linspace(-0.2, 2.2, 241)
    tables = [(choice(grid)) for choice in (pure_last, gaussian_last, half_each)]
    choices = [lambda epsilon, table=table: np.interp(epsilon, grid, table) for table in tables]
    true = float(after_gaussian(share * mu_squared, *choices)(np.array([EPSILON]))[0]) + delta
    assert 0.1 * DELTA < true <= DELTA


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("order", [1.1, 2.0, 8.0, 40.0])
def test_the_renyi_divergence_of_two_steps_stays_within_rho(share: float, order: float) -> None:
    """E_Q[(P/Q)^α] = ∫ q₁ (p₁/q₁)^α · max over second steps of e^{(α−1)D_α}:
    the analyst picks the worst one for each answer.
    """
    rho = float(open_box(ZCDP(0.3)).rho)
    rest, mu = (1 - share) * rho, np.sqrt(2 * share * rho)
    grid = np.linspace(-30, 60, 90_001)
    log_second = -(grid**2) / 2 - np.log(2 * np.pi) / 2
    loss = mu * grid - mu**2 / 2
    pure = brentq(lambda epsilon: pure_rho(epsilon) - rest, 1e-3, 5) * (1 - 1e-9)
    keep = 1 / (1 + np.exp(-pure))
    # (α−1)D_α, exactly
    response = np.log(
        keep**order * (1 - keep) ** (1 - order) + (1 - keep) ** order * keep ** (1 - order)
    )
    noise = (order - 1) * order * rest
    assert pure_rho(pure) <= rest
    for chosen in (
        np.full_like(loss, max(noise, response)),
        np.where(loss > 0, noise, response),
        np.where(loss > 0, response, 0.0),
    ):
        total = np.log(np.sum(np.exp(order * loss + log_second + chosen)) * (grid[1] - grid[0])) / (
            order - 1
        )
        assert share * rho * order < total <= rho * order * (1 + 1e-9)


def test_resplitting_after_an_answer_doubles_delta() -> None:
    """The control: an account that lets the rest of δ go to either coordinate after seeing an
    answer is no filter.
    """
    box = float(open_box(ApproxDP(EPSILON, DELTA), delta0=0).mu_squared)
    first = box / 2
    left = DELTA - float(gaussian(first)(np.array([EPSILON]))[0])
    # either choice, fixed in advance, keeps the promise
    for choice in (gaussian(box - first), failure(left)):
        assert float(after_gaussian(first, choice)(np.array([EPSILON]))[0]) <= DELTA * (1 + 1e-6)
    true = float(
        after_gaussian(first, gaussian(box - first), failure(left))(np.array([EPSILON]))[0]
    )
    assert 1.9 * DELTA < true <= 2 * DELTA
