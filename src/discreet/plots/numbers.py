"""Numbers as they are written in pictures: groups of three, a true minus, powers of ten as such."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

LARGE, SMALL = 1e7, 1e-4  # from here on numbers are written with powers of ten


def number(value: float, like: float | None = None) -> str:
    """A number for people: three digits of `like` (default: itself), groups of three, no e+06."""
    if not np.isfinite(value):
        return "not known" if np.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value) if not like or not np.isfinite(like) else abs(like)
    whole = like is None and value == round(value)
    digits = 0 if size == 0 or whole else 2 - int(np.floor(np.log10(size)))
    power = power_of(abs(value))
    if whole and power:
        digits = 2 - int(np.floor(np.log10(size)))
    return _text(value, power, min(max(0, digits + power), 10))


def interval(low: float, high: float) -> str:
    """Both ends with three digits of their distance, and one power of ten."""
    if not np.isfinite(high - low):
        return f"{number(low)} … {number(high)}"
    power, width = power_of(max(abs(low), abs(high))), high - low
    digits = min(max(0, 2 - int(np.floor(np.log10(width))) + power), 10) if width > 0 else 4
    ends = " … ".join(_text(end / 10.0**power, 0, digits) for end in (low, high))
    return f"{ends} ×10{power_text(power)}" if power else ends


def power_of(greatest: float) -> int:
    """The power of ten that numbers up to this are written with: 0, or a multiple of three."""
    if LARGE <= greatest < np.inf or 0 < greatest < SMALL:
        return 3 * int(np.floor(np.log10(greatest) / 3))
    return 0


def times_text(power: int) -> str:
    """What an axis in powers of ten says: "in millions"; nothing for 0."""
    words = {0: "", 6: "in millions", 9: "in 10⁹"}
    return words.get(power, f"in 10{power_text(power)}")


def power_text(power: int) -> str:
    """A whole number as an exponent."""
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def tick_texts(values: Sequence[float], power: int = 0) -> list[str]:
    """Ticks, divided by a power of ten that the axis names, with as many decimals as tell them
    apart.
    """
    ticks = np.asarray(values, dtype=float) / 10.0**power
    if not ticks.size:
        return []
    gaps = np.diff(np.unique(ticks))
    step = float(gaps.min()) if gaps.size else float(np.abs(ticks).max()) or 1.0
    return [_text(tick, 0, _digits(step)) for tick in ticks]


def _digits(step: float) -> int:
    """Decimals that tell multiples of a step apart."""
    for digits in range(10):
        if abs(round(step, digits) - step) <= 1e-6 * step:
            return digits
    return 10


def _text(value: float, power: int, digits: int) -> str:
    text = f"{value / 10.0**power:,.{digits}f}"
    if not float(text.replace(",", "")):
        return "0"
    plain = text.replace(",", "\u202f").replace("-", "−")
    return plain if not power else f"{plain}×10{power_text(power)}"
