"""How a recomputed case is compared with the recorded one.

Two modes. With DISCREET_GOLDEN=exact in the environment everything is compared exactly, floats by
all their bits: this is for the machine and the versions of numpy, scipy and BLAS that wrote the
record, before and after a change of the code. By default the record is read on any machine:

*   whole numbers, texts of specifications, refusals, guarantees, prices and debits are compared
    exactly. They are computed in exact arithmetic, or with outward rounding by arbitrary-precision
    ball arithmetic;
*   floats that post-processing computes from them agree to a relative 1e-9 (absolute: 1e-9 of the
    largest number beside them, in the same list or record). Other vector instructions and another
    BLAS sum in another order and have other last bits in exp, log and erf; these may be magnified
    by the root finders and quantiles behind an interval, and still leave nine digits unless a
    formula changed;
*   in both modes a text that names a function names the function, whatever module holds it now;
*   numbers printed in a text may differ by one unit of their last printed digit.

Iterative procedures (fits, and means that search for their range) ask their next question at a
place that floats of the last answer led to. On another machine the specifications of later
questions differ in last bits of the numbers they hold, and the digests of their debits with them.
Places are rounded to a grid, so that almost always the whole numbers released are the same; but
rarely a last bit moves a place to the next grid point, and then all later statistics move by a tiny
amount, with the same noise. Equality of their whole numbers is therefore promised in exact mode
alone. By default they must agree to 1e-4 of the largest number beside them, which is far below the
noise on data this small, so that other noise or another step is seen; derived floats likewise. The
digests of their debits are left out; mechanisms, prices and guarantees stay exact.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

EXACT = os.environ.get("DISCREET_GOLDEN", "") == "exact"
RELATIVE, LOOSE = 1e-9, 1e-4
NUMBER = re.compile(r"[-−+]?\d+(?: \d{3})*(?:\.\d+)?(?:e[-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+(?:/\d+)?")
SPACES = re.compile(r"[\s─]+")
MODULE = re.compile(r"\bdiscreet\.(?:[a-z_]+\.)+(?=[a-z_]+\b)")  # where a function stands
LEFT_OUT = "digests"
ALWAYS_EXACT = ("ledger", "guarantee", "guarantees", "mechanism", "spend", "neighbors", "refused")


def differences(
    recorded: Any, found: Any, *, iterative: bool = False, exact: bool = EXACT
) -> list[str]:
    """Where two records differ, as lines to print; none if they agree."""
    texts = [MODULE.sub("", json.dumps(one, sort_keys=True)) for one in (recorded, found)]
    if texts[0] == texts[1]:
        return []
    recorded, found = (json.loads(text) for text in texts)
    tolerance = 0.0 if exact else LOOSE if iterative else RELATIVE
    if tolerance == LOOSE:
        recorded, found = _without(recorded), _without(found)
    return list(_compare("", recorded, found, tolerance, _size([recorded])))


def _without(record: Any) -> Any:
    """A record without digests."""
    if isinstance(record, dict):
        return {name: _without(one) for name, one in record.items() if name != LEFT_OUT}
    return [_without(one) for one in record] if isinstance(record, list) else record


def _compare(where: str, old: Any, new: Any, tolerance: float, size: float) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        size = _size(old.values())
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in new or name not in old:
                yield f"{where}/{name}: only {'recorded' if name in old else 'found'}"
            else:
                allowed = 0.0 if name in ALWAYS_EXACT else tolerance
                yield from _compare(f"{where}/{name}", old[name], new[name], allowed, size)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}: {len(old)} recorded, {len(new)} found"
        size = _size(old)
        for place, (one, other) in enumerate(zip(old, new, strict=False)):
            yield from _compare(f"{where}[{place}]", one, other, tolerance, size)
    elif not _same(where, old, new, tolerance, size):
        yield f"{where}: recorded {_short(old)}, found {_short(new)}"


def _same(where: str, old: Any, new: Any, tolerance: float, size: float) -> bool:
    if type(old) is not type(new):
        numbers = isinstance(old, (int, float)) and isinstance(new, (int, float))
        plain = not isinstance(old, bool) and not isinstance(new, bool)
        return tolerance > 0 and numbers and plain and _close(old, new, tolerance, size)
    if isinstance(old, float):
        if not tolerance:
            return old.hex() == new.hex()
        return _close(old, new, tolerance, size)
    if isinstance(old, str) and tolerance:
        if tolerance == LOOSE and WHOLE.fullmatch(old) and WHOLE.fullmatch(new):
            first, second = (_ratio(text) for text in (old, new))
            return _close(first, second, tolerance, max(size, abs(first)))
        if "/text" in where or tolerance == LOOSE:
            return _same_text(old, new, tolerance)
    if isinstance(old, int) and not isinstance(old, bool) and tolerance == LOOSE:
        return _close(old, new, tolerance, size)
    return bool(old == new)


def _close(old: float, new: float, tolerance: float, size: float) -> bool:
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old) and math.isnan(new)
    return old == new or math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance * size)


def _same_text(old: str, new: str, tolerance: float) -> bool:
    """The same words, and numbers that differ by at most one unit of their last digit."""
    first, second = (SPACES.sub(" ", text).strip() for text in (old, new))
    if NUMBER.sub("#", first) != NUMBER.sub("#", second):
        return False
    pairs = zip(NUMBER.findall(first), NUMBER.findall(second), strict=True)
    return all(one == other or _last_digit(one, other, tolerance) for one, other in pairs)


def _last_digit(one: str, other: str, tolerance: float) -> bool:
    texts = [text.replace(" ", "").replace("−", "-") for text in (one, other)]
    decimals = [len(text.split("e")[0].partition(".")[2]) for text in texts]
    powers = [int(text.partition("e")[2] or 0) for text in texts]
    unit = max(10.0 ** (power - places) for power, places in zip(powers, decimals, strict=True))
    first, second = (float(text) for text in texts)
    loose = tolerance * abs(first) if tolerance == LOOSE else 0.0
    return abs(first - second) <= 1.001 * unit + loose


def _size(values: Iterable[Any]) -> float:
    """The largest finite number among a row's own values, for the absolute tolerance."""
    return max((_amount(value) for value in values), default=0.0)


def _amount(value: Any) -> float:
    if isinstance(value, str) and WHOLE.fullmatch(value):
        return abs(_ratio(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    return abs(float(value)) if math.isfinite(value) else 0.0


def _ratio(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


def _short(value: Any) -> str:
    text = value.hex() + f" = {value!r}" if isinstance(value, float) else repr(value)
    return text if len(text) < 400 else text[:400] + "…"
