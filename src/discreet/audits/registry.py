"""How each public procedure is asked when it is audited, by its public name, and the reason of
every public name that is not audited. Variants of a procedure have names of their own, which begin
with its name: ``"ols newton"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.asking.records import RECORDS, resolve
from discreet.audits.asked import adaptive_session, held_out, long_session, watched
from discreet.audits.cases import RELATIONS
from discreet.inference.posteriors.families import (
    BetaBinomial,
    DirichletMultinomial,
    GammaPoisson,
    LinearModel,
    NormalModel,
)
from discreet.models.regression import ols, robust
from discreet.models.solvers import SGD, GradientDescent, Newton
from discreet.models.trials.tune import trial
from discreet.schema import Boolean, Category, Real
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    HadamardResponse,
    LaplaceResponse,
    OneBitResponse,
    RandomizedResponse,
    TwoCoinResponse,
    UnaryResponse,
)

USUAL = GDP(3)
FAILING = ApproxDP(3, 1e-5)  # what may fail needs a δ
FORMULA = "y ~ x"
YES = "flag ~ x"
BY_ROW = ("replace", "add or remove")
ALL_ROWS = ("replace",)
RUNS_FIRST, REPLAY_FIRST = ("runs", "replay"), ("replay", "runs")
EXACT = ("runs", "replay", "exact")
EXACT_FIRST = ("exact", "replay", "runs")
FEW_STEPS = SGD(steps=4, batch=6)


@dataclass(frozen=True, slots=True)
class Entry:
    """One procedure: what is asked after the session, and with which spend where none is given.

    methods    that say something about it, the most telling one first
    keyed      whether it takes a key, so that it can be asked again
    fit        the procedure whose fit it reads
    ends       values of the second end of the row that differs, where the usual ones say little
    relations  that it can be asked under
    search     how many changed pairs a replay tries
    ask        what is called in place of the public function, for what takes several calls
    """

    asked: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    spend: Any = USUAL
    methods: tuple[str, ...] = RUNS_FIRST
    keyed: bool = True
    fit: str = ""
    ends: dict[str, Any] | None = None
    relations: tuple[str, ...] = tuple(RELATIONS)
    search: int = 30
    ask: Callable[..., Mapping[str, float]] | None = None


def _largest(values: Any) -> float:
    return float(max(values, default=0.0))


def _many(values: Any) -> bool:
    return bool(sum(values) > 0.5 * len(values))


def _small(values: Any) -> float:
    """A made-up test's p-value."""
    return 0.01 if sum(values) > 0.6 * len(values) else 0.5


_FLAGS: Any = BetaBinomial("flag", prior=(1, 1))
# enough for two dozen rows to have a core
GENEROUS, FRIENDLY = ApproxDP(20, 1e-2), dict[str, Any](delta=4e-3)
PARTS: dict[str, Any] = {"columns": "x", "parts": 6}

ENTRIES: dict[str, Entry] = {
    "count": Entry(options={"where": {"flag": True}}, methods=EXACT),
    "sum": Entry(("x",), methods=EXACT),
    "mean": Entry(("x",), methods=EXACT),
    "mean where": Entry(("x",), {"where": {"flag": True}}, methods=EXACT),
    "mean missing": Entry(("x",), methods=EXACT, ends={"x": None}),
    "variance": Entry(("x",), methods=EXACT),
    "std": Entry(("x",), methods=EXACT),
    "proportion": Entry(("flag",), methods=EXACT),
    "histogram": Entry(("level",), methods=(*EXACT, "canaries")),
    "table": Entry(options={"by": "level"}, methods=EXACT),
    "table open": Entry(options={"by": "town"}, spend=FAILING, ends={"town": "n"}),
    "missing": Entry((["x", "level"],), methods=EXACT, ends={"x": None, "level": None}),
    "describe": Entry((["x", "y"],)),
    "ecdf": Entry(("x",), {"points": 8}, methods=EXACT),
    "density": Entry(("x",), {"bins": 4}, methods=EXACT),
    "covariance": Entry((["x", "y"],), methods=EXACT),
    "correlation": Entry((["x", "y"],), methods=EXACT),
    "median": Entry(("x",)),
    "median exponential": Entry(("x",), {"method": "exponential"}, methods=EXACT),
    "median inverse": Entry(("full",), {"method": "inverse"}, methods=EXACT, relations=ALL_ROWS),
    "median smooth": Entry(("full",), {"method": "smooth"}, spend=PureDP(3), relations=ALL_ROWS),
    "median ptr": Entry(("full",), {"method": "ptr"}, spend=FAILING, relations=ALL_ROWS),
    "median by cells": Entry(("x",), {"by": "arm"}),
    "quantile": Entry(("x", 0.25)),
    "quantiles": Entry(("x", [0.25, 0.75])),
    "iqr": Entry(("x",)),
    "mad": Entry(("x",)),
    "truncated_mean": Entry(("x",), {"bound": 1.0}, methods=EXACT),
    "unbounded_mean": Entry(("x",)),
    "location": Entry(("x",)),
    "trimmed_mean": Entry(("x",)),
    "select": Entry(("level",), methods=EXACT),
    "mode": Entry(("level",), methods=EXACT),
    "mode noisy-max": Entry(("level",), {"method": "noisy-max"}, methods=EXACT),
    "top": Entry(("level", 2), methods=EXACT),
    "above_threshold": Entry(
        ({"yes": {"flag": True}, "no": {"flag": False}}, 12), methods=EXACT, spend=PureDP(2)
    ),
    "watch": Entry(spend=PureDP(2), keyed=False, methods=EXACT_FIRST, ask=watched),
    "holdout": Entry(spend=PureDP(3), keyed=False, methods=REPLAY_FIRST, ask=held_out),
    "proportion_test": Entry(("flag", 0.5), spend=PureDP(2), methods=EXACT),
    "compare": Entry(("flag",), {"by": "arm"}, methods=EXACT),
    "independence_test": Entry(("level", "arm"), methods=EXACT),
    "rank_test": Entry(("x",), {"by": "arm"}, methods=EXACT),
    "goodness_of_fit": Entry(("level", [0.25] * 4), methods=EXACT),
    "compare_means": Entry(("x",), {"by": "arm"}, methods=EXACT),
    "mean_test": Entry(("x", 0.5), methods=EXACT),
    "paired_test": Entry(("x", "y"), methods=EXACT),
    "subsample_test": Entry((_small,), PARTS, search=4),
    "subsample": Entry((_largest,), PARTS | {"output": Real(0, 1)}, search=4),
    "subsample vote": Entry((_many,), PARTS | {"output": Boolean(), "columns": "flag"}, search=4),
    "friendly_mean": Entry(
        (["x", "y"],), FRIENDLY | {"radius": 1.0}, spend=GENEROUS, relations=ALL_ROWS
    ),
    "friendly_clusters": Entry(
        (["x", "y"],),
        FRIENDLY | {"k": 2, "radius": 2.0, "parts": 8},
        spend=GENEROUS,
        relations=BY_ROW,
        search=4,
    ),
    "ols": Entry((FORMULA,)),
    "ols moments": Entry((FORMULA,), {"method": "moments"}),
    "ols newton": Entry((FORMULA,), {"solver": Newton()}),
    "ols gradients": Entry((FORMULA,), {"solver": GradientDescent(steps=5)}),
    "ols sgd": Entry((FORMULA,), {"solver": FEW_STEPS}, spend=FAILING, relations=BY_ROW),
    "robust": Entry((FORMULA,), methods=REPLAY_FIRST, search=150),
    "logistic": Entry((YES,)),
    "logistic sgd": Entry((YES,), {"solver": FEW_STEPS}, spend=FAILING, relations=BY_ROW),
    "logistic pure sgd": Entry(
        (YES,), {"solver": SGD(steps=4, batch=6, law="laplace")}, spend=PureDP(3), relations=BY_ROW
    ),
    "logistic objective": Entry((YES,), {"method": "objective"}),
    "poisson": Entry(("whole ~ x",)),
    "m_estimate": Entry((FORMULA,), {"psi": math.tanh}),
    "erm": Entry((YES,)),
    "erm pure": Entry((YES,), spend=PureDP(3)),
    "erm output": Entry((YES,), {"method": "output"}),
    "erm pure output": Entry((YES,), {"method": "output"}, spend=PureDP(3)),
    "network": Entry(
        ("flag ~ x + y",),
        {"hidden": (2,), "solver": FEW_STEPS},
        spend=FAILING,
        relations=BY_ROW,
    ),
    "accuracy": Entry(fit="logistic", methods=EXACT),
    "residuals": Entry(fit="robust", methods=EXACT),
    "tune": Entry(
        ([trial(ols, FORMULA), trial(robust, FORMULA)],),
        {"score": "squared error", "trials": 2},
    ),
    "synthesize": Entry((["level", "arm", "flag"],), methods=REPLAY_FIRST),
    "synthesize pure": Entry((["level", "arm", "flag"],), spend=PureDP(3), methods=REPLAY_FIRST),
    "mwem": Entry(
        (["arm", "side"],),
        {"rounds": 2},
        spend=PureDP(2),
        methods=REPLAY_FIRST,
        relations=BY_ROW,
    ),
    "posterior": Entry((_FLAGS,), relations=BY_ROW, methods=EXACT),
    "posterior levels": Entry((DirichletMultinomial("level"),), relations=BY_ROW, methods=EXACT),
    "posterior counts": Entry(
        (GammaPoisson("whole", prior=(1, 1)),), relations=BY_ROW, methods=EXACT
    ),
    "posterior line": Entry((LinearModel(FORMULA),), relations=BY_ROW, methods=EXACT),
    "posterior normal": Entry((NormalModel("x"),), relations=BY_ROW, methods=EXACT),
    "posterior_sample": Entry(
        (_FLAGS,), {"grid": [0.1, 0.5, 0.9]}, spend=PureDP(2), relations=BY_ROW, methods=EXACT
    ),
    "session": Entry(ask=adaptive_session),
    "session long": Entry(ask=long_session),
}


# ── names that are not audited, and why ───────────────────────────────────────────────────────────

_CLASSES = {
    "a guarantee or a price: it is compared, and releases nothing": (
        "ApproxDP", "GDP", "PLD", "PureDP", "RDP", "TradeOff", "ZCDP",
    ),
    "computes what guarantees say, from guarantees alone": (
        "compose", "explain", "plan", "rows_needed",
    ),
    "says beforehand what a question would cost or tell, from public facts": (
        "Assumptions", "power", "preview", "sample_size", "smallest_effect", "spend_needed",
    ),
    "declares what the data are; rows are read when a question is paid for (engine=)": (
        "AddRemove", "Boolean", "Category", "Dataset", "Date", "Datetime", "Integer", "Open",
        "Real", "Replace", "Schema", "declare", "from_arrays", "from_batches", "from_database",
        "from_frame", "from_spark", "read", "read_csv", "read_parquet", "write_declaration",
    ),
    "reads what was released before": (
        "Release", "ReleasePlan", "Result", "SelectionResult", "from_json", "read_plan",
    ),
    "tables that are made up, and bundled": ("BundledTable", "load_census", "load_visits"),
    "the account: its own promises are tested by killed processes and replays": ("Ledger",),
    "what every audit asks through": ("Session", "connect"),
    "what dp.watch opens, audited by that name": ("Watch",),
    "a family of priors, audited through dp.posterior": (
        "BetaBinomial", "DirichletMultinomial", "GammaPoisson", "LinearModel", "NormalModel",
    ),
    "how a model is fitted, audited through dp.ols and dp.logistic": (
        "GradientDescent", "MayNotConverge", "Newton", "SGD", "trial",
    ),
    "an error: its texts are written before any debit": (
        "BudgetExceeded", "DataShapeRefused", "DiscreetError", "InsecureNoise",
        "InvalidParameter", "LedgerRefused", "MissingExtra", "NeighborsMissing", "NoTheorem",
        "NotAnswered", "ReleaseFailed", "ServiceRefused", "SourceChanged", "UndeclaredColumn",
        "UnknownName", "WrongColumnKind",
    ),
    "measures others; tested on laws that are known": ("audit",),
}  # fmt: skip
REASONS = {name: reason for reason, names in _CLASSES.items() for name in names}

# specifications of what devices do: audited by dp.audit(spec)
DEVICES: Mapping[str, Callable[[], Any]] = {
    "RandomizedResponse": lambda: RandomizedResponse(Category(list("abcd")), epsilon=Fraction(1)),
    "TwoCoinResponse": lambda: TwoCoinResponse(Boolean()),
    "UnaryResponse": lambda: UnaryResponse(Category(list("abcd")), epsilon=Fraction(1)),
    "HadamardResponse": lambda: HadamardResponse(Category(list("abcd")), epsilon=Fraction(1)),
    "OneBitResponse": lambda: OneBitResponse(Real(0, 1), epsilon=Fraction(1)),
    "LaplaceResponse": lambda: LaplaceResponse(Real(0, 1), epsilon=Fraction(1)),
    "GaussianResponse": lambda: GaussianResponse(Real(0, 1), mu=Fraction(1)),
}
DEVICE_REASONS = {
    "LocalGradients": "rounds of normal noise by a device: tests/claims/test_local_descent.py",
    "GradientRequest": "what a server asks of devices: public",
    "read_spec": "reads a public specification",
    "report": "one report of a specification, as JSON: the specification is audited",
    "reports": "many reports of a specification, which is audited",
    "Boolean": "declares a column",
    "Category": "declares a column",
    "Integer": "declares a column",
    "Real": "declares a column",
}


def function_of(name: str) -> str:
    """The public name whose variant an entry is: its first word."""
    return name.partition(" ")[0]


def procedure(name: str) -> Callable[..., Any]:
    """The public function of an entry; for a whole session, what spends its budget."""
    found = next((one.function for one in RECORDS if one.name == function_of(name)), None)
    if found is not None:
        return resolve(found)  # type: ignore[no-any-return]
    asked = ENTRIES[name].ask
    assert asked is not None
    return asked
