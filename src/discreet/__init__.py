"""discreet: differentially private statistical inference,
with intervals that are right and privacy that is proven.

    import discreet as dp

    people = dp.load_census()
    data = dp.from_frame(
        people.frame, name="census", schema={"income": dp.Real(0, 200_000)}, neighbors=dp.Replace()
    )
    session = data.open(budget=dp.ApproxDP(epsilon=1, delta=1e-6), ledger="census.ledger")
    print(dp.mean(session, "income", spend=dp.GDP(0.1), key="mean income").summary())

Names are imported on first use, so that importing discreet costs little more than importing numpy;
`__init__.pyi` says them to type checkers.
"""

from __future__ import annotations

from typing import Any

from discreet.asking.records import RECORDS, resolve

__version__ = "0.3.0"

# the public names that are no estimators, by their modules; estimators have records
_HOMES = {
    "accounting.explain": ("explain",),
    "accounting.composition": ("compose",),
    "accounting.guarantees": ("ApproxDP", "GDP", "PureDP"),
    "accounting.plan": ("plan", "rows_needed"),
    "accounting.loss_distributions.curve": ("PLD",),
    "accounting.renyi.rdp": ("RDP", "ZCDP"),
    "accounting.tradeoff.curve": ("TradeOff",),
    "asking.declarations": ("declare", "write_declaration"),
    "asking.sources": ("read",),
    "asking.preview": ("Assumptions", "preview"),
    "asking.reading": ("from_json",),
    "asking.release_plans": ("ReleasePlan", "read_plan"),
    "audits.audit": ("audit",),
    "bundled.tables": ("BundledTable", "load_census", "load_visits"),
    "errors": (
        "BudgetExceeded",
        "DataShapeRefused",
        "DiscreetError",
        "InsecureNoise",
        "InvalidParameter",
        "LedgerRefused",
        "MissingExtra",
        "NeighborsMissing",
        "NoTheorem",
        "NotAnswered",
        "ReleaseFailed",
        "ServiceRefused",
        "SourceChanged",
        "UndeclaredColumn",
        "UnknownName",
        "WrongColumnKind",
    ),
    "estimators.hypotheses.power": ("power", "sample_size", "smallest_effect", "spend_needed"),
    "estimators.selection": ("Watch",),
    "inference.counts.selection": ("SelectionResult",),
    "inference.posteriors.families": (
        "BetaBinomial",
        "DirichletMultinomial",
        "GammaPoisson",
        "LinearModel",
        "NormalModel",
    ),
    "inference.results.results": ("Result",),
    "models.trials.tune": ("trial",),
    "models.solvers": ("GradientDescent", "MayNotConverge", "Newton", "SGD"),
    "neighbors": ("AddRemove", "Replace"),
    "remote.connection": ("connect",),
    "schema": ("Boolean", "Category", "Date", "Datetime", "Integer", "Open", "Real", "Schema"),
    "trusted.datasets": ("Dataset", "from_arrays", "from_frame", "read_csv", "read_parquet"),
    "trusted.ledger.core": ("Ledger",),
    "trusted.cluster.spark": ("from_spark",),
    "trusted.scale.sources": ("from_batches", "from_database"),
    "trusted.release": ("Release",),
    "trusted.session": ("Session",),
}
_PLACES = {name: f"{home}:{name}" for home, names in _HOMES.items() for name in names}
_PLACES |= {record.name: record.function for record in RECORDS}
__all__ = [*sorted(_PLACES)]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    if name == "attacks":
        import discreet.attacks

        return discreet.attacks
    if name not in _PLACES:
        from discreet.errors.calls import unknown_name

        raise unknown_name(name, __all__)
    value = resolve(_PLACES[name])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
