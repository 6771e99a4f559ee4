"""Tallies on disk: the places and counts of memory, and the same answers with the same noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.queries.sums import number_factor
from discreet.specs.queries.trees import TreeCounts
from discreet.specs.statistics import Histogram, KeyCounts, histogram_of_cells
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.datasets import Dataset
from discreet.trusted.engines import batches
from discreet.trusted.engines.files import FileEngine
from discreet.trusted.extensions import choices
from discreet.trusted.extensions.data_dependent import order_statistics
from discreet.trusted.extensions.open_keys.counts import KeySums
from discreet.trusted.noise.samplers import apply
from discreet.trusted.noise.search import folded
from discreet.trusted.scale import tallies
from discreet.trusted.scale.limits import Limits
from discreet.trusted.scale.tallies import StoredHistogram, Tally

CELLS = 1 << 32
F, REPLACED = Fraction, Rows(1, "replaced")


def values_of(kind, rows=500):
    rng = np.random.default_rng(rows)
    found = {
        "spread": rng.integers(0, CELLS, rows),
        "tied": rng.integers(2**31, 2**31 + 40, rows),
        "ends": np.where(rng.random(rows) < 0.5, 0, CELLS - 1),
        "normal": (CELLS / 2 + rng.normal(0, 300, rows)).astype(np.int64),
        "one": np.full(rows, 30),
        "none": np.zeros(0, dtype=np.int64),
    }
    return found[kind]


KINDS = ("spread", "tied", "ends", "normal", "one", "none")


def pair(kind, folder, held=40):
    """A histogram in memory, and a tally by two threads that hold so many entries at most."""
    values = values_of(kind)
    limits = Limits(16 * held * tallies.ENTRY_BYTES, str(folder))
    states = [Tally(CELLS, limits), Tally(CELLS, limits)]
    for place, some in enumerate(np.array_split(values, 45)):
        states[place % 2].add(histogram_of_cells(CELLS, some))
    return histogram_of_cells(CELLS, values), Tally.joined(states)


def in_memory(histogram):
    found = list(histogram.pieces())
    places, counts = (np.concatenate([one[side] for one in found]) for side in (0, 1))
    return Histogram(histogram.cells, places, counts)


def same(found, expected):
    whole = in_memory(found)
    return (
        np.array_equal(whole.places, expected.places)
        and np.array_equal(whole.counts, expected.counts)
        and (found.cells, found.rows) == (expected.cells, expected.rows)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("held", [1, 40, 10**6])
def test_tallies_on_disk_are_those_of_memory(kind, held, tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "PAGE_ROWS", 5)
    expected, found = pair(kind, tmp_path, held)
    assert same(found, expected)
    if isinstance(found, Histogram):
        assert 2 * len(expected.places) <= held or len(expected.places) <= 40 <= held
        return
    assert held < 10**6
    edges = np.concatenate([expected.places[:60], expected.places[-60:]])
    asked = [0, 1, CELLS - 1, CELLS, *edges, *(edges + 1), *(edges - 1)]
    assert [found.below(place) for place in asked] == [expected.below(place) for place in asked]
    for centre in (0, CELLS - 1, int(expected.places[len(expected.places) // 2]), 2**31):
        assert same(folded(found, centre), folded(expected, centre))


def test_what_a_tally_holds_is_bounded(tmp_path, monkeypatch):
    """No array of a merge is longer than the limit allows, however many values there are."""
    longest = []
    merged = tallies.merged

    def watched(runs, rows):
        for places, counts in merged(runs, rows):
            longest.append(len(places))
            yield places, counts

    monkeypatch.setattr(tallies, "merged", watched)
    _, found = pair("spread", tmp_path, 100)
    assert isinstance(found, StoredHistogram)
    assert max(longest) <= 100
    with pytest.raises(TypeError, match="not copied"):
        found.__reduce__()


def test_without_limits_nothing_goes_to_disk(monkeypatch):
    """Tasks of a cluster have none: what is on an executor's disk is encrypted, or is not there."""
    monkeypatch.setattr(tallies, "Spill", lambda *_: pytest.fail("a file was made"))
    tally = Tally(CELLS, None)
    for some in np.array_split(values_of("spread"), 45):
        tally.add(histogram_of_cells(CELLS, some))
    assert same(Tally.joined([tally]), histogram_of_cells(CELLS, values_of("spread")))
    sums = KeySums(None)
    for start in range(0, 2000, 50):
        sums.add(KeyCounts([f"{start + i:05}" for i in range(50)], np.ones(50, dtype=np.int64)))
    assert len(KeySums.joined([sums]).names) == 2000


MECHANISMS = [
    *(
        QuantileChoice(REPLACED, a, b, rate, rule)
        for a, b in ((1, 2), (1, 10), (0, 1), (1, 1))
        for rate in (F(1, 1000), F(1, 5), F(3))
        for rule in ("exponential", "inverse")
    ),
    *(
        SmoothNoise(REPLACED, 1, b, "cauchy", F(2), "pure", beta, F(3))
        for b in (2, 9)
        for beta in (F(1, 900), F(1, 30), F(2))
    ),
    *(
        ProposeTestRelease(REPLACED, 1, b, eta, F(1, 2), 400, F(eta), 10)
        for b in (2, 9)
        for eta in (1, 50, 10**6, 2**30)
    ),
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_quantile_mechanisms_answer_as_in_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "PAGE_ROWS", 30)
    monkeypatch.setattr(order_statistics, "WINDOW", 1)
    values = values_of(kind)
    expected = histogram_of_cells(CELLS, values)
    pieces = iter([(expected.places, expected.counts)])
    found = StoredHistogram.of(CELLS, str(tmp_path), pieces)
    for mechanism in MECHANISMS:
        for seed in range(3):
            one, other = (
                apply(mechanism, histogram, SeededSource(seed)).integers
                for histogram in (expected, found)
            )
            assert one == other, mechanism


def test_choices_that_words_leave_open_are_those_of_memory(tmp_path, monkeypatch):
    """Nothing is decided in floats: the exact way is taken, in pieces too."""
    monkeypatch.setattr(tallies, "PAGE_ROWS", 30)
    monkeypatch.setattr(choices, "_decided_among", lambda *_: None)
    expected = histogram_of_cells(CELLS, values_of("normal", 400))
    pieces = iter([(expected.places, expected.counts)])
    found = StoredHistogram.of(CELLS, str(tmp_path), pieces)
    for seed in range(40):
        choice = QuantileChoice(REPLACED, 1, 2, F(1, 40), "exponential")
        one, other = (
            apply(choice, histogram, SeededSource(seed)).integers for histogram in (expected, found)
        )
        assert one == other


def test_trees_over_fine_grids_are_those_of_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tallies, "PAGE_ROWS", 30)
    schema = dp.Schema({"x": dp.Real(0, 1, bits=32)})
    factor = number_factor(schema, "x", "a tree")
    query = TreeCounts((), factor, False, 4, 3)
    expected, found = pair("spread", tmp_path)
    assert query.assemble(found) == query.assemble(expected)


ASKS = {
    "unbounded": lambda s: dp.unbounded_mean(s, "x", spend=dp.GDP(1)),
    "median": lambda s: dp.median(s, "x", spend=dp.GDP(1), where={"g": "s"}),
    "smooth": lambda s: dp.median(s, "x", spend=dp.ApproxDP(1, 1e-6), method="smooth"),
    "location": lambda s: dp.location(s, "x", spend=dp.GDP(1)),
    "quantiles": lambda s: dp.quantiles(s, "x", [0.1, 0.5, 0.9], spend=dp.GDP(1)),
}


@pytest.mark.parametrize("ask", ASKS)
def test_questions_of_fine_grids_release_the_same(ask, tmp_path, monkeypatch):
    rng = np.random.default_rng(5)
    table = pa.table({"x": rng.normal(0, 40, 3000), "g": rng.choice(["s", "m"], 3000)})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=400)
    schema = dp.Schema(
        {"x": dp.Real(-1000, 1000, missing=0, bits=32), "g": dp.Category(["s", "m"])}
    )
    made = []
    of = StoredHistogram.of
    monkeypatch.setattr(
        StoredHistogram, "of", classmethod(lambda _, *given: made.append(1) or of(*given))
    )
    monkeypatch.setattr(batches, "BATCH_ROWS", 300)

    def released(limits):
        engine = FileEngine(
            tmp_path / "rows.parquet", "parquet", schema, dp.Replace(), scale=limits
        )
        session = seeded_session(
            Dataset(engine, schema, dp.Replace()), dp.ApproxDP(200, 1e-4), seed=2
        )
        result = ASKS[ask](session)
        releases = result.releases if hasattr(result, "releases") else (result.release,)
        return [one.integers for one in releases]

    expected = released(None)
    assert not made
    assert released(Limits(400 * 16 * tallies.ENTRY_BYTES, str(tmp_path))) == expected
    assert made
