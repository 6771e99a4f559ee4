"""Who carries out a plan: an engine by itself, or an extension over it, found by the plan's type.

An extension is loaded when its first plan comes, from the one table below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.specs.estimating.model import EstimatingPlan
from discreet.specs.estimating.residuals import ResidualPlan
from discreet.specs.hidden_runs import RunsPlan
from discreet.specs.queries.cell_states import StatesPlan
from discreet.specs.queries.histograms import HistogramPlan
from discreet.specs.queries.open_keys import OpenPlan
from discreet.specs.queries.parts import PartsPlan
from discreet.specs.queries.plans import GramPlan, SumsPlan
from discreet.specs.queries.scores import ScoresPlan
from discreet.trusted.engines.engine import Engine


def execute(engine: Engine, plan: Any, source: Any = None, session: Any = None) -> Any:
    """What an engine gives for a plan.

    `source` gives random bits to the one plan that puts rows into parts at random, and `session`
    opens accounts for the one plan that runs whole procedures; no other plan is handed them.
    """
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
        from discreet.trusted.extensions.part_tests import rejecting_parts

        return rejecting_parts(engine, plan, source)
    return EXTENSIONS[type(plan)](engine, plan)


def _model_sums(engine: Engine, plan: EstimatingPlan | ResidualPlan) -> Any:
    from discreet.trusted.extensions.estimating.reading import model_sums

    return model_sums(engine, plan)


def _key_counts(engine: Engine, plan: OpenPlan) -> Any:
    from discreet.trusted.extensions.open_keys.counts import key_counts_of

    return key_counts_of(engine, plan)


def _state_counts(engine: Engine, plan: StatesPlan) -> Any:
    from discreet.trusted.extensions.cell_states import state_counts

    return state_counts(engine, plan)


EXTENSIONS: dict[type[Any], Callable[[Engine, Any], Any]] = {
    EstimatingPlan: _model_sums,
    ResidualPlan: _model_sums,
    OpenPlan: _key_counts,
    StatesPlan: _state_counts,
}
