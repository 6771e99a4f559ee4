"""Claim: what runs is what was checked, and a draw that fails is paid once and never drawn
again.
"""

from __future__ import annotations

import dataclasses
import importlib
from fractions import Fraction

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise
from discreet.encoding import Encoding
from discreet.errors import InvalidParameter, ReleaseFailed
from discreet.estimators import questions
from discreet.search.quantile_ends import QuantileEnds
from discreet.sensitivity import L2
from discreet.specs.estimating.components import LevelComponent
from discreet.specs.queries.plans import Factor
from discreet.specs.queries.scores import CandidateGroup, CandidateScores
from discreet.specs.queries.sums import Sum
from discreet.trusted.release import Question

DATA = {"x": np.linspace(0, 100, 50), "g": ["a", "b"] * 25}
SCHEMA = {"x": dp.Real(0, 100), "g": dp.Category(["a", "b"], missing="a")}


def open_session(neighbors=None):
    return dp.from_arrays(DATA, schema=SCHEMA, neighbors=neighbors or dp.Replace()).open(
        budget=dp.GDP(5)
    )


def test_a_failed_draw_is_stored_and_not_repeated(monkeypatch):
    session, calls = open_session(), []

    def failing(mechanism, statistic, source):
        calls.append(1)
        raise OverflowError("a text that depends on the draw")

    question = questions.mean_question(session.public, "x", spend=dp.GDP(0.5))
    monkeypatch.setitem(
        importlib.import_module("discreet.trusted.noise.samplers").SAMPLERS,
        type(question.mechanism),
        failing,
    )
    for _ in range(3):
        with pytest.raises(ReleaseFailed) as caught:
            session.release(question, key="once")
        assert "depends" not in str(caught.value)
    assert len(calls) == 1
    assert session.ledger.verify()


def test_a_question_is_copied_before_it_is_checked():
    """A list inside a frozen query is a tuple of its own in what runs, and a sensitivity that is
    equal to everything is rebuilt.
    """
    session = open_session(dp.AddRemove())
    narrow = Factor("x", Encoding(50.0, 1.0, -1, 1))
    query = Sum((), [narrow], False)
    mechanism = gaussian_noise(query.sensitivity(dp.AddRemove())[1], Fraction(1, 4))
    release = session.release(
        Question(
            questions.mean_question(session.public, "x", spend=dp.GDP(0.5)).description,
            query,
            mechanism,
            dp.GDP(0.5),
        )
    )
    assert type(release.query.term) is tuple

    class Agreeable(L2):
        def __eq__(self, other):
            return True

        __hash__ = L2.__hash__

    with pytest.raises(InvalidParameter, match="none of this package's own kinds"):
        dataclasses.replace(mechanism, sensitivity=Agreeable(Fraction(1, 100)))
    for smuggled in (Agreeable(Fraction(1, 100)), L2(Fraction(1, 100))):
        quiet = dataclasses.replace(mechanism)
        object.__setattr__(quiet, "sensitivity", smuggled)
        with pytest.raises(InvalidParameter):
            session.release(Question(release.description, query, quiet, dp.GDP(0.5)))


def test_a_watch_counts_and_nothing_else():
    session = open_session(dp.AddRemove())
    watch = dp.watch(session, 10, spend=dp.GDP(1))
    falling = CandidateScores((CandidateGroup((), Factor("x", Encoding(-1.0, 1.0, 0, 1))),))
    with pytest.raises(InvalidParameter, match="one count"):
        watch._noisy.above(falling)


def test_policies_with_wild_numbers_are_refused():
    for wrong in ((0, 0, 1), (1, 1, 10**300), (1.0, 1, 1), (True, 1, 1)):
        with pytest.raises(InvalidParameter):
            QuantileEnds(wrong[0], wrong[1], Fraction(1, 2), None, wrong[2])


def test_levels_beyond_a_contrast_count_nothing():
    assert LevelComponent("g", (1,)).values(np.array([0, 1, 2, -1])).tolist() == [1 << 14, 0, 0, 0]


@pytest.mark.parametrize("value", [5e-324, 1e300, 0.0])
def test_float_flags_cannot_be_seen(value):
    data = dp.from_arrays({"x": [value, 1.0]}, schema={"x": dp.Real(-1, 1)}, neighbors=dp.Replace())
    with np.errstate(all="raise"):
        assert np.isfinite(dp.mean(data.open(budget=dp.GDP(1)), "x", spend=dp.GDP(1)).estimate)
