"""Tables by keys that nobody declared: how the question is built from public facts,
and what to expect of it.
"""

from __future__ import annotations

from fractions import Fraction

from discreet.accounting.calibration.thresholds import thresholded_counts
from discreet.accounting.guarantees import ApproxDP, Guarantee
from discreet.asking.cells import By, Cells, Where, cells_by, cells_where, wanted_by
from discreet.asking.noise_choice import require_spend
from discreet.errors import InvalidParameter
from discreet.exact import rational
from discreet.schema import Open, Schema
from discreet.specs.queries.open_keys import OpenCounts
from discreet.trusted.release import Description, PublicFacts, Question


def open_columns(schema: Schema, by: By) -> tuple[str, ...]:
    """The columns of `by` whose values nobody listed."""
    return tuple(name for name, _ in wanted_by(schema, by) if isinstance(schema[name], Open))


def open_table_question(
    public: PublicFacts,
    column: str | None,
    *,
    by: By,
    spend: Guarantee,
    where: Where | None,
    delta: object,
) -> Question:
    """Counts by undeclared keys, crossed with declared ones where `by` names some."""
    schema = public.schema
    wanted = wanted_by(schema, by)
    names = tuple(name for name, _ in wanted)
    opened = open_columns(schema, by)
    if column is not None:
        raise InvalidParameter(
            f"the mean of {column!r} by {', '.join(map(repr, opened))}",
            "the keys are not declared",
            "only counts of undeclared keys have a theorem here",
            "find the keys with dp.table(session, by=…, delta=…), declare them as "
            "dp.Category(keys) in a data set that shares the ledger, and ask for the means there",
        )
    for name, bins in wanted:
        if name in opened and bins is not None:
            raise InvalidParameter(
                f"bins of {name!r}",
                "it is declared as Open",
                "nobody has listed its values, so it has no bins",
                "leave bins out",
            )
    declared = [(name, bins) for name, bins in wanted if name not in opened]
    groups = cells_by(schema, dict(declared)) if declared else Cells()
    subset = cells_where(schema, where)
    chosen = required_delta(require_spend(spend), delta, opened)
    query = OpenCounts(opened, groups.keys + subset.keys)
    labels = dict(zip(groups.by, groups.labels, strict=True))
    asked = Description(
        "open table", None, names, tuple(labels.get(name, ()) for name in names), subset.where
    )
    return Question(
        asked,
        query,
        thresholded_counts(query.sensitivity(public.neighbors), spend, chosen),
        spend,
        chosen,
    )


def required_delta(spend: Guarantee, delta: object, opened: tuple[str, ...]) -> Fraction:
    """δ₀ as given, a tenth of an (ε, δ) spend's own δ, or the refusal that says how to give one."""
    if delta is not None:
        return rational(delta, "delta=")
    if isinstance(spend, ApproxDP):
        return rational(spend.delta, "delta") / 10
    raise InvalidParameter(
        f"by={', '.join(map(repr, opened))}",
        f"its keys are not declared, and neither delta= nor a delta in the spend ({spend}) was "
        "given",
        "undeclared keys would show who is in the data; a key that one person alone holds is "
        "shown with probability at most delta",
        "pass delta=, for example 1e-8, or declare the column as dp.Category(levels), which needs "
        "none",
    )
