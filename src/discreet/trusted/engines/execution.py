"""Who carries out a plan: an engine by itself, or an extension over it, found by the plan's type.

An extension is loaded when its first plan comes, from the one table below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.specs.aggregation.friends import ClippedPlan, FriendsPlan
from discreet.specs.aggregation.part_outputs import OutputsPlan
from discreet.specs.estimating.model import EstimatingPlan
from discreet.specs.estimating.networks import NetworkPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.hidden_runs import RunsPlan
from discreet.specs.holdout.surprises import RowsPlan
from discreet.specs.queries.cell_states import StatesPlan
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.marginals import TablesPlan
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.scores import ScoresPlan
from discreet.specs.queries.unit_sums import UnitSumsPlan
from discreet.trusted.engines.engine import Engine
from discreet.trusted.later import later


def execute(engine: Engine, plan: Any, source: Any = None, session: Any = None) -> Any:
    """What an engine gives for a plan.

    `source` gives random bits to the two plans that put rows into parts at random, and `session`
    opens accounts for the one plan that runs whole procedures; no other plan is handed them.
    """
    if hasattr(engine, "carried") and not isinstance(plan, (ScoresPlan, RunsPlan)):
        return engine.carried(plan)
    if isinstance(plan, SumsPlan):
        return engine.sums(plan)
    if isinstance(plan, GramPlan):
        return engine.gram(plan)
    if isinstance(plan, HistogramPlan):
        return engine.histogram(plan)
    if isinstance(plan, ScoresPlan):
        return [engine.sums(part) for part in plan.plans]
    if isinstance(plan, RunsPlan):
        return engine, session
    if isinstance(plan, PartsPlan):
        return _REJECTIONS(engine, plan, source)
    if isinstance(plan, OutputsPlan):
        return execute(_OUTPUTS(engine, plan, source), plan.about)
    return EXTENSIONS[type(plan)](engine, plan)


_REJECTIONS = later("discreet.trusted.extensions.part_tests", "rejecting_parts")
_OUTPUTS = later("discreet.trusted.aggregation.part_outputs", "output_table")
_MODEL_SUMS = later("discreet.trusted.extensions.estimating.reading", "model_sums")
EXTENSIONS: dict[type[Any], Callable[[Engine, Any], Any]] = {
    EstimatingPlan: _MODEL_SUMS,
    ResidualPlan: _MODEL_SUMS,
    NetworkPlan: _MODEL_SUMS,
    OpenPlan: later("discreet.trusted.extensions.open_keys.counts", "key_counts_of"),
    StatesPlan: later("discreet.trusted.extensions.cell_states", "state_counts"),
    RowsPlan: later("discreet.trusted.aggregation.holdout.row_functions", "row_sums"),
    UnitSumsPlan: later("discreet.trusted.extensions.unit_sums", "unit_sums"),
    FriendsPlan: later("discreet.trusted.aggregation.friends.rows", "friendly_core"),
    ClippedPlan: later("discreet.trusted.aggregation.friends.rows", "clipped_sums"),
    TablesPlan: later("discreet.trusted.aggregation.tables", "table_counts"),
}
