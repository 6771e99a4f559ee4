"""Dates and times as whole seconds since 1970-01-01, and the calendar periods of a public range.

    seconds_of_text   ISO 8601 text: 2024-03-01, 2024-03-01T08:30, 2024-03-01 08:30:15.25+01:00
    seconds_of        text, a `datetime.datetime` or a `datetime.date`; None for anything else
    cuts              where the periods of a range begin (years, quarters, months, days)
    cycle             which weekday, or hour, a whole number of a range falls on

A time with an offset or a time zone is the instant, in UTC; one without is taken as it stands. That
is the one rule that all sources can follow: a file of Parquet keeps the instant and not the zone in
which each cell was written. Whoever means local days turns the column into local time without a
zone before it is declared. Parts of a second are dropped (rounded down). Years are 1 to 9999, days
and hours those of the Gregorian calendar, without leap seconds.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any, Literal, get_args

DAY = 86_400
Period = Literal["year", "quarter", "month", "day"]
Cycle = Literal["weekday", "hour"]
PERIODS: tuple[str, ...] = get_args(Period)
CYCLES: tuple[str, ...] = get_args(Cycle)
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_EPOCH = datetime.datetime(1970, 1, 1)
_TEXT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,][0-9]+)?)?"
    r"(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_DATE, _TIME = ("year", "month", "day"), ("hour", "minute", "second")


def seconds_of_text(text: str) -> int | None:
    """ISO 8601 text (spaces around it allowed) as seconds since 1970, None where it is none."""
    found = _TEXT.fullmatch(text.strip(" "))
    if found is None:
        return None
    try:
        parts: list[Any] = [int(part or 0) for part in found.groups()[:6]]
        moment = datetime.datetime(*parts)
    except ValueError:  # a thirteenth month
        return None
    return _seconds(moment) - _offset(found[7] or "Z")


def _offset(text: str) -> int:
    digits = text[1:].replace(":", "").ljust(4, "0")
    size = int(digits[:2]) * 3600 + int(digits[2:]) * 60 if text != "Z" else 0
    return -size if text.startswith("-") else size


def seconds_of(value: Any) -> int | None:
    """A date, a time or ISO text as seconds since 1970, None for anything else.

    The value's own methods are not asked, and whatever reading it raises is caught.
    """
    kind = type(value)
    try:
        if issubclass(kind, str):
            return seconds_of_text(str.__str__(value))
        if not issubclass(kind, datetime.date):
            return None
        if kind.__name__ == "NaTType":  # pandas' missing time, which says that it is a datetime
            return None
        parts: list[Any] = [getattr(datetime.date, name).__get__(value) for name in _DATE]
        if not issubclass(kind, datetime.datetime):
            return _seconds(datetime.datetime(*parts))
        parts += [getattr(datetime.datetime, name).__get__(value) for name in _TIME]
        zone: Any = getattr(datetime.datetime, "tzinfo").__get__(value)  # noqa: B009
        moment = datetime.datetime(*parts).replace(fold=datetime.datetime.fold.__get__(value))
        if zone is None:
            return _seconds(moment)
        if type(zone) is not datetime.timezone and type(zone) is not zoneinfo.ZoneInfo:
            return None  # what another class of zones would do is not known
        shift = moment.replace(tzinfo=zone).utcoffset() or datetime.timedelta()
        return _seconds(moment) - shift.days * DAY - shift.seconds
    except Exception:  # decided by this value alone
        return None


def _seconds(moment: datetime.datetime) -> int:
    since = moment - _EPOCH
    return since.days * DAY + since.seconds


def text_of(seconds: int, size: int) -> str:
    """The ISO text of a moment: the day where `size` is one, else day and time."""
    moment = _EPOCH + datetime.timedelta(seconds=seconds)
    return moment.date().isoformat() if size == DAY else moment.isoformat(sep=" ")


def text_at(origin: str, number: float) -> str:
    """The date, or time, that a number counts to from an origin (days where that is a day)."""
    begin, size = seconds_of_text(origin), DAY if len(origin) == len("2024-01-31") else 1
    try:
        return text_of((begin or 0) + round(number) * size, size)
    except (OverflowError, ValueError):  # no number, or beyond the calendar
        return f"{number:g}"


def units_of(origin: str) -> str:
    """What numbers from an origin count: "days since 2024-01-31"."""
    return f"{'days' if len(origin) == len('2024-01-31') else 'seconds'} since {origin}"


def cuts(period: Period, low: int, high: int) -> list[tuple[int, str]]:
    """The periods of a calendar from second `low` to second `high`: where each begins
    (the first at `low`) and its label.
    """
    found = []
    moment, last = (_EPOCH + datetime.timedelta(seconds=end) for end in (low, high))
    while moment <= last:
        found.append((_seconds(moment), _label(period, moment)))
        following = _following(period, moment)
        if following is None:
            break
        moment = following
    return found


def _label(period: Period, moment: datetime.datetime) -> str:
    if period == "quarter":
        return f"{moment.year:04d}-Q{(moment.month + 2) // 3}"
    return moment.date().isoformat()[: {"year": 4, "month": 7, "day": 10}[period]]


def _following(period: Period, moment: datetime.datetime) -> datetime.datetime | None:
    """The beginning of the next period; None after the year 9999."""
    day = datetime.datetime(moment.year, moment.month, moment.day)
    try:
        if period == "day":
            return day + datetime.timedelta(days=1)
        months = {"year": 12, "quarter": 3, "month": 1}[period]
        place = (12 * day.year + day.month - 1) // months * months + months
        return datetime.datetime(place // 12, place % 12 + 1, 1)
    except (OverflowError, ValueError):
        return None


def cycle(name: Cycle, low: int, size: int) -> tuple[int, int, tuple[str, ...]]:
    """(shift, step, labels) of a cycle: a number v of a range that begins at second `low`, in units
    of `size` seconds, falls on labels[(v + shift) // step mod len(labels)].
    """
    into_day = low % DAY // size
    if name == "hour":
        return into_day, 3600 // size, tuple(f"{hour:02d}" for hour in range(24))
    weekday = (low // DAY + 3) % 7  # 1970 began on a Thursday
    return weekday * (DAY // size) + into_day, DAY // size, WEEKDAYS
