"""Claim: noisy SGD draws secret batches of exactly the stated law, its sums never move further than
stated, and its price covers its loss distribution.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2, norm

import discreet as dp
from discreet.encoding import Encoding
from discreet.sensitivity import OneRow, sensitivity_from_dict
from discreet.specs.estimating.batches import (
    ETA_BITS,
    LARGEST_BETA,
    SampledGradients,
    absolute_radius,
    plain_metric,
)
from discreet.specs.estimating.components import RESPONSE_BITS, UNIT, ModelColumn, Response
from discreet.specs.estimating.families import Huber, Logistic, Poisson
from discreet.specs.estimating.metric import WEIGHT_BITS
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.tables import GRID, PSI
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.queries.plans import Factor
from discreet.specs.registry import mechanism_from_dict, query_from_dict
from discreet.testing.seeded import SeededSource, seeded_session
from discreet.trusted.extensions.estimating.kernels import (
    ModelData,
    absolute_weights,
    gradient_sums,
    row_weights,
)
from discreet.trusted.extensions.sgd.batches import RowGradients
from discreet.trusted.extensions.sgd.draw import PoissonBatches, descend, subset
from discreet.trusted.extensions.sgd.loss import (
    poisson_rate,
)
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.release import Description, Question

FAMILIES = [Huber(1.345), Logistic(), Poisson(20.0)]
ALPHA = 1e-9
DELTA = Fraction(1, 10**6)


def point_of(family, beta, sigma=0.1):
    whole = tuple(round(value * 2**24) for value in beta)
    if family.residual:
        bits = ETA_BITS - RESPONSE_BITS
        return Point(whole, bits, GRID / (sigma * 2.0 ** (RESPONSE_BITS + bits)))
    return Point(whole, ETA_BITS, GRID / 2.0**ETA_BITS)


def query_of(family, *, rows, columns=3, radius=1.3, optional=False, norm=2):
    response = (
        Response(level=("b", 1))
        if isinstance(family, Logistic)
        else Response(Factor("y", Encoding(0.0, 2**23 / 10, -(2**23), 2**23)))
    )
    names = tuple(ModelColumn(f"x{place}", ()) for place in range(columns))
    return SampledGradients(
        Model(names, response),
        plain_metric(columns, radius),
        family,
        point_of(family, (0.0,) * columns),
        optional,
        rows,
        norm,
    )


def reader_of(family, matrix, response, query):
    weigh = row_weights if query.norm == 2 else absolute_weights
    return RowGradients(
        ModelData(matrix, response), weigh(matrix, query.metric), family, query.point
    )


def responses(rng, family, n):
    if family.residual:
        return rng.integers(-(2**23), 2**23 + 1, n).astype(np.int32)
    return (
        rng.integers(0, 2, n).astype(np.int32) * PSI
        if isinstance(family, Logistic)
        else rng.integers(0, 20 << 10, n).astype(np.int32)
    )


def extreme(rng, n, columns=3):
    corners = rng.choice([-UNIT, UNIT], (n, columns))
    return np.where(
        rng.random((n, 1)) < 0.6, corners, rng.integers(-UNIT, UNIT + 1, (n, columns))
    ).astype(np.int16)


def descent_of(sensitivity, **changes):
    fields = {
        "spread": Fraction(2.0**40),
        "gap": None if sensitivity.rows else Fraction(10.0),
        "size": 3 if sensitivity.rows else None,
        "steps": 12,
        "rate": 2.0**-20,
        "start": (0, 0, 0),
        "limit": LARGEST_BETA,
        "every": 5,
        "averaged": 4,
        "delta": DELTA,
    }
    return NoisySGD(sensitivity, **(fields | changes))


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.few(2)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_a_batch_gradient_never_moves_further_than_stated(family):
    rng = np.random.default_rng(5)
    n = 400
    added, replaced = (
        query_of(family, rows=None).sensitivity(dp.AddRemove()),
        query_of(family, rows=n).sensitivity(dp.Replace()),
    )
    reader = reader_of(family, extreme(rng, n), responses(rng, family, n), query_of(family, rows=n))
    largest = 0
    for scale in (0.0, 0.3, 5.0, 1000.0):
        beta = np.rint(rng.normal(size=3) * scale * 2**24)
        singles = [reader.gradient(np.array([row]), beta) for row in range(n)]
        norms = [sum(int(value) ** 2 for value in one) for one in singles]
        assert max(norms) <= added.squared == added.moved_squared  # a row comes or goes
        # a row is replaced, at worst by its opposite
        assert 4 * max(norms) <= replaced.moved_squared
        batch = rng.choice(n, 60, replace=False)
        without = reader.gradient(batch[1:], beta)
        assert (reader.gradient(batch, beta) - without == singles[batch[0]]).all()
        largest = max(largest, max(norms))
    assert largest >= 0.8 * added.squared, "the bound should be nearly attained"


@pytest.mark.few(2)
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_absolute_weights_never_exceed_their_bound(family):
    rng, n = np.random.default_rng(15), 300
    query = query_of(family, rows=n, norm=1)
    added = query_of(family, rows=None, norm=1).sensitivity(dp.AddRemove())
    replaced = query.sensitivity(dp.Replace())
    assert (added.norm, replaced.moved_squared) == (1, 4 * added.squared)
    matrix = extreme(rng, n)
    matrix[:3] = [[0, 0, 0], [1, 0, 0], [UNIT, 0, 0]]
    sizes = np.abs(matrix.astype(np.int64)).sum(axis=1)
    weights = absolute_weights(matrix, query.metric)
    assert (weights * sizes <= absolute_radius(query.metric) << WEIGHT_BITS).all()
    assert (weights[:3] == 1 << WEIGHT_BITS).all()
    reader, largest = reader_of(family, matrix, responses(rng, family, n), query), 0
    for scale in (0.0, 5.0, 1000.0):
        beta = np.rint(rng.normal(size=3) * scale * 2**24)
        norms = [int(np.abs(reader.gradient(np.array([row]), beta)).sum()) for row in range(n)]
        assert max(norms) ** 2 <= added.squared
        largest = max(largest, max(norms))
    assert largest**2 >= 0.8 * added.squared, "the bound should be nearly attained"
    plain = reader_of(family, matrix, responses(rng, family, n), query_of(family, rows=n))
    control = max(np.abs(plain.gradient(np.array([row]), beta)).sum() for row in range(n))
    assert control**2 > added.squared, "ℓ₂ weights do not bound the ℓ₁ norm"


@pytest.mark.compiled
@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.kind)
def test_batch_sums_are_those_of_full_gradients_on_the_same_rows(family, monkeypatch):
    rng = np.random.default_rng(6)
    n = 1 << 15  # the compiled loop
    matrix, response, query = extreme(rng, n), responses(rng, family, n), query_of(family, rows=n)
    weights = row_weights(matrix, query.metric)
    reader, beta = reader_of(family, matrix, response, query), np.rint(rng.normal(size=3) * 2**22)
    chosen = np.sort(rng.choice(n, 777, replace=False))
    point = Point(tuple(int(value) for value in beta), query.point.eta_bits, query.point.per_scale)
    wanted = gradient_sums(
        ModelData(matrix[chosen], response[chosen]), weights[chosen], family, point
    )[0]
    assert reader.gradient(chosen, beta).tolist() == [int(value) for value in wanted]
    monkeypatch.setattr("discreet.trusted.extensions.sgd.batches.LOOP_ROWS", 100)
    assert reader.gradient(rng.permutation(chosen), beta).tolist() == [
        int(value) for value in wanted
    ]
    assert reader._in_numpy(chosen, beta).tolist() == [int(value) for value in wanted]
    assert not reader.gradient(chosen[:0], beta).any()


def test_relations_without_a_theorem_are_refused_from_public_facts():
    family = Logistic()
    for query, relation in [
        (query_of(family, rows=None), dp.AddRemove(unit="id", max_rows=2)),
        (query_of(family, rows=9), dp.Replace(unit="id", max_rows=1)),
        (query_of(family, rows=None), dp.Replace()),
        (query_of(family, rows=9), dp.AddRemove()),
    ]:
        with pytest.raises(dp.NoTheorem):
            query.sensitivity(relation)


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


def poisson_p_values(gap, count, rate, batches=4000):
    """p-values of: batch sizes are binomial, rows are equally often in,
    successive batches are independent.
    """
    draw = PoissonBatches(gap, count, SeededSource("batches"))
    members = np.zeros((batches, count), dtype=bool)
    for row in members:
        batch = draw()
        assert (np.diff(batch) > 0).all()
        assert batch.size == 0 or (batch[0] >= 0 and batch[-1] < count)
        row[batch] = True
    sizes = np.bincount(members.sum(axis=1), minlength=count + 1)
    expected = batches * binom.pmf(np.arange(count + 1), count, rate)
    kept = expected > 5
    observed, expected = (
        np.append(sizes[kept], sizes[~kept].sum()),
        np.append(expected[kept], expected[~kept].sum()),
    )
    by_row = members.sum(axis=0)
    both = (members[1:] & members[:-1]).sum()
    pairs = (batches - 1) * count
    return (
        chi2.sf(((observed - expected) ** 2 / np.maximum(expected, 1e-9)).sum(), len(observed) - 1),
        chi2.sf(((by_row - batches * rate) ** 2 / (batches * rate * (1 - rate))).sum(), count),
        2 * norm.sf(abs(both - pairs * rate**2) / math.sqrt(pairs * rate**2)),
    )


@pytest.mark.few(2)
@pytest.mark.parametrize("gap", [Fraction(4.0), Fraction(0.5), Fraction(30.0)])
def test_poisson_batches_have_their_law_and_a_wrong_law_is_noticed(gap):
    rate = -math.expm1(-1 / float(gap))
    assert min(poisson_p_values(gap, 40, rate)) > ALPHA
    assert rate <= poisson_rate(gap) <= rate * (1 + 1e-12)
    assert min(poisson_p_values(gap, 40, min(0.999, 1.3 * rate))) < ALPHA


@pytest.mark.few(2)
@pytest.mark.parametrize(("count", "size"), [(6, 2), (7, 3), (5, 1)])
def test_fixed_batches_are_uniform_subsets(count, size):
    source, draws = SeededSource("subsets"), 6000
    places = {
        chosen: place for place, chosen in enumerate(itertools.combinations(range(count), size))
    }
    counts = np.zeros(len(places))
    for _ in range(draws):
        counts[places[tuple(subset(count, size, source).tolist())]] += 1
    expected = draws / len(places)
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), len(places) - 1) > ALPHA
    counts[0] += 8 * math.sqrt(expected)
    counts[1] -= 8 * math.sqrt(expected)
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), len(places) - 1) < ALPHA


def test_large_and_whole_batches_are_subsets_too():
    from discreet.trusted.extensions.sgd.draw import batches

    for size in (1, 4, 7, 8, 9):
        draw = batches(
            descent_of(OneRow(Fraction(4), "replaced", 9), size=size), 9, SeededSource(size)
        )
        for _ in range(20):
            batch = draw()
            assert len(set(batch.tolist())) == size == len(batch)
            assert set(batch.tolist()) <= set(range(9))


# ── the descent ───────────────────────────────────────────────────────────────────────────────────


class Recorder:
    """Rows whose gradients are written down: a pull towards 2**20 of every chosen row."""

    def __init__(self, count):
        self.count, self.batches, self.points = count, [], []

    def gradient(self, chosen, beta):
        self.batches.append(chosen)
        self.points.append(beta.copy())
        return (len(chosen) * (beta - 2.0**20)).astype(np.int64)


def test_a_descent_is_the_function_of_its_noisy_sums_that_the_spec_states():
    spec = descent_of(
        OneRow(Fraction(2**80), "added or removed", None),
        spread=Fraction(1024.0),
        gap=Fraction(2.0),
        rate=0.05,
    )
    rows = Recorder(20)
    shown = np.array(descend(spec, rows, SeededSource(3)), dtype=float).reshape(-1, 3)
    assert shown.shape == (spec.shown, 3) == (4, 3)
    iterates = [*rows.points[1:], shown[2]]
    assert (shown[0] == iterates[4]).all()
    assert (shown[1] == iterates[9]).all()
    assert (shown[3] == np.rint(np.mean(iterates[-4:], axis=0))).all()
    noises = []
    for before, after, batch in zip(rows.points, iterates, rows.batches, strict=True):
        noises.append((before - after) / 0.05 - len(batch) * (before - 2.0**20))
        assert np.abs(noises[-1]).max() < 1024 * 8
    apart = [np.abs(one - two).max() for one, two in itertools.combinations(noises, 2)]
    assert min(apart) > 40, "every step has its own noise"
    assert len({tuple(batch.tolist()) for batch in rows.batches}) > 8, (
        "every step has its own batch"
    )


def test_no_rows_and_empty_batches_are_answered_like_any_other():
    spec = descent_of(
        OneRow(Fraction(4), "added or removed", None), spread=Fraction(2.0**12), rate=1.0
    )
    for count in (0, 1, 2):
        answer = descend(spec, Recorder(count), SeededSource(count))
        assert len(answer) == spec.shown * 3
    wild = descent_of(OneRow(Fraction(4), "added or removed", None), rate=2.0**20, limit=1000)
    assert all(abs(value) <= 1000 for value in descend(wild, Recorder(0), SeededSource(1)))


@pytest.mark.parametrize(
    "changes",
    [
        {"gap": None, "size": 3},
        {"gap": Fraction(10.0), "size": 3},
        {"gap": Fraction(1, 3)},
        {"steps": 0},
        {"every": 13},
        {"averaged": 0},
        {"rate": 0.0},
        {"rate": math.nan},
        {"delta": Fraction(0)},
        {"spread": Fraction(10)},
        {"start": ()},
        {"start": (2, 2, 2), "limit": 5},
        {"steps": True},
    ],
)
def test_bad_specs_are_refused(changes):
    with pytest.raises(dp.InvalidParameter):
        descent_of(OneRow(Fraction(4), "added or removed", None), **changes)


def test_schemes_and_relations_that_do_not_match_are_refused():
    for changes in ({"gap": Fraction(10.0), "size": None}, {"size": 10}, {"size": 0}):
        with pytest.raises(dp.InvalidParameter):
            descent_of(OneRow(Fraction(4), "replaced", 9), **changes)
    for bad in (("replaced", None), ("added or removed", 5), ("changed", 5), ("replaced", 0)):
        with pytest.raises(dp.InvalidParameter):
            OneRow(Fraction(1), *bad)


# ── in a session ──────────────────────────────────────────────────────────────────────────────────


def small_data(neighbors, n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    return dp.from_arrays(
        {"x": x, "b": rng.random(n) < 0.5 + 0.3 * x},
        schema={"x": dp.Real(-1, 1, missing=0), "b": dp.Boolean(missing=False)},
        neighbors=neighbors,
    )


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_a_whole_descent_is_one_debit_at_its_price(neighbors):
    session = seeded_session(small_data(neighbors), dp.ApproxDP(6, 1e-5), 1)
    fit = dp.logistic(session, "b ~ x", spend=dp.ApproxDP(3, 1e-6), solver="sgd")
    releases = [release for release in fit.releases if release.mechanism.kind == "noisy sgd"]
    assert len(releases) == 1
    debits = [
        entry
        for entry in session.ledger.entries()
        if entry.kind == "debit" and entry.key == releases[0].key
    ]
    assert len(debits) == 1
    spec = releases[0].mechanism
    assert mechanism_from_dict(spec.to_dict()) == spec
    assert query_from_dict(releases[0].query.to_dict()) == releases[0].query
    assert sensitivity_from_dict(spec.sensitivity.to_dict()) == spec.sensitivity
    assert (
        session.price(
            Question(
                releases[0].description,
                releases[0].query,
                spec,
                releases[0].spend,
                releases[0].delta,
            )
        ).mu_squared
        == loss_of(spec).mu_squared
    )
    assert spec.size in (None, 75)  # what was asked for; realised sizes are nowhere


def test_a_mechanism_of_the_other_scheme_is_refused_before_the_debit():
    session = seeded_session(small_data(dp.Replace()), dp.ApproxDP(6, 1e-5), 1)
    fit = dp.logistic(session, "b ~ x", spend=dp.ApproxDP(3, 1e-6), solver="sgd")
    release = next(one for one in fit.releases if one.mechanism.kind == "noisy sgd")
    one = release.mechanism.sensitivity
    entries = len(list(session.ledger.entries()))
    for wrong in (
        OneRow(one.squared, "added or removed", None),
        OneRow(one.squared / 2, "replaced", 300),
        OneRow(one.squared, "replaced", 3000),
    ):
        spec = descent_of(
            wrong, spread=Fraction(2.0**45), start=(0, 0), size=3 if wrong.rows else None
        )
        with pytest.raises(dp.InvalidParameter):
            session.release(
                Question(Description("logistic"), release.query, spec, dp.GDP(1), spec.delta)
            )
    assert len(list(session.ledger.entries())) == entries


def test_a_descent_without_delta_or_theorem_is_refused_before_the_debit():
    session = seeded_session(small_data(dp.Replace()), dp.ApproxDP(6, 1e-5), 1)
    entries = len(list(session.ledger.entries()))
    with pytest.raises(dp.InvalidParameter, match="delta"):
        dp.logistic(session, "b ~ x", spend=dp.GDP(0.5), solver="sgd")
    assert len(list(session.ledger.entries())) == entries


def test_rows_that_a_filter_drops_are_drawn_and_add_nothing():
    class Seen:
        count = 3

        def __init__(self):
            self.drawn = []

        def gradient(self, chosen, beta):
            self.drawn.append(tuple(chosen.tolist()))
            return np.zeros(len(beta), dtype=np.int64)

    rows, spec = Seen(), descent_of(OneRow(Fraction(4), "replaced", 6), size=2)
    source = SeededSource("dropped")
    while len(rows.drawn) < 6000:
        descend(spec, rows, source)
    kept = [
        tuple(place for place in pair if place < 3) for pair in itertools.combinations(range(6), 2)
    ]
    places = {one: place for place, one in enumerate(sorted(set(kept)))}
    expected = np.bincount([places[one] for one in kept]) * len(rows.drawn) / len(kept)
    counts = np.bincount([places[one] for one in rows.drawn], minlength=len(places))
    assert chi2.sf(((counts - expected) ** 2 / expected).sum(), len(places) - 1) > ALPHA
    # drawn from the kept rows alone, two would be there always
    assert counts[places[()]] > 0.1 * len(rows.drawn)


@pytest.mark.few(1)
@pytest.mark.parametrize("stated", [9, 10**6])
def test_another_number_of_rows_than_the_public_one_is_refused_before_the_debit(stated):
    session = seeded_session(small_data(dp.Replace()), dp.ApproxDP(6, 1e-5), 1)
    fit = dp.logistic(
        session, "b ~ x", spend=dp.ApproxDP(1, 1e-6), where={"x": (0, 1)}, solver="sgd"
    )
    release = next(one for one in fit.releases if isinstance(one.query, SampledGradients))
    entries = len(list(session.ledger.entries()))
    query = dataclasses.replace(release.query, rows=stated)
    mechanism = dataclasses.replace(
        release.mechanism, sensitivity=query.sensitivity(dp.Replace()), size=2
    )
    with pytest.raises(dp.InvalidParameter, match="another number of rows"):
        session.release(
            Question(release.description, query, mechanism, release.spend, release.delta)
        )
    assert len(list(session.ledger.entries())) == entries


def test_the_reader_of_rows_is_never_copied():
    reader = reader_of(
        Logistic(),
        np.zeros((4, 3), dtype=np.int16),
        np.zeros(4, dtype=np.int32),
        query_of(Logistic(), rows=4),
    )
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            attempt(reader)
