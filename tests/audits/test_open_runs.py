"""Audits of what stays open: the law of its paths, and broken runs that replay must refute."""

from __future__ import annotations

import dataclasses
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.audits import exact, replay
from discreet.audits.asked import held_out, watched
from discreet.audits.cases import drawn_pair, worst_pair
from discreet.audits.outputs import likelihoods
from discreet.audits.outputs.open_runs import Asked, Opened, Tape, heard, listening, walked
from discreet.audits.registry import ENTRIES
from discreet.estimators.questions import count_question
from discreet.estimators.selection import Watch
from discreet.inference.simulation.streams import Stream
from discreet.sensitivity import LInf
from discreet.specs.mechanisms.selection import AboveThreshold
from discreet.testing import seeded_session
from discreet.trusted.extensions.selection import ThresholdRun

SPEND = dp.PureDP(2)
CLAIM = dp.PureDP(2)
YES, NO = {"flag": True}, {"flag": False}


def _search() -> replay.Search:
    return replay.Search(lambda: dp.Ledger.open(dp.PureDP(8)), 1, 0)


def _replayed(ask: Any, claim: Any = CLAIM, neighbors: Any = None) -> Any:
    relation = neighbors or dp.Replace()
    return replay.audited([worst_pair()], ask, relation, claim, name="control", how=_search())


def _enumerated(ask: Any, claim: Any, draws: int) -> Any:
    return exact.audited(
        [worst_pair()], ask, dp.Replace(), claim, name="watch", how=_search(), draws=draws
    )


def adaptive(session: dp.Session) -> dict[str, float]:
    """Two positives; what is asked next depends on the answers."""
    run = heard(dp.watch(session, 12, positives=2, spend=SPEND))
    where: dict[str, Any] = YES
    for _ in range(4):
        if not run.left:
            break
        where = NO if run.above(where) else {"x": (0.9, 1.0)}
    return {}


def test_every_entry_has_a_method_without_chance_or_of_one_release() -> None:
    quick = {"exact", "canaries", "replay"}
    assert [name for name, entry in ENTRIES.items() if not quick & set(entry.methods)] == []


def test_paths_of_an_open_threshold_have_the_law_of_its_draws() -> None:
    """The law sums to one, and the run that the session opens follows it."""
    data = drawn_pair(Stream("paths")).under(dp.Replace())
    how = _search()
    found = exact.enumerated(data, adaptive, how, "adaptive")
    (part,) = found.parts
    assert len(part.laws.first) == 11  # of 16, those end early that have two positives
    assert part.laws.first.sum() == pytest.approx(1) == part.laws.second.sum()
    paths = walked(lambda tape: _asked(tape, data[0]), 100)
    assert not isinstance(paths, str)
    seen = np.zeros(len(paths.ends), dtype=np.int64)
    for number in range(120):
        with listening(Tape()) as tape:
            adaptive(seeded_session(data[0], dp.PureDP(2), f"paths/{number}"))
        seen[paths.ends.index(tuple(map(int, tape.answers())))] += 1
    assert exact._rarest(seen, part.laws.first) * len(seen) > 1e-6
    assert exact._rarest(seen, np.roll(part.laws.first, 3)) * len(seen) < 1e-9


def _asked(tape: Tape, data: dp.Dataset) -> None:
    with listening(tape):
        adaptive(seeded_session(data, dp.PureDP(2), 1))


@pytest.mark.parametrize(("claim", "caught"), [(dp.PureDP(2), False), (dp.PureDP(0.9), True)])
def test_a_claim_below_the_law_of_paths_is_refuted(claim: Any, caught: bool) -> None:
    found = _enumerated(lambda session: watched(session, spend=SPEND), claim, 200)
    assert found.violated is caught
    assert 0.9 < found.lower <= 2


def test_draws_without_noise_of_the_threshold_are_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """reference.md J2: every answer would be paid for by the noise of its question alone."""
    monkeypatch.setattr(ThresholdRun, "_new_bound", lambda self: self._mechanism.threshold)
    found = _enumerated(lambda session: watched(session, spend=SPEND), CLAIM, 2000)
    assert found.violated
    assert "do not follow the law" in str(found.broken)


@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()])
def test_replays_of_open_runs_cost_something_and_no_more_than_claimed(neighbors: Any) -> None:
    def replayed(ask: Any, claim: Any) -> Any:
        return _replayed(lambda session: ask(session, spend=claim), claim, neighbors)

    for ask, claim in ((watched, dp.PureDP(2)), (held_out, dp.PureDP(3))):
        found = replayed(ask, claim)
        assert found.broken == ()
        assert 0.1 < found.share <= 1


# -- controls: what replay must catch ----------------------------------------------------------


class Unending:
    """Gives one positive answer after another for the price of one."""

    left = 1

    def __init__(self, run: Any) -> None:
        self.question, self._answers = run.question, itertools.cycle((True, False))

    def above(self, query: Any) -> bool:
        return next(self._answers)


def test_replay_catches_a_run_that_goes_on_after_its_positives() -> None:
    def ask(session: dp.Session) -> None:
        opened = dp.watch(session, 1, spend=SPEND)
        run = heard(Watch(Unending(opened._noisy), session))  # type: ignore[arg-type]
        for _ in range(20):  # yes where the row comes, no where it goes
            run.above({"x": (0.9, 1.0)})
            run.above({"x": (0.0, 0.1)})

    found = _replayed(ask)
    assert found.violated
    assert "20 positive answers, and 1 were paid for" in str(found)
    assert found.lower > 2
    assert "the moves cost" in str(found)


def test_replay_catches_a_filter_that_depends_on_rows() -> None:
    def ask(session: dp.Session) -> None:
        asked = count_question(session.public, spend=dp.PureDP(1), where=YES)
        many = session._engine.sums(asked.query.plan()).item() > 12
        heard(dp.watch(session, 12, spend=SPEND)).above(YES if many else NO)

    found = _replayed(ask)
    assert found.violated
    assert "an open run was asked something else" in str(found)


def test_replay_catches_one_opening_more_and_an_answer_beside_the_run() -> None:
    calls = []

    def ask(session: dp.Session) -> None:
        calls.append(1)
        for _ in calls:
            heard(dp.watch(session, 12, spend=dp.PureDP(1))).above(YES)

    assert "an open run was asked something else" in str(_replayed(ask))

    def beside(session: dp.Session) -> None:
        adaptive(session)
        dp.count(session, where=YES, spend=dp.PureDP(1))

    assert "2 further entries" in str(_replayed(beside))


def test_moves_beyond_the_sensitivity_are_caught() -> None:
    one_way = AboveThreshold(
        LInf(Fraction(1), one_way=True), 0, 1, Fraction(2), Fraction(2), renewed=False
    )
    asked = tuple(Asked(0, "above", None, answer) for answer in (False, True))
    opened = Opened(one_way, None, asked)
    assert opened.too_far([[3], [5]], [[4], [6]]) == []
    assert "in 2 directions" in str(opened.too_far([[3], [5]], [[4], [4]]))
    assert "moved by 2" in str(opened.too_far([[3], [5]], [[5], [5]]))
    both = dataclasses.replace(one_way, sensitivity=LInf(Fraction(1), one_way=False))
    assert Opened(both, None, asked).too_far([[3], [5]], [[4], [4]]) == []


# -- how it is computed ------------------------------------------------------------------------


@pytest.mark.parametrize("renewed", [True, False])
def test_thresholds_of_wide_noise_have_the_law_of_the_sum(
    renewed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = AboveThreshold(
        LInf(Fraction(1), one_way=False), 300, 2, Fraction(500), Fraction(900), renewed
    )
    path, scores = (1, 0, 0, 1), [-20_000, 250, 301, 700]
    summed = likelihoods.threshold_law(wide, scores, path)
    monkeypatch.setattr(likelihoods, "FINE", 0.0)
    integrated = likelihoods.threshold_law(wide, scores, path)
    assert integrated == pytest.approx(summed, rel=2 / 500**2)
    assert integrated != summed


def test_nothing_is_noted_outside_an_audit_and_scripts_end_as_runs_do() -> None:
    data = worst_pair().under(dp.Replace())[0]
    run = dp.watch(seeded_session(data, dp.PureDP(2), 1), 12, spend=SPEND)
    assert heard(run) is run
    with listening(Tape((True,))) as tape:
        scripted = heard(dp.watch(seeded_session(data, dp.PureDP(2), 1), 12, spend=SPEND))
        assert scripted.above(YES)
        assert scripted.left == 0
        with pytest.raises(dp.LedgerRefused, match="positive answers"):
            scripted.above(YES)
    assert tape.answers() == (True,)
    both = walked(lambda tape: None, 10)
    assert both == "one open threshold alone has few outputs"

    def beside(session: dp.Session) -> None:
        adaptive(session)
        dp.count(session, where=YES, spend=SPEND)

    with pytest.raises(dp.NoTheorem, match="releases more beside"):
        _enumerated(beside, CLAIM, 200)
