"""How each public procedure is asked when it is audited, by its public name.

Every name that releases something has an entry; `REASONS` says of all others why they have none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting.guarantees import GDP, PureDP
from discreet.asking.records import RECORDS, resolve
from discreet.inference.posteriors.families import BetaBinomial

USUAL = GDP(3)
FORMULA = "y ~ x"
YES = "flag ~ x"


@dataclass(frozen=True, slots=True)
class Entry:
    """One procedure: what is asked after the session, and with which spend where none is given.

    methods    that say something about it, the most telling one first
    keyed      whether it takes a key, so that it can be asked again
    fit        the procedure whose fit it reads
    ends       values of the second end of the row that differs, where the usual ones say little
    units      whether it takes units of several rows
    search     how many changed pairs a replay tries
    """

    asked: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    spend: Any = USUAL
    methods: tuple[str, ...] = ("runs", "replay")
    keyed: bool = True
    fit: str = ""
    ends: dict[str, Any] | None = None
    units: bool = True
    search: int = 30


ENTRIES: dict[str, Entry] = {
    "count": Entry(options={"where": {"flag": True}}),
    "sum": Entry(("x",)),
    "mean": Entry(("x",)),
    "variance": Entry(("x",)),
    "std": Entry(("x",)),
    "proportion": Entry(("flag",)),
    "histogram": Entry(("level",), methods=("runs", "replay", "canaries")),
    "table": Entry(options={"by": "level"}),
    "missing": Entry((["x", "level"],), ends={"x": None, "level": None}),
    "describe": Entry((["x", "y"],)),
    "ecdf": Entry(("x",), {"points": 8}),
    "density": Entry(("x",), {"bins": 4}),
    "covariance": Entry((["x", "y"],)),
    "correlation": Entry((["x", "y"],)),
    "median": Entry(("x",)),
    "quantile": Entry(("x", 0.25)),
    "quantiles": Entry(("x", [0.25, 0.75])),
    "iqr": Entry(("x",)),
    "mad": Entry(("x",)),
    "truncated_mean": Entry(("x",), {"bound": 1.0}),
    "unbounded_mean": Entry(("x",)),
    "location": Entry(("x",)),
    "trimmed_mean": Entry(("x",)),
    "select": Entry(("level",)),
    "mode": Entry(("level",)),
    "top": Entry(("level", 2)),
    "above_threshold": Entry(({"yes": {"flag": True}, "no": {"flag": False}}, 12)),
    "watch": Entry((12,), keyed=False, methods=("runs",)),
    "proportion_test": Entry(("flag", 0.5), spend=PureDP(2)),
    "compare": Entry(("flag",), {"by": "arm"}),
    "independence_test": Entry(("level", "arm")),
    "rank_test": Entry(("x",), {"by": "arm"}),
    "goodness_of_fit": Entry(("level", [0.25] * 4)),
    "compare_means": Entry(("x",), {"by": "arm"}),
    "mean_test": Entry(("x", 0.5)),
    "paired_test": Entry(("x", "y")),
    "ols": Entry((FORMULA,)),
    "robust": Entry((FORMULA,), methods=("replay", "runs"), search=150),
    "logistic": Entry((YES,)),
    "poisson": Entry(("whole ~ x",)),
    "residuals": Entry(fit="robust"),
    "synthesize": Entry((["level", "arm", "flag"],), methods=("replay", "runs")),
    "mwem": Entry(
        (["arm", "side"],),
        {"rounds": 2},
        spend=PureDP(2),
        methods=("replay", "runs"),
        units=False,
    ),
    "posterior": Entry((BetaBinomial("flag", prior=(1, 1)),), units=False),
    "posterior_sample": Entry(
        (BetaBinomial("flag", prior=(1, 1)),),
        {"grid": [0.1, 0.5, 0.9]},
        spend=PureDP(2),
        units=False,
    ),
}

REASONS = {
    "subsample": "rows are put into random parts, which a repetition puts otherwise",
    "friendly_mean": "a mechanism of its own: its filter is tested on enumerated neighbours",
    "friendly_clusters": "random parts, then the mechanism of friendly_mean",
    "holdout": "an open run, whose noisy threshold is in no ledger; its law is enumerated",
    "subsample_test": "rows are put into random parts, which a repetition puts otherwise",
    "m_estimate": "the estimating equations of robust, with a table of the caller's",
    "erm": "a minimiser with noise in its objective: its law has a test by quadrature",
    "network": "sampled gradients: their price is a loss distribution, tested by itself",
    "accuracy": "a count of right predictions, as count",
    "tune": "hidden runs of other procedures, which no transcript shows",
}


def procedure(name: str) -> Callable[..., Any]:
    """The public function of a name."""
    found: Callable[..., Any] = next(
        resolve(record.function) for record in RECORDS if record.name == name
    )
    return found
