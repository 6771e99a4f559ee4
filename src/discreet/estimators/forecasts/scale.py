"""What dp.iqr and dp.mad would give for normal values as assumed: the searches are run on expected
counts, without noise and without data.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Any

from discreet.asking.expected import expected_rows, imagined_release, release_preview
from discreet.asking.preview import Assumptions, Preview
from discreet.asking.sessions import Session
from discreet.search.policies import Count, History
from discreet.specs.mechanisms.in_turn import AboutCentre, InTurn
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, SmoothNoise
from discreet.specs.mechanisms.search import CountSearch
from discreet.specs.queries.keys import filtered
from discreet.trusted.release import PublicFacts, Question, Release

Below = Callable[[float], float]  # place → expected number of rows in cells before it


def scale_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The forecast of an interquartile range or a median absolute deviation."""
    rows = expected_rows(session.public, assume)
    expected = expected_scale_release(session.public, question, rows, assume)
    return release_preview(session, question, expected, level)


def expected_scale_release(
    public: PublicFacts, question: Question, rows: float, assume: Any
) -> tuple[Release, str]:
    """The release that normal values would give without noise (a quarter of the range as standard
    deviation, if none is assumed).
    """
    query: Any = question.query
    grid = query.factor.encoding
    share = (
        1.0
        if not filtered(query.keys)
        else float(assume.share if assume.share is not None else 0.5)
    )
    mean = float(assume.mean if assume.mean is not None else grid.center)
    deviation = (
        float(assume.standard_deviation)
        if assume.standard_deviation is not None
        else grid.high / grid.per_unit / 2
    )
    law = NormalDist((mean - query.value(0)) / query.step, deviation / query.step)

    def below(place: float) -> float:
        return (
            rows
            * share
            * (0.0 if place <= 0 else 1.0 if place >= query.size else law.cdf(place - 0.5))
        )

    integers = _expected(question.mechanism, below, rows * share, query.size)
    words = (
        f"{int(rows)} rows, normal with mean {mean:.6g} and standard deviation {deviation:.6g}"
        + (f", a share of {share:.3g} in the filter" if filtered(query.keys) else "")
    )
    return imagined_release(public, question, integers), words


def _expected(mechanism: Mechanism, below: Below, rows: float, cells: int) -> tuple[int, ...]:
    if isinstance(mechanism, AboutCentre):
        centre = _quantile(below, rows * mechanism.centre.a / mechanism.centre.b, cells)
        return (
            1,
            centre,
            *_expected(
                mechanism.distances,
                lambda place: (
                    0.0 if place <= 0 else below(centre + place) - below(centre - place + 1)
                ),
                rows,
                cells,
            ),
        )
    assert isinstance(mechanism, InTurn)
    integers: list[int] = []
    for part in mechanism.stages:
        given = (
            _transcript(part, below, rows, cells, tuple(integers))
            if isinstance(part, CountSearch)
            else _expected_answer(part, below, rows, cells)
        )
        integers += (len(given), *given)
    return tuple(integers)


def _expected_answer(part: Any, below: Below, rows: float, cells: int) -> tuple[int, ...]:
    """The integers of a quantile mechanism that answers without noise."""
    cell = _quantile(below, rows * part.a / part.b, cells)
    if isinstance(part, ProposeTestRelease):
        return 1, cell << part.refinement
    return (cell << part.refinement if isinstance(part, SmoothNoise) else cell,)


def _quantile(below: Below, wanted: float, cells: int) -> int:
    """The first cell up to which at least `wanted` rows lie."""
    low, high = 0, cells - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if below(middle + 1) >= wanted else (middle + 1, high)
    return low


def _transcript(
    search: CountSearch, below: Below, rows: float, cells: int, known: tuple[int, ...]
) -> tuple[int, ...]:
    """The questions that the policy would ask and pay for, with the expected counts as answers."""
    left, deviation = search.units, search.noise(1).variance ** 0.5
    integers: list[int] = []
    counts: list[Count] = []
    while left > 0:
        question = search.policy.next(
            History(cells, left, deviation, search.law, tuple(counts), known)
        )
        if question is None or not 1 <= question[1] <= left:
            break
        place, share = min(max(int(question[0]), 0), cells), int(question[1])
        left -= share
        noise = search.noise(share)
        value = search.below * below(place) - search.above * (rows - below(place))
        integers += (place, share, round(value * (1 << noise.refinement)))
        counts.append(Count(place, share, value, noise.variance**0.5))
    return tuple(integers)
