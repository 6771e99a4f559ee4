"""Claim: a device's gradient reports are bounded on the grid, have exactly the stated noise, and
add up to what was agreed; the server needs nothing else.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.local import mean_gradient, next_request
from discreet.testing.seeded import SeededSource
from discreet.trusted.extensions.local.gradients import (
    CLIP_UNITS,
    GradientRequest,
    LocalGradients,
    clipped_gradient,
    local_noise,
)
from discreet.trusted.losses.losses import loss_of


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_no_record_exceeds_the_clip_norm_on_the_grid(loss):
    rng = np.random.default_rng(0)
    largest = 0
    for _ in range(400):
        size = int(rng.integers(1, 6))
        request = GradientRequest(
            1,
            tuple(rng.normal(size=size) * 10.0 ** rng.integers(-3, 4)),
            loss,
            clip=float(10.0 ** rng.integers(-3, 4)),
        )
        x = rng.normal(size=size) * 10.0 ** rng.integers(-5, 12)
        whole = clipped_gradient(
            x.tolist(), float(rng.normal() * 10.0 ** rng.integers(-2, 8)), request
        )
        largest = max(largest, sum(value * value for value in whole))
        assert sum(value * value for value in whole) <= CLIP_UNITS**2
    assert largest >= 0.99 * CLIP_UNITS**2


def test_records_that_are_no_finite_numbers_count_as_zero():
    request = GradientRequest(1, (0.5, 1.0))
    for x, y in [
        ((math.nan, 1.0), 1),
        ((math.inf, 1.0), 0),
        ((1.0, None), 0),
        (("a", 1.0), 0),
        ((1.0, 1.0), math.nan),
        ((1e308, 1e308), 1),
        ((1.0, 2.0), None),
    ]:
        whole = clipped_gradient(x, y, request)
        assert len(whole) == 2
        assert sum(value * value for value in whole) <= CLIP_UNITS**2


def test_the_reports_of_one_person_add_up_to_the_agreed_guarantee():
    mechanism = local_noise(Fraction(3, 2), 40)
    assert mechanism.sensitivity.squared == (2 * CLIP_UNITS) ** 2
    each = loss_of(mechanism).mu_squared
    assert Fraction(3, 2) ** 2 * Fraction(999, 1000) <= 40 * each <= Fraction(3, 2) ** 2


def test_a_round_is_answered_once_and_accounts_are_not_copied():
    device = LocalGradients(1.0, 2)
    device.report([1.0], 1, GradientRequest(1, (0.0,)))
    for request in (GradientRequest(1, (5.0,)), GradientRequest(3, (0.0,))):
        with pytest.raises(dp.LedgerRefused):
            device.report([1.0], 1, request)
    for attempt in (pickle.dumps, copy.copy):
        with pytest.raises(dp.LedgerRefused):
            attempt(device)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LocalGradients(0.0, 5),
        lambda: LocalGradients(math.nan, 5),
        lambda: LocalGradients(1.0, 0),
        lambda: LocalGradients(1.0, True),
        lambda: GradientRequest(0, (1.0,)),
        lambda: GradientRequest(1, ()),
        lambda: GradientRequest(1, (math.inf,)),
        lambda: GradientRequest(1, (1.0,), "other"),
        lambda: GradientRequest(1, (1.0,), clip=0.0),
        lambda: LocalGradients(1.0, 2).report([1.0, 2.0], 0, GradientRequest(1, (1.0,))),
        lambda: mean_gradient([], GradientRequest(1, (1.0,))),
        lambda: mean_gradient([{"format": "other"}], GradientRequest(1, (1.0,))),
    ],
)
def test_bad_requests_are_refused(make):
    with pytest.raises(dp.DiscreetError):
        make()


def test_noise_is_each_devices_own_and_has_the_stated_spread():
    request = GradientRequest(1, (0.0, 0.0), clip=2.0)
    reports = [
        LocalGradients(1.0, 9, source=SeededSource(seed)).report([0.0, 0.0], 0, request)
        for seed in range(400)
    ]
    numbers = np.array([[float(value) for value in report["integers"]] for report in reports])
    spread = float(local_noise(Fraction(1), 9).spread)
    # 800 squares: a standard deviation of 5 %
    assert np.mean(numbers**2) == pytest.approx(spread**2, rel=0.25)
    mean = mean_gradient(reports, request)
    assert mean.noise == pytest.approx(2 * 2.0 * 3 / math.sqrt(400), rel=1e-6)  # 2B√K/(μ√n)
    assert json.loads(json.dumps(reports[0])) == reports[0]
    assert reports[0]["secure"] is False
    assert LocalGradients(1.0, 1).report([0.0], 0, GradientRequest(1, (0.0,)))["secure"] is True


@pytest.mark.slow
def test_a_descent_of_many_devices_finds_the_coefficients():
    rng = np.random.default_rng(4)
    n, rounds, truth = 1500, 8, np.array([0.5, -1.0])
    x = np.column_stack([np.ones(n), rng.choice([-1.0, 1.0], n)])
    y = rng.random(n) < 1 / (1 + np.exp(-x @ truth))
    devices = [
        LocalGradients(8.0, rounds, source=SeededSource(f"device/{place}")) for place in range(n)
    ]
    request = GradientRequest(1, (0.0, 0.0), clip=1.5)
    for _ in range(rounds):
        reports = [
            json.loads(json.dumps(device.report(row, outcome, request)))
            for device, row, outcome in zip(devices, x.tolist(), y.tolist(), strict=True)
        ]
        request = next_request(reports, request, step_size=3.0)
    noise = 3.0 * mean_gradient(reports, GradientRequest(rounds, request.theta, clip=1.5)).noise
    assert np.abs(np.array(request.theta) - truth).max() <= 5 * (noise + 0.1)
    assert np.abs(np.array(request.theta) - truth).max() <= 0.6


def test_a_record_of_any_kind_is_answered_alike_and_only_its_length_can_be_refused():
    device, round = LocalGradients(1.0, 9), iter(range(1, 10))
    for cell in ("text", None, object(), math.nan, math.inf, 10**400, [1.0]):
        told = device.report([cell, 1.0], cell, GradientRequest(next(round), (0.5, 1.0)))
        assert {*told} == {*device.report([1.0, 1.0], 1, GradientRequest(next(round), (0.5, 1.0)))}
        device, round = LocalGradients(1.0, 9), iter(range(1, 10))
    for record in (7, [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(dp.DiscreetError):
            device.report(record, 1, GradientRequest(1, (0.5, 1.0)))
    handed_out = device.mechanism
    object.__setattr__(handed_out, "spread", Fraction(0))
    assert device.mechanism.spread > 0
