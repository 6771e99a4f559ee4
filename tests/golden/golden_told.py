"""What a golden case records of an object: JSON, texts, figures and the ledger, as plain values.

Fields that are random outside the seed are replaced, by this list and nothing else:

    RANDOM_FIELDS       of JSON texts: `entry_hash` (it seals a time). Simulated p-values and the
                        public uniform numbers of geometric counts start from it, so that figures
                        are those of the result read back with a hash of zeros (`settled`)
    RANDOM_KEY          of keys: one that was not given is 32 random digits
    RANDOM_IN_ENTRIES   of a ledger's requests: `data`, a random token in memory and a path for
                        files; of its first entry: `ledger`, its random id
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

import discreet as dp

RANDOM_FIELDS = ("entry_hash",)
RANDOM_IN_ENTRIES = ("data", "ledger")
ENTRY_HASH = re.compile(r'"entry_hash": "[0-9a-f]{64}"')
RANDOM_KEY = re.compile(r"[0-9a-f]{32}")
PROPERTIES = (
    "params",
    "std_errors",
    "noise_share",
    "estimate",
    "std_error",
    "unbiased",
    "on_simplex",
    "labels",
    "cov",
    "names",
    "rows",
    "sampling_errors",
    "privacy_errors",
    "noise_to_signal",
    "z_values",
    "p_values",
    "scale",
    "converged",
    "resolved",
    "condition_number",
    "noise_class",
    "trajectory",
    "p_value",
    "null",
    "matrix",
    "points",
    "edges",
    "released",
    "q",
    "chosen",
    "candidates",
    "method",
    "unit",
    "threshold",
    "above",
    "hits",
    "unanswered",
    "range",
    "half_width",
    "groups",
    "inner",
    "centre",
    "relative_scale",
    "power",
    "nonprivate",
    "randomised",
    "headline",
    "noise",
    "width",
    "how_many",
    "price",
    "widths",
    "noise_index",
    "score_gap",
    "title",
    "sigma",
    "steps",
    "sampling_rate",
    "epsilon",
    "delta",
)

IN_RECORDS = ("params", "std_errors", "std_error", "noise_share", "estimate")


def plain(value: Any) -> Any:
    """A value as what JSON can hold; floats keep all their bits, fractions are text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, np.ndarray):
        return [plain(one) for one in value.tolist()]
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value) and not hasattr(value, "to_json"):
        if hasattr(value, "to_dict"):
            return plain(value.to_dict())
        # what two values are not compared by is for pictures alone
        names = [field.name for field in dataclasses.fields(value) if field.compare]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, (dp.Release, dp.Result)):
        return None
    return str(value)


def stripped(record: Any) -> Any:
    """A parsed JSON text without what is random outside the seed."""
    if isinstance(record, dict):
        return {name: _stripped(name, one) for name, one in record.items()}
    return [stripped(one) for one in record] if isinstance(record, list) else record


def _stripped(name: str, value: Any) -> Any:
    if name in RANDOM_FIELDS:
        return "…"
    if name == "key" and isinstance(value, str):
        return RANDOM_KEY.sub("…", value)
    return stripped(value)


def refusal(error: Exception) -> dict[str, str]:
    """A refusal, by its class and its text."""
    return {"refused": type(error).__name__, "text": RANDOM_KEY.sub("…", str(error))}


def attempt(call: Callable[[], Any]) -> Any:
    """What a call gives, as plain values, or its refusal."""
    try:
        return plain(call())
    except dp.DiscreetError as error:
        return refusal(error)


def settled(result: Any) -> Any:
    """A result with a fixed hash of its ledger entry, which simulations of p-values start from."""
    if not isinstance(result, dp.Result):
        return result
    return dp.from_json(ENTRY_HASH.sub(f'"entry_hash": "{"0" * 64}"', result.to_json()))


def told(result: Any, *, full: bool = True) -> dict[str, Any]:
    """All that is recorded of a result; without `full`, what does not follow from the rest."""
    record: dict[str, Any] = {}
    if hasattr(result, "to_json"):
        record["json"] = stripped(json.loads(result.to_json()))
    releases = getattr(result, "releases", None) or [getattr(result, "release", None)]
    record["integers"] = [[str(number) for number in one.integers] for one in releases if one]
    guarantees = [one.guarantee for one in releases if one]
    record["guarantees"] = [str(one) for one in guarantees]
    if hasattr(result, "guarantee"):
        record["guarantee"] = str(result.guarantee)
    if not full:
        return record
    result = settled(result)
    record["text"] = str(result)
    record["figures"] = figures(result)
    return record


def figures(result: Any) -> dict[str, Any]:
    """Everything that a result says by properties and tables."""
    found: dict[str, Any] = {}
    for name in PROPERTIES:
        if isinstance(result, dp.Result) and name in IN_RECORDS:
            continue
        try:
            value = getattr(result, name, None)
        except dp.DiscreetError as error:
            value = refusal(error)
        if value is not None and not callable(value):
            found[name] = plain(value)
    if hasattr(result, "records"):
        found["records"] = attempt(lambda: result.records(0.9))
        if isinstance(result, dp.Result):
            found["records of the data"] = attempt(lambda: result.records(0.9, target="data"))
    return found


def ledger_told(ledger: Any) -> dict[str, Any]:
    """The balance and every entry: kind, key, exact amounts, and a digest of what it binds."""
    entries, digests = [], []
    for entry in ledger.entries():
        body = entry.body
        if entry.kind in ("open", "debit"):
            parsed = json.loads(body)
            request = {name: one for name, one in parsed.items() if name not in RANDOM_IN_ENTRIES}
            body = json.dumps(request, sort_keys=True)
        key, amounts = RANDOM_KEY.sub("…", entry.key), plain(entry.amounts.exact())
        entries.append(
            [entry.kind, key, {name: one for name, one in amounts.items() if one != "0"}]
        )
        digests.append(digest(body))
    balance = {
        "spent": plain(ledger.spent().exact()),
        "remaining": plain(ledger.remaining().exact()),
        "reserved": plain(ledger.reserved().exact()),
        "guarantee": ledger.guarantee(),
        "verified": bool(ledger.verify().ok),
    }
    return {"entries": entries, "digests": digests, "balance": balance}


def digest(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:20]
