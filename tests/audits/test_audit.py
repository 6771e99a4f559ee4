"""`dp.audit`: public procedures, devices, functions, and broken ones that must be caught."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import discreet as dp
from discreet import client
from discreet.asking.records import RECORDS
from discreet.audits import procedures
from discreet.audits.audit import relations
from discreet.audits.cases import RELATIONS, worst_pair
from discreet.audits.outputs.likelihoods import LAWS
from discreet.audits.registry import (
    DEVICE_REASONS,
    DEVICES,
    ENTRIES,
    REASONS,
    function_of,
)
from discreet.specs.holdout.thresholdout import Thresholdout
from discreet.specs.mechanisms.friendly import FriendlyMean
from discreet.specs.mechanisms.local import LOCAL
from discreet.specs.mechanisms.minimiser import PerturbedMinimiser
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.mechanisms.procedures import BestOf, StatedGuarantee
from discreet.specs.mechanisms.quantiles import ProposeTestRelease, SmoothNoise
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.specs.registry import PROVEN_MECHANISMS
from discreet.testing import seeded_session
from discreet.testing.faults import FAULTS, Fault
from discreet.testing.weakened import WEAKENED

SOURCE = Path(dp.__file__).parent
REPLAYED = sorted(name for name, entry in ENTRIES.items() if "replay" in entry.methods)
FULL = ("count", "sum", "mean", "proportion", "histogram", "table", "compare", "residuals")
HELD = {"x": [0.1, 0.5, 0.5], "flag": [True, False, True]}
CONTROLS = [make() for make in FAULTS]
SLIGHT = "× 0.9"  # of these, benchmarks/audits.py needs many runs
WEAK = [one for makes in WEAKENED.values() for one in (make() for make in makes)]
WEAK = [
    one for one in WEAK if SLIGHT not in one.name and one.name not in {c.name for c in CONTROLS}
]


def test_every_public_name_has_an_entry_or_a_reason() -> None:
    audited = {function_of(name) for name in ENTRIES}
    assert {record.name for record in RECORDS} <= audited  # no procedure without an audit
    assert audited - set(dp.__all__) == {"session"}
    assert set(dp.__all__) == (audited - {"session"}) | set(REASONS)
    assert not audited & set(REASONS)
    assert set(client.__all__) == set(DEVICES) | set(DEVICE_REASONS)
    assert all(len(one) > 15 for one in (*REASONS.values(), *DEVICE_REASONS.values()))
    assert {kind.__name__ for kind in LOCAL} == set(DEVICES)
    assert all(set(entry.relations) <= set(RELATIONS) for entry in ENTRIES.values())


def test_every_mechanism_has_a_likelihood_or_is_known_to_have_none() -> None:
    """Of a new mechanism somebody has to say what an audit reads of it."""
    assert set(PROVEN_MECHANISMS) - set(LAWS) == {
        ThresholdedCounts, SmoothNoise, ProposeTestRelease, NoisySGD, PerturbedMinimiser,
        FriendlyMean, BestOf, StatedGuarantee, Thresholdout,
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REPLAYED)
def test_no_procedure_asks_or_moves_otherwise_on_a_neighbour(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the first pairs of the search, under two relations, one by batches; all of it:
    benchmarks/audits.py.
    """
    entry = replace(ENTRIES[name], search=0)
    monkeypatch.setitem(ENTRIES, name, entry)
    monkeypatch.setattr(procedures, "DRAWN", 0)
    allowed = relations(entry)
    for neighbors, engine in ((allowed[0], "memory"), (allowed[-1], "stream")):
        found = dp.audit(name, method="replay", neighbors=neighbors, engine=engine)
        assert found.broken == ()
        assert found.lower <= found.claimed * (1 + 1e-9)
        if name in FULL:
            assert found.share > 0.9, str(neighbors)


@pytest.mark.slow
def test_a_mean_is_measured_up_to_its_claim() -> None:
    found = dp.audit(dp.mean, spend=dp.GDP(3), runs=600)
    assert 0.8 < found.share <= 1.0
    assert not found.violated
    assert found.p_value > 1e-6
    assert found == dp.audit(dp.mean, spend=dp.GDP(3), runs=600)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("mode", 0.3), ("missing", 0.3)])
def test_runs_bound_other_procedures(name: str, least: float) -> None:
    found = dp.audit(name, method="runs", runs=200)
    assert least <= found.share <= 1.02
    assert not found.violated


def test_a_histogram_has_a_coin_for_every_level() -> None:
    found = dp.audit(
        dp.histogram,
        spend=dp.PureDP(1),
        method="canaries",
        neighbors=dp.AddRemove(),
        runs=3000,
    )
    assert 0.95 < found.share <= 1.01
    assert not found.violated


@pytest.mark.parametrize(
    ("spec", "least"),
    [
        (client.RandomizedResponse(client.Category(["a", "b", "c"]), epsilon=1), 0.98),
        (client.TwoCoinResponse(client.Boolean()), 0.98),
        (client.OneBitResponse(client.Real(0, 1), epsilon=1), 0.98),
        (client.UnaryResponse(client.Category(list("abcd")), epsilon=1), 0.95),
        (client.HadamardResponse(client.Category(list("abcd")), epsilon=1), 0.95),
        (client.LaplaceResponse(client.Real(0, 1), epsilon=1), 0.9),
        (client.GaussianResponse(client.Real(0, 1), mu=1), 0.95),
    ],
    ids=lambda given: type(given).__name__ if not isinstance(given, float) else None,
)
def test_reports_of_devices_are_measured_up_to_their_claim(spec: Any, least: float) -> None:
    found = dp.audit(spec, runs=200_000)
    assert least < found.share <= 1.005
    assert not found.violated


@pytest.mark.few(4)
@pytest.mark.parametrize("fault", [*CONTROLS, *WEAK], ids=lambda one: one.name)
def test_every_broken_procedure_is_caught(fault: Fault) -> None:
    found = dp.audit(fault.run, pair=fault.pair, claim=fault.claim, runs=fault.runs)
    assert found.violated
    assert found.p_value <= 1e-9
    assert "REFUTED" in str(found)


def test_every_mechanism_has_a_control() -> None:
    assert set(WEAKENED) == set(PROVEN_MECHANISMS)
    names = [one.name for one in (*CONTROLS, *WEAK)]
    assert len(set(names)) == len(names) > 35


# -- what replay must catch -------------------------------------------------------------------


def _replayed(ask: Any) -> Any:
    from discreet.audits import replay

    return replay.audited(
        [worst_pair()],
        ask,
        dp.Replace(),
        dp.GDP(1),
        name="control",
        how=replay.Search(lambda: dp.Ledger.open(dp.GDP(9)), 1, 0),
    )


def test_replay_catches_a_question_that_depends_on_rows() -> None:
    def peeking(session: dp.Session) -> None:
        yes = session._engine.sums(_counted(session)).item()
        where = {"x": (0.0, 0.5)} if yes > 12 else {"x": (0.0, 0.6)}
        dp.count(session, where=where, spend=dp.GDP(1), key="peeking")

    assert _replayed(lambda session: dp.mean(session, "x", spend=dp.GDP(1), key="a")).broken == ()
    assert "another question" in str(_replayed(peeking))


def _counted(session: dp.Session) -> Any:
    """The exact number of yes answers, as no procedure may see it."""
    from discreet.estimators.questions import count_question

    asked = count_question(session.public, spend=dp.GDP(1), where={"flag": True})
    return asked.query.plan()


def test_replay_catches_answers_without_a_key_and_moves_beyond_the_claim() -> None:
    fresh = _replayed(lambda session: dp.mean(session, "x", spend=dp.GDP(1)))
    assert "further entries" in str(fresh)
    more = _replayed(lambda session: dp.mean(session, "x", spend=dp.GDP(2), key="a"))
    assert more.violated
    assert "2 " in str(more)


# -- pairs of one's own --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pair_of_tables_is_audited_if_it_is_one() -> None:
    moved = HELD | {"x": [0.1, 0.5, 0.9]}
    found = dp.audit(dp.mean, method="replay", spend=dp.GDP(1), pair=(HELD, moved))
    assert 0.4 < found.lower < 0.6  # 0.4 of the range, and what squares add
    shorter = {name: cells[:2] for name, cells in HELD.items()}
    for pair in ((HELD, shorter), (shorter, HELD)):
        found = dp.audit(
            dp.count,
            method="replay",
            spend=dp.GDP(1),
            pair=pair,
            neighbors=dp.AddRemove(),
        )
        assert found.lower == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("pair", "neighbors"),
    [
        ((HELD, HELD), dp.Replace()),
        ((HELD, HELD | {"x": [0.2, 0.6, 0.5]}), dp.Replace()),
        ((HELD, {"x": [0.1, 0.5], "flag": [True, False]}), dp.Replace()),
        ((HELD, HELD | {"x": [0.1, 0.5, 0.9]}), dp.AddRemove()),
        ((HELD, {"z": [1, 2, 3]}), dp.Replace()),
        ((HELD, {"x": [1, 2], "flag": [True]}), dp.Replace()),
        ((HELD, {"x": 3}), dp.Replace()),
        ((HELD,), dp.Replace()),
        ([HELD, HELD], dp.Replace()),
    ],
)
def test_tables_that_are_no_neighbours_are_refused(pair: Any, neighbors: Any) -> None:
    with pytest.raises(dp.DiscreetError, match="pair="):
        dp.audit(dp.mean, pair=pair, neighbors=neighbors)


def test_measurements_with_an_invoke_method_are_called_by_it() -> None:
    class Measurement:
        def invoke(self, value: float) -> float:
            return value

    measurement: Any = Measurement()
    found = dp.audit(measurement, pair=(0.0, 1.0), claim=dp.PureDP(1), runs=300)
    assert found.name == "Measurement"
    assert found.violated


# -- texts, pictures, refusals ----------------------------------------------------------------


@pytest.mark.slow
def test_results_are_told_drawn_and_written(tmp_path: Path) -> None:
    found = dp.audit(dp.count, method="replay", spend=dp.GDP(1))
    text = str(found)
    assert "which proves nothing" in text
    assert all(len(line) <= 110 for line in text.splitlines())
    told = json.loads(found.to_json())
    assert told["violated"] is False
    assert told["share"] == found.share
    found.plot(path=tmp_path / "audit.png")
    assert (tmp_path / "audit.png").stat().st_size > 3000


@pytest.mark.parametrize(
    "call",
    [
        lambda: dp.audit(dp.plan),
        lambda: dp.audit("mean of x"),
        lambda: dp.audit(dp.mean, method="guess"),
        lambda: dp.audit(dp.mean, engine="duckdb"),
        lambda: dp.audit(dp.mean, pair=(0.0, 1.0)),
        lambda: dp.audit(client.RandomizedResponse(client.Boolean(), epsilon=1), method="replay"),
        lambda: dp.audit(dp.mean, runs=100),
        lambda: dp.audit(dp.mean, confidence=0.5),
        lambda: dp.audit(dp.mean, confidence=1),
        lambda: dp.audit(dp.mean, method="canaries"),
        lambda: dp.audit(dp.mean, spend=1),  # type: ignore[arg-type]
        lambda: dp.audit(dp.mean, neighbors="replace"),  # type: ignore[arg-type]
        lambda: dp.audit(lambda value: value, pair=(0, 1)),
        lambda: dp.audit(lambda value: value, claim=dp.PureDP(1)),
        lambda: dp.audit(3, pair=(0, 1), claim=dp.PureDP(1)),  # type: ignore[arg-type]
        lambda: dp.audit(dp.mean, sped=dp.GDP(1)),  # type: ignore[call-arg]
    ],
)
def test_bad_calls_are_refused_in_four_parts(call: Any) -> None:
    with pytest.raises(dp.DiscreetError) as refused:
        call()
    assert isinstance(refused.value, TypeError) or all(
        part in str(refused.value) for part in (":", "Why it matters:", "What to do:")
    )


def test_seeded_sessions_of_audits_refuse_a_ledger_file(tmp_path: Path) -> None:
    ledger = dp.Ledger.open(dp.GDP(1), path=tmp_path / "real.ledger")
    session = seeded_session(worst_pair().under(dp.Replace())[0], ledger, 1)
    with pytest.raises(dp.InsecureNoise):
        dp.count(session, where={"flag": True}, spend=dp.GDP(1))


@pytest.mark.slow
def test_no_trusted_module_reaches_audits_or_attacks() -> None:
    named = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if path.relative_to(SOURCE).parts[0] not in ("audits", "attacks")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in [getattr(node, "module", None) or "", *(one.name for one in node.names)]
        if name.startswith(("discreet.audits", "discreet.attacks"))
    }
    assert named == {"__init__.py", "cli/audit.py"}
