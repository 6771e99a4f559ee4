"""What is said, raised, stored or read back tells nothing of the data."""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
import warnings
from fractions import Fraction
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from reliability_cases import ESTIMATORS, RELATIONS, SCHEMA
from test_attacks import small_data
from tests.chance import without_chance

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.estimators import questions
from discreet.exact import fraction_text, stored_fraction
from discreet.inference.results.stored import release_from_json
from discreet.testing import seeded_session
from discreet.trusted.release import Description

SECRETS = ("planted-4417", "person-5561", "7.31957", "731957")
PLANTED = {
    "x": [7.319573125] * 3,
    "k": [5] * 3,
    "b": [True] * 3,
    "c": ["planted-4417"] * 3,
    "id": ["person-5561"] * 3,
}
PLAIN = {"x": [1.0] * 3, "k": [2] * 3, "b": [False] * 3, "c": ["N"] * 3, "id": ["person-0"] * 3}


def texts_of(columns: dict[str, Any], neighbors: Any, break_engine: bool) -> list[str]:
    """Everything that is said about a data set:
    errors of every kind, reprs, warnings and log lines.
    """
    data = dp.from_arrays(columns, schema=SCHEMA, neighbors=neighbors)
    session = seeded_session(data, dp.GDP(1), 3)
    if break_engine:

        def fail(*_: Any) -> Any:
            raise ValueError(f"cannot read {columns}")

        session._engine.sums = session._engine.fold = fail
    texts = [repr(data), repr(session.public), repr(session).rsplit("head", 1)[0]]
    for ask in (
        lambda: dp.mean(session, "x", spend=dp.GDP(9)),
        lambda: dp.mean(session, "planted", spend=dp.GDP(0.1)),
        lambda: dp.table(session, by="x", spend=dp.GDP(0.1)),
        lambda: dp.mean(session, "c", spend=dp.GDP(0.1)),
        lambda: dp.histogram(session, "x", bins=[1, 0], spend=dp.GDP(0.1)),
        lambda: dp.mean(session, "x", spend=dp.GDP(0.1), key="fixed"),
    ):
        try:
            ask()
            texts.append("an answer")
        except dp.DiscreetError as error:
            texts.append(f"{type(error).__name__} {error} {error.__cause__} {error.__context__}")
    return texts


@pytest.mark.few(2)
@pytest.mark.parametrize("break_engine", [False, True])
@pytest.mark.parametrize("relation", ["replace", "add_remove", "units", "replaced units"])
def test_case_44_texts_do_not_depend_on_the_data(relation, break_engine, caplog, capfd):
    """The same texts for planted and for plain data of one size,
    also where the engine fails with the data in its message.
    """
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said = [
            texts_of(columns, RELATIONS[relation], break_engine) for columns in (PLANTED, PLAIN)
        ]
    assert said[0] == said[1]
    assert ("ReleaseFailed" in said[0][-1]) is break_engine
    assert not caught
    assert not caplog.records
    assert capfd.readouterr() == ("", "")
    assert not any(secret in text for text in said[0] for secret in SECRETS)


@pytest.mark.slow
@pytest.mark.parametrize("relation", RELATIONS)
def test_case_44_what_is_handed_out_holds_no_planted_value(relation):
    # the digits of secure noise hold six given ones now and then
    session = seeded_session(
        dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=RELATIONS[relation]), dp.GDP(10), relation
    )
    handed_out = [
        str(dp.preview(session, dp.mean, "x", spend=dp.GDP(0.1), assume=dp.Assumptions(rows=3)))
    ]
    for ask in ESTIMATORS.values():
        result = ask(session, dp.GDP(0.1))
        handed_out += [
            pickle.dumps(result).decode("latin-1"),
            result.to_json(),
            str(result),
            repr(result),
            result._repr_html_(),
            str(result.to_frame()),
        ]
    handed_out += [str(entry) for entry in session.ledger.entries()] + [str(session.ledger)]
    assert not any(
        secret in without_chance(text, session.ledger) for text in handed_out for secret in SECRETS
    )


def damaged(path, damage):
    if damage == "gone":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    else:
        pq.write_table(pl.DataFrame({"planted-4417": ["person-5561"]}).to_arrow(), path)


def test_case_44_a_source_that_breaks_after_the_debit_says_nothing(tmp_path, monkeypatch):
    """A file that is gone, cut or exchanged after a debit: one text, the debit stands, and a retry
    on the file declared again is not charged again.
    """
    path = tmp_path / "data.parquet"
    texts = set()
    for damage in ("gone", "cut", "other"):
        pl.DataFrame(PLANTED).write_parquet(path)
        session = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            budget=dp.GDP(1)
        )
        damaged(path, damage)
        with monkeypatch.context() as patch:
            looks = iter([True])  # it breaks between the look before the debit and the pass
            patch.setattr(
                type(session._engine), "unchanged", lambda engine, looks=looks: next(looks, False)
            )
            with pytest.raises(dp.ReleaseFailed) as caught:
                dp.mean(session, "x", spend=dp.GDP(0.5), key="fixed")
        assert caught.value.__context__ is None
        texts.add(str(caught.value))
        paid = session.ledger.spent()
        assert paid
        pl.DataFrame(PLANTED).write_parquet(path)
        again = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            ledger=session.ledger
        )
        assert dp.mean(again, "x", spend=dp.GDP(0.5), key="fixed").release.entry == 1
        assert session.ledger.spent() == paid
        # what is stored needs no file
        assert dp.mean(session, "x", spend=dp.GDP(0.5), key="fixed").release.entry == 1
    assert len(texts) == 1
    assert not any(secret in text for text in texts for secret in SECRETS)


def test_case_44_a_source_that_broke_before_a_question_costs_nothing(tmp_path):
    path = tmp_path / "data.parquet"
    texts = set()
    for damage in ("gone", "cut", "other"):
        pl.DataFrame(PLANTED).write_parquet(path)
        session = dp.read_parquet(path, schema=SCHEMA, neighbors=dp.AddRemove()).open(
            budget=dp.GDP(1)
        )
        damaged(path, damage)
        with pytest.raises(dp.SourceChanged) as caught:
            dp.mean(session, "x", spend=dp.GDP(0.5))
        texts.add(str(caught.value))
        assert not session.ledger.spent()
    assert len(texts) == 1
    assert not any(secret in text for text in texts for secret in SECRETS)


@pytest.mark.few(2)
@pytest.mark.parametrize("source", ["arrays", "frame", "parquet", "csv"])
def test_case_46_a_rare_key_shows_nowhere(source, tmp_path):
    """A group-by has its declared cells, whoever is in the data;
    a row with a rare undeclared key changes no cell at all.
    """
    released = []
    for rare in (["planted-4417"], []):
        frame = pl.DataFrame({"x": [1.0] * (10 + len(rare)), "c": ["N", "é"] * 5 + rare})
        place = tmp_path / f"{len(rare)}.{source}"
        schema, neighbors = {"x": SCHEMA["x"], "c": SCHEMA["c"]}, dp.AddRemove()
        if source == "arrays":
            data = dp.from_arrays(
                frame.to_dict(as_series=False), schema=schema, neighbors=neighbors
            )
        elif source == "frame":
            data = dp.from_frame(frame, schema=schema, neighbors=neighbors)
        elif source == "csv":
            frame.write_csv(place)
            data = dp.read_csv(place, schema=schema, neighbors=neighbors)
        else:
            frame.write_parquet(place)
            data = dp.read_parquet(place, schema=schema, neighbors=neighbors)
        session = seeded_session(data, dp.GDP(10), 11)
        results = [
            dp.table(session, by="c", spend=dp.GDP(0.5)),
            dp.table(session, "x", by="c", spend=dp.GDP(0.5)),
            dp.histogram(session, "c", spend=dp.GDP(0.5)),
        ]
        assert all(
            [label for (label,) in result.labels] == ["N", "é", "0", "a\0b"] for result in results
        )
        assert not any("planted" in str(result) + result.to_json() for result in results)
        released.append([result.release.integers for result in results])
        for ask in (
            lambda session=session: dp.count(
                session, where={"c": "planted-4417"}, spend=dp.GDP(0.1)
            ),
            lambda session=session: dp.proportion(
                session, "c", level="planted-4417", spend=dp.GDP(0.1)
            ),
        ):
            with pytest.raises(dp.InvalidParameter):
                ask()
    assert released[0] == released[1]


# ── texts that nobody wrote ─────────────────────────────────────────────────────────────────────


def _places(record: Any) -> list[tuple[Any, Any]]:
    """Every holder and name of a value in a JSON record."""
    pairs = record.items() if isinstance(record, dict) else enumerate(record)
    found: list[tuple[Any, Any]] = []
    for name, held in list(pairs):
        found.append((record, name))
        found += _places(held) if isinstance(held, (dict, list)) else []
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["count", "median", "mean"])
def test_hostile_texts_are_refused_and_fill_no_memory(name: str) -> None:
    session = small_data(0.5, dp.AddRemove()).open(budget=dp.GDP(3))
    asked = {
        "count": lambda: dp.count(session, spend=dp.GDP(1)),
        "mean": lambda: dp.mean(session, "x", spend=dp.GDP(1)),
        "median": lambda: dp.median(session, "x", spend=dp.GDP(1)),
    }
    text, tried, refused = asked[name]().to_json(), 0, 0
    for place in range(len(_places(json.loads(text)))):
        for hostile in ("1e200000000", "1/0", "9" * 5000, "0.5", "1_0", None, [], {}, -1, 1.5):
            record = json.loads(text)
            holder, key = _places(record)[place]
            holder[key] = hostile
            tried += 1
            try:  # the text of a label may be anything
                dp.from_json(json.dumps(record))
            except InvalidParameter:
                refused += 1
    assert refused > tried / 2


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format":' * 50_000, "[[]]", "null", "1"])
def test_texts_of_any_depth_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        dp.from_json(text)
    nested = '{"format": "discreet-release", "version": 1, "asked": %s}' % (
        "[" * 100_000 + "]" * 100_000
    )
    with pytest.raises(InvalidParameter):
        dp.from_json(nested)


def test_a_stored_fraction_is_what_was_written_and_nothing_else() -> None:
    for number in (Fraction(3, 7), Fraction(-2), Fraction(10**2000, 7)):
        assert stored_fraction(fraction_text(number)) == number
    for text in ("1e9", "0.5", "1_0", " 1", "1/0", "1/-2", "+1", "", "٣", "1" * 5000, 0.5, None):
        with pytest.raises(ValueError, match="stored fraction"):
            stored_fraction(text)


def test_a_release_of_a_procedure_without_a_step_is_read_again() -> None:
    session = small_data(0.5, dp.AddRemove()).open(budget=dp.GDP(3))
    question = questions.count_question(session.public, spend=dp.GDP(1), where={"b": True})
    described = dataclasses.replace(question, description=Description("ols"))
    release = session.release(described)
    assert release_from_json(release.to_json()) == release
