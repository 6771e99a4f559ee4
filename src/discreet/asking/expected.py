"""What data as assumed would release without noise, one function a query;
the same inference as a real release's says what it is worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from discreet.asking.preview import Assumptions, Preview, forecasts_of
from discreet.asking.records import result_class
from discreet.asking.sessions import Session
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text
from discreet.inference.counts.open_keys import show_probability
from discreet.specs.mechanisms.additive import AdditiveNoise
from discreet.specs.mechanisms.cut_tulap import CutTulapNoise
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.symmetric import SymmetricGaussianNoise
from discreet.specs.queries.cell_states import CellStates
from discreet.specs.queries.differences import DifferenceMoments
from discreet.specs.queries.keys import cell_count, filtered
from discreet.specs.queries.moments import Moments
from discreet.specs.queries.pairs import PairMoments
from discreet.specs.queries.shares import ShareCounts
from discreet.specs.queries.sums import Sum
from discreet.specs.queries.trees import TreeCounts
from discreet.specs.queries.unit_sums import UnitShares, UnitSums
from discreet.specs.statistics import Histogram
from discreet.trusted.losses.pricing import guarantee_of
from discreet.trusted.release import PublicFacts, Question, Release

TYPICAL_SHARE = 0.05  # of the rows, in a key that nobody declared


def expected_preview(
    session: Session, question: Question, assume: Assumptions, level: float
) -> Preview:
    """The forecast of one release: its result's quantities, of the expected release."""
    release, words = expected_release(session.public, question, assume)
    return release_preview(session, question, (release, words), level)


def release_preview(
    session: Session, question: Question, expected: tuple[Release, str], level: float
) -> Preview:
    """The forecast of a question from the release that is expected of it and the assumptions in
    words.
    """
    release, words = expected
    made = result_class(question.description.estimator)(release)
    price = session.price(question)
    return Preview(
        question,
        forecasts_of(made.quantities(level)),
        str(price),
        session.ledger.how_many(price),
        words,
        level,
    )


def imagined_release(public: PublicFacts, question: Question, integers: Iterable[int]) -> Release:
    """A release that nobody made: the question, with these integers as its answer."""
    return Release(
        question.description,
        question.query,
        question.mechanism,
        tuple(integers),
        public.neighbors,
        question.spend,
        guarantee_of(question.mechanism),
        public.count,
        "preview",
        0,
        "",
    )


def expected_rows(public: PublicFacts, assume: Assumptions) -> float:
    """The number of rows where it is public, else the assumed one."""
    rows = public.rows if public.rows is not None else assume.rows
    if rows is None:
        raise InvalidParameter(
            "preview",
            "the number of rows is private here",
            "the forecast needs one",
            "pass assume=dp.Assumptions(rows=…) with your own guess",
        )
    return float(rows)


def expected_release(
    public: PublicFacts, question: Question, assume: Assumptions
) -> tuple[Release, str]:
    """The release that data as assumed would give without noise, and the assumptions in words."""
    query = question.query
    if query.kind == "open counts":
        return _expected_keys(public, question, rows=assume.rows, share=assume.share)
    rows = expected_rows(public, assume)
    if isinstance(query, DifferenceMoments):  # as of one column, whose values are the differences
        question = replace(question, query=query.moments)
        query = query.moments
    statistic: Any
    if isinstance(query, Moments) or (isinstance(query, UnitSums) and query.factor is not None):
        statistic, words = _expected_moments(query, rows, assume)
    elif isinstance(query, PairMoments):
        statistic, words = _expected_pairs(query, rows, assume)
    elif isinstance(query, TreeCounts):
        statistic, words = _expected_tree(query, rows, assume)
    elif isinstance(query, CellStates):
        statistic, words = _expected_states(query, rows, assume)
    else:
        statistic, words = _expected_counts(question, rows, assume)
    mechanism = question.mechanism
    assert isinstance(mechanism, (AdditiveNoise, CutTulapNoise, SymmetricGaussianNoise))
    cut = 1 << mechanism.refinement
    release = imagined_release(public, question, (value * cut for value in statistic))
    return release, f"{int(rows)} rows, {words}"


def _expected_counts(question: Question, rows: float, assume: Assumptions) -> tuple[list[int], str]:
    """Counts of cells: the assumed share in the first, the rest alike in the others, and no row
    without a value.
    """
    query = question.query
    absent = isinstance(query, Sum) and query.absent
    cells = query.size - absent
    if isinstance(query, (UnitSums, UnitShares)):
        cells = cell_count(query.keys)
    halves = cells <= 2 and question.description.estimator in ("count", "proportion")
    usual = 0.5 if halves else 1 / cells
    first = usual if assume.share is None else assume.share
    shares = np.full(cells, (1 - first) / max(cells - 1, 1))
    shares[0] = first
    words = f"a share of {first:.3g}" + (" in the first cell" if cells > 1 else "")
    counts = [round(rows * float(share)) for share in shares] + [0] * absent
    sums = np.array(counts, dtype=object)[:, None]
    if isinstance(query, (UnitSums, UnitShares)):
        return query.assemble(_alike(sums, query.rows)), words + _ALIKE
    return query.assemble(sums) if isinstance(query, ShareCounts) else counts, words


_ALIKE = ", the rows of a unit alike"


def _alike(sums: Any, rows: int) -> Any:
    """Sums over units with so many equal rows each, out of power sums over rows."""
    pairs = [sums[:, 0], rows * sums[:, 0], rows * sums[:, 0]]
    codes = [sums[:, 1], rows * sums[:, 1], rows * sums[:, 2]] if sums.shape[1] > 1 else []
    return np.column_stack(pairs + codes)


def _expected_states(query: CellStates, rows: float, assume: Assumptions) -> tuple[list[int], str]:
    """The assumed share of every column's cells (a twentieth) in every state."""
    share = 0.05 if assume.share is None else float(assume.share)
    counts = [round(rows)] + [round(rows * share)] * (query.size - query.count)
    return query.assemble(np.array(counts, dtype=object)), f"a share of {share:.3g} in each state"


def _expected_moments(
    query: Moments | UnitSums, rows: float, assume: Assumptions
) -> tuple[list[int], str]:
    """The power sums of codes by cell, of a normal law with the assumed mean and standard
    deviation.
    """
    assert query.factor is not None, "moments of no column"
    encoding = query.factor.encoding
    half_range = encoding.high * float(encoding.step)
    deviation = float(
        assume.standard_deviation if assume.standard_deviation is not None else half_range / 2
    )
    mean = float(assume.mean if assume.mean is not None else encoding.center)
    m, s = (mean - encoding.center) * encoding.per_unit, deviation * encoding.per_unit
    part = query.cells > 1 or filtered(query.keys)
    usual = 1 / query.cells if query.cells > 1 else 0.5 if part else 1.0
    share = usual if assume.share is None else float(assume.share)
    powers = (1.0, m, m**2 + s**2, m**3 + 3 * m * s**2, m**4 + 6 * m**2 * s**2 + 3 * s**4)[
        : 3 if isinstance(query, UnitSums) else query.design.degree + 1
    ]
    sums = np.array(
        [[round(rows * share * power) for power in powers] for _ in range(query.cells)],
        dtype=object,
    )
    words = f"mean {mean:.6g}, standard deviation {deviation:.6g}" + (
        f", a share of {share:.3g} in a cell" if part else ""
    )
    if isinstance(query, UnitSums):
        return query.assemble(_alike(sums, query.rows)), words + _ALIKE
    return query.assemble(sums), words


def _expected_pairs(query: PairMoments, rows: float, assume: Assumptions) -> tuple[list[int], str]:
    """The statistic of independent normal columns with the assumed mean and standard deviation
    (a quarter of each range).
    """
    part = filtered(query.keys)
    share = 1.0 if not part else float(assume.share if assume.share is not None else 0.5)
    powers = []
    for factor in query.factors:
        grid = factor.encoding
        center = 0.0 if assume.mean is None else (float(assume.mean) - grid.center) * grid.per_unit
        spread = (
            grid.high / 2
            if assume.standard_deviation is None
            else float(assume.standard_deviation) * grid.per_unit
        )
        powers.append(
            (
                1.0,
                center,
                center**2 + spread**2,
                center**3 + 3 * center * spread**2,
                center**4 + 6 * center**2 * spread**2 + 3 * spread**4,
            )
        )
    sums = {
        term: round(rows * share * math.prod(powers[j][term.count(j)] for j in set(term)))
        for term in query.terms()
    }
    words = "uncorrelated columns with a standard deviation of " + (
        "a quarter of each range"
        if assume.standard_deviation is None
        else f"{float(assume.standard_deviation):.6g}"
    )
    return query.arrange(sums), words + (f", a share of {share:.3g} in the filter" if part else "")


def _expected_tree(query: TreeCounts, rows: float, assume: Assumptions) -> tuple[list[int], str]:
    """The counts that a normal law with the assumed mean and standard deviation would give,
    and the assumptions in words.
    """
    low, high = query.value(0), query.value(query.cells - 1)
    mean = float(assume.mean if assume.mean is not None else (low + high) / 2)
    deviation = float(
        assume.standard_deviation if assume.standard_deviation is not None else (high - low) / 4
    )
    part = filtered(query.keys)
    share = float(assume.share) if assume.share is not None else (0.5 if part else 1.0)
    ends = [
        query.value((leaf + 1) * query.width - 0.5)
        for leaf in range(-(-query.cells // query.width) - 1)
    ]
    before = np.array(
        [0.0, *(math.erfc((mean - end) / (deviation * math.sqrt(2))) / 2 for end in ends), 1.0]
    )
    counts = np.diff(np.round(rows * share * before)).astype(np.int64)
    places = np.arange(len(counts), dtype=np.int64) * query.width
    words = f"mean {mean:.6g}, standard deviation {deviation:.6g}" + (
        f", a share of {share:.3g} of the rows" if part else ""
    )
    return query.assemble(Histogram(query.cells, places, counts)), words


def _expected_keys(
    public: PublicFacts, question: Question, *, rows: float | None, share: float | None
) -> tuple[Release, str]:
    """A release that shows one key as the caller imagines it,
    and in words what is assumed and from which size on keys appear.
    """
    mechanism = question.mechanism
    assert isinstance(mechanism, ThresholdedCounts)
    least, known = float(mechanism.least_shown), public.rows if public.rows is not None else rows
    if known is None:
        size, text = 2 * least, "a key of twice the threshold"
    else:
        part = TYPICAL_SHARE if share is None else float(share)
        size, text = float(known) * part, f"{int(known)} rows, a key with a share of {part:.3g}"
    chance = float(show_probability(mechanism, size))
    unit = (
        "a key that one row alone holds"
        if mechanism.sensitivity.rows == 1
        else "a key that one unit alone holds"
    )
    loss = decimal_text(question.delta)
    text += (
        f" ({size:.0f} rows: it appears with probability {chance:.3g}). A key is shown if its "
        f"noisy count reaches {least:.4g}: keys with fewer than about "
        f"{least:.0f} rows are unlikely to appear, and {unit} appears with probability at most "
        f"{loss}"
    )
    shown = max(mechanism.threshold, round(size) << mechanism.noise.refinement)
    plan = question.query.plan()
    name = plan.name(("a key",) * len(plan.open), 0)
    release = imagined_release(public, question, (shown,))
    return replace(release, delta=question.delta, found=(name,)), text
