"""Public functions: from a spec and reports to a result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.errors import DiscreetError, InvalidParameter, NoTheorem
from discreet.local.collected import Collected, collect, collected_from_dict
from discreet.local.differences import Difference, difference
from discreet.local.means import LocalMean
from discreet.local.results import RESULT_FORMAT, LocalResult
from discreet.local.shares import LocalShares
from discreet.specs.mechanisms.local import (
    GaussianResponse,
    LaplaceResponse,
    LocalSpec,
    OneBitResponse,
    checked_spec,
)
from discreet.trusted.losses.pricing import guarantee_of

_MEASURED = (OneBitResponse, LaplaceResponse, GaussianResponse)


def shares(spec: LocalSpec, reports: Iterable[Any] | Collected) -> LocalShares:
    """The share of every declared value: from JSON reports, an array of answers,
    or what `collect` kept of them.
    """
    if isinstance(checked_spec(spec), _MEASURED):
        raise NoTheorem(
            "shares",
            f"reports of {spec.kind} are about a number",
            "they do not show how often a value occurs",
            "use local.mean(spec, reports)",
        )
    return LocalShares(collect(spec, reports))  # type: ignore[arg-type]


def mean(spec: LocalSpec, reports: Iterable[Any] | Collected) -> LocalMean:
    """The mean of a bounded number: from JSON reports, an array of answers,
    or what `collect` kept of them.
    """
    if not isinstance(checked_spec(spec), _MEASURED):
        raise NoTheorem(
            "a mean",
            f"reports of {spec.kind} are about levels",
            "levels have no mean",
            "use local.shares(spec, reports)",
        )
    return LocalMean(collect(spec, reports))  # type: ignore[arg-type]


def guarantee(spec: LocalSpec) -> Guarantee:
    """What one report promises to the person who sends it, whoever collects it: her value could
    have been any other. Reports of one person compose.
    """
    return guarantee_of(checked_spec(spec))


def result_from_json(text: str) -> LocalResult | Difference:
    """The result that `to_json` of a result wrote; `dp.from_json` reads these texts too."""
    try:
        record = json.loads(text)
        if isinstance(record, dict) and record.get("discreet") == RESULT_FORMAT:
            if record["what"] == Difference.what:
                first, second = (
                    LocalShares(collected_from_dict(group)) for group in record["groups"]
                )
                return difference(first, second, label=record["label"])
            made = collected_from_dict(record["collected"])
            return {LocalShares.what: shares, LocalMean.what: mean}[record["what"]](made.spec, made)
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RecursionError,
        DiscreetError,
    ):
        pass
    raise InvalidParameter(
        "from_json",
        f"this is not a text of {RESULT_FORMAT}",
        "another layout could be read wrongly",
        "pass what to_json() of this version wrote",
    )
