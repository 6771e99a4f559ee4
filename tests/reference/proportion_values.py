"""The stored values of inference for one proportion."""

from __future__ import annotations

from tests.reference.proportions import (
    at_least,
    centred_power,
    fiducial_coverage,
    fiducial_power,
    fiducial_quantile,
    fiducial_share_limit,
    limit,
    most_power,
    most_unbiased_power,
    normal_rejects,
    power,
    symmetric_limit,
    symmetric_p_value,
    tulap_cut,
    tulap_probability,
    tulap_variance,
    unbiased_centre,
    unbiased_offset,
)
from tests.reference.stored import Stored, stored

HERE = "tests/reference/test_proportion_values.py"
NOISE = f"{HERE} tests/claims/test_noise_law.py"
POWER = "tests/inference/counts/test_proportion_tests.py"
FLOATS, PROGRAM, SEARCH = 1e-12, 1e-7, 1e-10
CUT = "δ = 0.01"
MINUS_LOG_0_3 = 1.2039728043259361  # b = 0.3

POWERS = [  # n, null, share, ε, δ, the power of the most powerful private test
    (30, 0.8, 0.9, 0.015625, 0.0, 0.052386143436592786),
    (30, 0.8, 0.9, 0.0625, 0.0, 0.06006644630141281),
    (30, 0.8, 0.9, 0.25, 0.0, 0.09932768364962906),
    (30, 0.8, 0.9, 1.0, 0.0, 0.3039826454627936),
    (16, 0.9, 0.95, 1.0, 0.0, 0.08502420019685474),
    (64, 0.9, 0.95, 1.0, 0.0, 0.30623559024228475),
    (256, 0.9, 0.95, 1.0, 0.0, 0.8975472681006712),
    (10, 0.4, 0.6, 1.0, 0.01, 0.2514923707836621),
    (100, 0.6, 0.7, 0.1, 0.0, 0.13380768539815363),
]
QUANTILES = [  # share, n, ε, the 2.5, 50 and 97.5 % points of the fiducial law
    (0.6, 30, 1.0, (0.3999355361439354, 0.5990751310316972, 0.7806992163936712)),
    (0.2, 100, 0.5, (0.11373859180800859, 0.20075076014816912, 0.30471377700477276)),
    (0.5, 500, 0.1, (0.4278421084287224, 0.5000000000000019, 0.5721578915712808)),
]
COVERAGES = [  # θ, n, ε, coverage, the shares at which the interval just excludes θ
    (0.5, 30, 1.0, 0.9489627629835184, 0.2993348803533332, 0.7006651196466638),
    (0.95, 30, 1.0, 0.9476931247303636, 0.8213603977540013, 1.0657891190966615),
    (0.5, 500, 0.1, 0.9499796884785998, 0.42764130285341295, 0.5723586971465837),
]


def _powers() -> list[Stored]:
    rows = []
    for n, null, share, epsilon, delta, value in POWERS:
        cut = CUT if delta else 0.0
        rows.append(stored(value, HERE, power, n, null, share, epsilon, cut, within=SEARCH))
        program = (most_power, n, null, share, epsilon, delta)
        rows.append(stored(value, HERE, *program, within=PROGRAM))
    return rows


def _fiducial() -> list[Stored]:
    rows = []
    for share, n, epsilon, values in QUANTILES:
        for probability, value in zip((0.025, 0.5, 0.975), values, strict=True):
            point = (fiducial_quantile, share, n, epsilon, probability)
            rows.append(stored(value, HERE, *point, within=SEARCH))
    for theta, n, epsilon, coverage, low, high in COVERAGES:
        rows.append(stored(coverage, HERE, fiducial_coverage, theta, n, epsilon, within=SEARCH))
        for probability, value in ((0.975, low), (0.025, high)):
            point = (fiducial_share_limit, theta, n, epsilon, probability)
            rows.append(stored(value, HERE, *point, within=SEARCH))
    return rows


VALUES = [
    stored(0.048905414708421836, NOISE, tulap_probability, -2.3, 1.0, within=FLOATS),
    stored(0.9135701314718091, NOISE, tulap_probability, 1.7, 1.0, within=FLOATS),
    stored(0.8807970779778824, NOISE, tulap_probability, 0.5, 2.0, within=FLOATS),
    stored(0.7834008097165992, HERE, tulap_probability, 0.5, MINUS_LOG_0_3, 0.05, within=FLOATS),
    stored(0.04365488388373029, HERE, tulap_probability, -2.3, 1.0, CUT, within=FLOATS),
    stored(0.9183838951352787, HERE, tulap_probability, 1.7, 1.0, CUT, within=FLOATS),
    stored(0.011505614148730779, HERE, tulap_cut, 1.0, 0.01, within=FLOATS),
    stored(1.924680521748918, HERE, tulap_variance, 1.0, within=FLOATS),
    *_powers(),
    stored(0.3039826454627936, POWER, power, 30, 0.8, 0.9, 1.0, within=SEARCH),
    stored(0.12971475505110483, HERE, at_least, 7.3, 10, 0.5, 1.0, within=FLOATS),
    stored(0.30184701354984256, HERE, at_least, 26.5, 30, 0.8, 0.25, within=FLOATS),
    stored(0.25942951010220966, HERE, symmetric_p_value, 7.3, 10, 0.5, 1.0, within=FLOATS),
    stored(0.6021625993385141, HERE, symmetric_p_value, 26.5, 30, 0.8, 0.25, within=FLOATS),
    stored(0.38448187438841386, HERE, limit, 7, 10, 1.0, 0.05, "low", within=SEARCH),
    stored(0.5173789690081375, HERE, limit, 2, 10, 1.0, 0.05, "high", within=SEARCH),
    stored(0.4107205703099944, HERE, symmetric_limit, 18, 30, 1.0, 0.05, "low", within=SEARCH),
    stored(0.7667095607880773, HERE, symmetric_limit, 18, 30, 1.0, 0.05, "high", within=SEARCH),
    stored(0.44951213375529414, HERE, limit, 18.4243, 30, 1.0, CUT, "low", within=SEARCH),
    stored(0.7624285887159362, HERE, limit, 18.4243, 30, 1.0, CUT, "high", within=SEARCH),
    stored(7.208000614082067, HERE, unbiased_centre, 10, 0.75, 1.0, 0.1, within=SEARCH),
    stored(3.0990050954898685, HERE, unbiased_offset, 10, 0.75, 1.0, 0.1, within=SEARCH),
    stored(0.33453767739587187, HERE, most_unbiased_power, 10, 0.75, 0.5, 1.0, 0.1, within=PROGRAM),
    stored(0.07927664449109473, HERE, most_unbiased_power, 30, 0.1, 0.3, 0.1, 0.05, within=PROGRAM),
    stored(0.08236540178403401, HERE, centred_power, 30, 0.1, 0.3, 0.1, 0.05, within=SEARCH),
    stored(0.0432243505419376, HERE, normal_rejects, 30, 0.8, 0.8, 1.0, within=FLOATS),
    stored(0.0945394293750305, HERE, normal_rejects, 30, 0.8, 0.9, 0.25, within=FLOATS),
    stored(0.05423738958940005, HERE, normal_rejects, 30, 0.05, 0.05, 1.0, within=FLOATS),
    stored(0.04290017635181946, HERE, normal_rejects, 100, 0.9, 0.9, 1.0, within=FLOATS),
    *_fiducial(),
    stored(0.05119602171516004, HERE, fiducial_power, 0.8, 0.8, 30, 1.0, within=SEARCH),
    stored(0.5986943693096775, HERE, fiducial_power, 0.9, 0.95, 128, 1.0, within=SEARCH),
    stored(0.09958978875973788, HERE, fiducial_power, 0.8, 0.9, 30, 0.25, within=SEARCH),
]
