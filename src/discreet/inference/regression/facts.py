"""What a regression's result needs beside its releases:
public facts, decided before or between them.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from discreet.accounting.guarantees import Guarantee, guarantee_from_dict

Facts = TypeVar("Facts")


@dataclass(frozen=True)
class LeastSquares:
    """The estimating function y − η, neither clipped nor weighted."""

    c: float = math.inf
    kind: ClassVar[str] = "least squares"
    residual: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class FitFacts:
    """Public facts of a fit.

    columns          model columns (without the response that the metric's moments have beside them)
    radius           R of the weights; metric_radius that of the metric's rounds,
                     first_radius that of the first of them
    trust            the longest step in the metric, in units of σ (residual families)
    least_moments    public lower limits of the columns' second moments
    response_center, response_half   the middle and half-width of the response's declared range
    bases            columns of levels that leave one out, each with that level
    """

    estimator: str
    spend: Guarantee
    columns: int
    radius: float
    metric_radius: float
    trust: float
    noise_index: float
    least_moments: tuple[float, ...]
    response_center: float
    response_half: float
    first_radius: float = 1.0
    bases: tuple[tuple[str, str], ...] = ()


def facts_to_dict(facts: Any, *left_out: str) -> dict[str, Any]:
    """Facts of any fit as plain values, but for fields that are left out."""
    fields = {field.name: getattr(facts, field.name) for field in dataclasses.fields(facts)}
    record = {name: value for name, value in fields.items() if name not in ("bases", *left_out)}
    return record | {"spend": facts.spend.to_dict()} | bases_record(fields.get("bases", ()))


def facts_from_dict(record: dict[str, Any]) -> FitFacts:
    return facts_as(FitFacts, record)


def facts_as(kind: type[Facts], record: dict[str, Any], **read: Any) -> Facts:
    """The facts of a kind that `facts_to_dict` wrote; `read` are fields that were read already."""
    known: dict[str, Any] = {"spend": guarantee_from_dict(record["spend"])}
    if "least_moments" in record:
        known["least_moments"] = tuple(record["least_moments"])
    if "bases" in record:
        known["bases"] = bases_from(record)
    return kind(**(record | known | read))


def bases_record(bases: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Bases as facts keep them; nothing where there are none, as before they were kept."""
    return {"bases": [list(pair) for pair in bases]} if bases else {}


def bases_from(record: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """The bases that `bases_record` wrote."""
    return tuple((name, level) for name, level in record.get("bases", ()))
