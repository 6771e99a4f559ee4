"""PLD accounting against dp-accounting, in one process and one run.

    python -m pip install -r benchmarks/peers/accounting.txt  # shares the environment of discreet
    python benchmarks/accounting.py

Three questions, asked of both: ε of DP-SGD (Poisson rate 0.01, σ = 1, 10 000 steps, δ = 10⁻⁵);
ε of 1000 different mechanisms of four kinds (δ = 10⁻⁶); the σ of DP-SGD for ε = 2, δ = 10⁻⁵. Every
time is the best of a few, first calls left out; dp-accounting runs with its defaults. One round
trip of a 2²⁰-point real FFT is the yardstick.

The last line has the speed-ups, the mixed time in FFT round trips,
and the worst ratio ε(discreet)/ε(dp-accounting).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft

import stored
from discreet.accounting.loss_distributions.build import (
    gaussian_pld,
    laplace_pld,
    poisson_subsampled,
)
from discreet.accounting.loss_distributions.calibration import calibrate_sigma
from discreet.accounting.loss_distributions.curve import PLD, compose_all

RATE, STEPS, SIGMA, DELTA = 0.01, 10_000, 1.0, 1e-5
MIXED_DELTA = 1e-6
TARGET = 2.0
SPREAD = [index / 250 for index in range(250)]
GAUSSIANS = [60 + 60 * s for s in SPREAD]  # σ/Δ
LAPLACES = [50 + 60 * s for s in SPREAD]  # b/Δ
SAMPLED_GAUSSIANS = [(1 + s, 0.002 + 0.008 * s) for s in SPREAD]  # (σ/Δ, rate)
SAMPLED_LAPLACES = [(1 + s, 0.002 + 0.006 * s) for s in SPREAD]  # (b/Δ, rate)


def best(function: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    times = []
    result = None
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return min(times), result


def ours_sgd() -> float:
    return poisson_subsampled(gaussian_pld(1 / SIGMA), RATE).self_compose(STEPS).epsilon_at(DELTA)


def mixed() -> PLD:
    return compose_all(
        [(gaussian_pld(1 / sigma), 1) for sigma in GAUSSIANS]
        + [(laplace_pld(1 / scale), 1) for scale in LAPLACES]
        + [
            (poisson_subsampled(gaussian_pld(1 / sigma), rate), 1)
            for sigma, rate in SAMPLED_GAUSSIANS
        ]
        + [
            (poisson_subsampled(laplace_pld(1 / scale), rate), 1)
            for scale, rate in SAMPLED_LAPLACES
        ]
    )


def ours_mixed() -> float:
    return mixed().epsilon_at(MIXED_DELTA)


def ours_sigma() -> float:
    return calibrate_sigma(TARGET, DELTA, steps=STEPS, sampling_rate=RATE)


def theirs_sgd(library: Any) -> float:
    one = library.from_gaussian_mechanism(SIGMA, sampling_prob=RATE)
    return float(one.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def theirs_mixed(library: Any) -> float:
    parts = [library.from_gaussian_mechanism(sigma) for sigma in GAUSSIANS]
    parts += [library.from_laplace_mechanism(scale) for scale in LAPLACES]
    parts += [
        library.from_gaussian_mechanism(sigma, sampling_prob=rate)
        for sigma, rate in SAMPLED_GAUSSIANS
    ]
    parts += [
        library.from_laplace_mechanism(scale, sampling_prob=rate)
        for scale, rate in SAMPLED_LAPLACES
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total.compose(part)
    return float(total.get_epsilon_for_delta(MIXED_DELTA))


def theirs_sigma(accounting: Any, library: Any) -> float:
    def event(sigma: float) -> Any:
        step = accounting.PoissonSampledDpEvent(RATE, accounting.GaussianDpEvent(sigma))
        return accounting.SelfComposedDpEvent(step, STEPS)

    return float(
        accounting.calibrate_dp_mechanism(library.PLDAccountant, event, TARGET, DELTA, tol=1e-4)
    )


def store(rows: list[tuple[str, float, float, float, float]]) -> None:
    """Time and answer of both, question by question."""
    stored.table(
        "accounting",
        about="speed",
        title="Privacy accounting",
        says="ε of 10 000 steps of DP-SGD, ε of 1000 mixed mechanisms, and the σ that DP-SGD "
        "needs, here and by dp-accounting with its defaults.",
        columns=[
            stored.column("question"),
            stored.column("ours", "discreet, ms", digits=1),
            stored.column("theirs", "dp-accounting, ms", digits=1),
            stored.column("answer", "our answer", digits=5),
            stored.column("other", "their answer", digits=5),
        ],
        rows=[
            {"question": name, "ours": 1e3 * ours, "theirs": 1e3 * slow, "answer": x, "other": y}
            for name, ours, slow, x, y in rows
        ],
    )


def main() -> None:
    asked = stored.wanted()
    try:
        import dp_accounting
        from dp_accounting import pld
        from dp_accounting.pld import privacy_loss_distribution as library
    except ImportError:
        raise SystemExit(
            "this benchmark compares with dp-accounting: pip install -r "
            "benchmarks/peers/accounting.txt"
        ) from None
    points = np.arange(1 << 20) / (1 << 20)
    fft_time, _ = best(lambda: fft.irfft(fft.rfft(points)), 12)
    rows = []
    for name, ours, theirs, repeats in (
        ("DP-SGD epsilon", ours_sgd, lambda: theirs_sgd(library), 3),
        ("1000 mixed epsilon", ours_mixed, lambda: theirs_mixed(library), 1),
        ("DP-SGD sigma", ours_sigma, lambda: theirs_sigma(dp_accounting, pld), 1),
    ):
        ours()
        quick, our_value = best(ours, 8)
        slow, their_value = best(theirs, repeats)
        rows.append((name, quick, slow, our_value, their_value))
        print(
            f"{name:20s} discreet {quick * 1e3:9.1f} ms  {our_value:.6f}   dp-accounting "
            f"{slow * 1e3:9.1f} ms  {their_value:.6f}   {slow / quick:7.1f}x",
            flush=True,
        )
    sgd, many, sigma = rows
    at_our_sigma = float(
        library.from_gaussian_mechanism(sigma[3], sampling_prob=RATE)
        .self_compose(STEPS)
        .get_epsilon_for_delta(DELTA)
    )
    sgd_bounds = (
        poisson_subsampled(gaussian_pld(1 / SIGMA), RATE).self_compose(STEPS).epsilon_bounds(DELTA)
    )
    mixed_bounds = mixed().epsilon_bounds(MIXED_DELTA)
    for name, (low, high) in (("DP-SGD", sgd_bounds), ("mixed", mixed_bounds)):
        print(f"{name}: certified between {low:.7f} and {high:.7f}, gap {(high - low) / low:.1e}")
    print(
        f"2**20-point FFT round trip {fft_time * 1e3:.1f} ms; dp-accounting's epsilon at our "
        f"sigma {at_our_sigma:.6f} for a target of {TARGET}"
    )
    if asked:
        store(rows)
    worst = max(sgd[3] / sgd[4], many[3] / many[4], TARGET / at_our_sigma)
    print(
        f"sgd_speedup={sgd[2] / sgd[1]:.1f} mixed_speedup={many[2] / many[1]:.1f} "
        f"mixed_vs_fft={many[1] / fft_time:.2f} calibrate_speedup={sigma[2] / sigma[1]:.1f} "
        f"worst_epsilon_ratio={worst:.6f}"
    )


if __name__ == "__main__":
    main()
