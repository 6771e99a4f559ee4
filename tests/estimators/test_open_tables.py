"""Tables by keys that nobody declared, through the public function."""

from __future__ import annotations

import copy
import dataclasses
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.accounting.calibration.thresholds import thresholded_counts
from discreet.estimators import questions
from discreet.inference.counts.open_keys import OpenTableResult, printable
from discreet.schema import column_from_dict
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.open_keys import ThresholdedCounts
from discreet.specs.queries.keys import Subset
from discreet.specs.queries.open_keys import OpenCounts
from discreet.specs.registry import query_from_dict
from discreet.testing import seeded_session
from discreet.trusted.ledger.core import Ledger

SCHEMA = {
    "city": dp.Open(),
    "shop": dp.Open(),
    "age": dp.Integer(18, 90),
    "member": dp.Boolean(),
    "cost": dp.Real(0, 100),
}
RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=2),
    dp.AddRemove(unit="id", max_rows=2),
]
SPENDS = [
    (dp.GDP(0.5), 1e-8),
    (dp.PureDP(0.5), 1e-8),
    (dp.ZCDP(0.125), 1e-8),
    (dp.ApproxDP(1, 1e-6), None),
]
ROWS = 3000


def columns(seed=1, rows=ROWS):
    rng = np.random.default_rng(seed)
    return {
        "city": rng.choice(
            ["Ghent", "Łódź", "17", "Ávila"], rows, p=[0.5, 0.3, 0.15, 0.05]
        ).tolist(),
        "shop": rng.choice(["A", "B"], rows).tolist(),
        "age": rng.integers(18, 91, rows).tolist(),
        "member": (rng.random(rows) < 0.4).tolist(),
        "cost": rng.random(rows).tolist(),
        "id": np.repeat(np.arange(rows), 2)[:rows].tolist(),
    }


def session_for(neighbors, *, data=None, budget=None, seed=7):
    return seeded_session(
        dp.from_arrays(data or columns(), schema=SCHEMA, neighbors=neighbors),
        budget or dp.ApproxDP(50, 1e-4),
        seed,
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize(("spend", "delta"), SPENDS, ids=str)
def test_every_relation_and_spend(neighbors, spend, delta):
    data = columns()
    result = dp.table(session_for(neighbors), by="city", spend=spend, delta=delta)
    assert isinstance(result, OpenTableResult)
    noise = result.release.mechanism.noise
    assert noise.kind == ("geometric" if isinstance(spend, dp.PureDP) else "gaussian")
    truth = {key: data["city"].count(key) for key in set(data["city"])}
    count = result.quantities()[0]
    for (key,), estimate, low, high in zip(
        result.labels, count.estimate, count.low, count.high, strict=True
    ):
        assert abs(estimate - truth[key]) < 12 * noise.variance**0.5
        assert 1 <= low <= high
    assert set(truth) - {key for (key,) in result.labels} <= {
        key for key in truth if truth[key] < result.threshold + 12 * noise.variance**0.5
    }
    assert [quantity.name for quantity in result.quantities()] == (
        ["count", "share"] if neighbors == dp.Replace() else ["count"]
    )
    assert dp.from_json(result.to_json()).release == result.release
    assert copy.deepcopy(result) == result
    assert result.show_probability(neighbors.rows) <= 1e-7
    assert float(result.release.delta) == pytest.approx(delta or 1e-7)


def test_keys_can_be_crossed_with_open_and_declared_columns_and_filtered():
    data = columns()
    frame = pl.DataFrame(data)
    session = session_for(dp.AddRemove())
    result = dp.table(
        session,
        by={"age": [18, 40, 90], "city": None, "member": None, "shop": None},
        where={"cost": (0.1, 0.8)},
        spend=dp.GDP(5),
        delta=1e-6,
    )
    assert result.release.description.by == ("age", "city", "member", "shop")
    kept = frame.filter(pl.col("cost").is_between(0.1, 0.8)).with_columns(
        pl.when(pl.col("age") < 40).then(pl.lit("18–39")).otherwise(pl.lit("40–90")).alias("age"),
        pl.col("member").cast(str).str.to_titlecase().alias("member"),
    )
    truth = {
        tuple(row[:4]): row[4]
        for row in kept.group_by("age", "city", "member", "shop").len().iter_rows()
    }
    assert len(result.labels) > 20
    for label, estimate in zip(result.labels, result.params, strict=True):
        assert abs(estimate - truth[label]) < 2
    assert {label for label, count in truth.items() if count > result.threshold + 2} <= set(
        result.labels
    )
    record = result.records()[0]
    assert list(record)[:4] == ["age", "city", "member", "shop"]
    assert dp.from_json(result.to_json()).labels == result.labels


@pytest.mark.slow
def test_sources_give_the_same_release(tmp_path):
    data = columns()
    frame = pl.DataFrame(data)
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_csv(tmp_path / "a.csv")
    for neighbors in RELATIONS:
        options = {"schema": SCHEMA, "neighbors": neighbors}
        sources = [
            dp.from_arrays(data, **options),
            dp.from_frame(frame, **options),
            dp.from_frame(frame.to_pandas(), **options),
            dp.from_frame(frame.to_arrow(), **options),
            dp.read_parquet(tmp_path / "a.parquet", **options),
            dp.read_csv(tmp_path / "a.csv", **options),
        ]
        answers = {
            dp.table(
                seeded_session(source, dp.ApproxDP(9, 1e-5), 3),
                by=["city", "shop"],
                spend=dp.GDP(1),
                delta=1e-7,
                where={"member": True},
            ).release.integers
            for source in sources
        }
        assert len(answers) == 1


REFUSED = {
    "no delta": lambda session: dp.table(session, by="city", spend=dp.GDP(0.1)),
    "no delta, pure": lambda session: dp.table(
        session, by=["member", "city"], spend=dp.PureDP(0.1)
    ),
    "no delta, zCDP": lambda session: dp.table(session, by="city", spend=dp.ZCDP(0.1)),
    "delta 0": lambda session: dp.table(session, by="city", spend=dp.GDP(0.1), delta=0),
    "delta 1": lambda session: dp.table(session, by="city", spend=dp.GDP(0.1), delta=1),
    "delta negative": lambda session: dp.table(session, by="city", spend=dp.GDP(0.1), delta=-1e-9),
    "delta NaN": lambda session: dp.table(
        session, by="city", spend=dp.GDP(0.1), delta=float("nan")
    ),
    "delta text": lambda session: dp.table(session, by="city", spend=dp.GDP(0.1), delta="1e-9"),
    "delta above the spend's": lambda session: dp.table(
        session, by="city", spend=dp.ApproxDP(0.1, 1e-9), delta=1e-8
    ),
    "delta for declared keys": lambda session: dp.table(
        session, by="member", spend=dp.GDP(0.1), delta=1e-9
    ),
    "means": lambda session: dp.table(session, "cost", by="city", spend=dp.GDP(0.1), delta=1e-9),
    "bins": lambda session: dp.table(session, by={"city": [1, 2]}, spend=dp.GDP(0.1), delta=1e-9),
    "twice": lambda session: dp.table(session, by=["city", "city"], spend=dp.GDP(0.1), delta=1e-9),
    "undeclared": lambda session: dp.table(
        session, by=["city", "town"], spend=dp.GDP(0.1), delta=1e-9
    ),
    "where": lambda session: dp.count(session, where={"city": "Ghent"}, spend=dp.GDP(0.1)),
    "where range": lambda session: dp.table(
        session, by="city", where={"shop": (1, 2)}, spend=dp.GDP(0.1), delta=1e-9
    ),
    "mean": lambda session: dp.mean(session, "city", spend=dp.GDP(0.1)),
    "sum": lambda session: dp.sum(session, "city", spend=dp.GDP(0.1)),
    "variance": lambda session: dp.variance(session, "city", spend=dp.GDP(0.1)),
    "histogram": lambda session: dp.histogram(session, "city", spend=dp.GDP(0.1)),
    "histogram bins": lambda session: dp.histogram(session, "city", bins=4, spend=dp.GDP(0.1)),
    "proportion": lambda session: dp.proportion(session, "city", level="Ghent", spend=dp.GDP(0.1)),
    "no spend": lambda session: dp.table(session, by="city", spend=None, delta=1e-9),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_open_column_cannot_do_is_refused_before_the_debit(name):
    session = session_for(dp.AddRemove())
    head = session.ledger.head
    with pytest.raises(dp.DiscreetError) as caught:
        REFUSED[name](session)
    assert caught.value.asked
    assert caught.value.found
    assert caught.value.why
    assert caught.value.remedy
    assert session.ledger.head == head
    if name.startswith("no delta"):
        assert "delta" in caught.value.why
        assert "dp.Category" in caught.value.remedy


@pytest.mark.parametrize("budget", [dp.GDP(5), dp.PureDP(5), dp.ZCDP(1)], ids=str)
def test_a_ledger_without_room_for_delta_refuses(budget):
    session = session_for(dp.AddRemove(), budget=budget)
    head = session.ledger.head
    with pytest.raises(dp.BudgetExceeded):
        dp.table(session, by="city", spend=dp.PureDP(0.5), delta=1e-9)
    assert session.ledger.head == head


def test_delta_is_charged_and_runs_out():
    session = session_for(dp.AddRemove(), budget=Ledger.open(dp.ApproxDP(20, 1e-6), delta0=2.5e-8))
    for _ in range(2):
        dp.table(session, by="city", spend=dp.GDP(0.1), delta=1e-8)
    with pytest.raises(dp.BudgetExceeded):
        dp.table(session, by="city", spend=dp.GDP(0.1), delta=1e-8)
    assert dp.count(session, spend=dp.GDP(0.1)).params.size == 1


def test_the_same_key_gives_the_same_keys():
    session = session_for(dp.AddRemove())
    first, second = (
        dp.table(session, by="city", spend=dp.GDP(0.1), delta=1e-8, key="cities") for _ in range(2)
    )
    assert first.release == second.release
    assert first.release.found


def test_forged_questions_are_refused():
    session = session_for(dp.Replace(unit="id", max_rows=2))
    head = session.ledger.head
    right = questions.table_question(session.public, by="city", spend=dp.GDP(0.5), delta=1e-8)
    spend, delta = right.spend, right.delta
    forged = [
        dataclasses.replace(right, mechanism=thresholded_counts(Rows(1, "changed"), spend, delta)),
        dataclasses.replace(
            right, mechanism=thresholded_counts(Rows(2, "added or removed"), spend, delta)
        ),
        dataclasses.replace(
            right,
            mechanism=dataclasses.replace(
                right.mechanism, threshold=right.mechanism.threshold - 2000
            ),
        ),
        dataclasses.replace(right, mechanism=right.mechanism.noise),
        dataclasses.replace(right, delta=Fraction(1, 10**9)),
        dataclasses.replace(right, spend=dp.GDP(0.4)),
        dataclasses.replace(
            questions.table_question(session.public, by="member", spend=dp.GDP(0.5)),
            mechanism=right.mechanism,
            delta=delta,
        ),
    ]
    for question in forged:
        with pytest.raises(dp.InvalidParameter, match="a question"):
            session.release(question)
    assert session.ledger.head == head
    assert session.release(right).found


def test_specs_and_declarations_come_back_from_their_records():
    query = OpenCounts(("city", "shop"), (Subset("member", (1,)),))
    assert query_from_dict(query.to_dict()) == query
    mechanism = thresholded_counts(Rows(3, "changed"), dp.GDP(1), Fraction(1, 10**6))
    assert ThresholdedCounts.from_dict(mechanism.to_dict()) == mechanism
    assert column_from_dict(dp.Open().to_dict()) == dp.Open()


@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
def test_a_preview_tells_the_threshold_without_data(neighbors):
    session = session_for(neighbors)
    head = session.ledger.head
    seen = dp.preview(
        session,
        dp.table,
        by=["city", "member"],
        spend=dp.GDP(0.5),
        delta=1e-8,
        assume=dp.Assumptions(rows=5000, share=0.2),
    )
    mechanism = questions.table_question(
        session.public, by=["city", "member"], spend=dp.GDP(0.5), delta=1e-8
    ).mechanism
    assert f"{float(mechanism.least_shown):.4g}" in str(seen)
    assert "probability at most 1e-08" in str(seen)
    assert seen.noise == pytest.approx(
        mechanism.variance**0.5 if neighbors != dp.Replace() else mechanism.variance**0.5 / ROWS
    )
    assert (
        "of twice the threshold"
        in str(dp.preview(session, dp.table, by="city", spend=dp.PureDP(0.5), delta=1e-8))
        or neighbors == dp.Replace()
    )
    assert session.ledger.head == head


def test_results_print_plot_and_make_frames():
    data = columns()
    data["city"] = [{"17": "$x_", "Ávila": "[/red]\n"}.get(city, city) for city in data["city"]]
    result = dp.table(session_for(dp.Replace(), data=data), by="city", spend=dp.GDP(1), delta=1e-8)
    text = str(result)
    assert "[/red]\\n" in text
    assert "$x_" in text
    assert "noisy count of" in text
    assert len(result.to_frame()) == 2 * len(result.labels)
    assert result.to_frame(backend="pyarrow").num_rows == 2 * len(result.labels)
    canvas = result.plot()
    canvas.canvas.draw()
    assert next(tick.get_text() for tick in canvas.axes[0].get_xticklabels()) == "$x_"
    assert printable("a\u202eb\0") == "a\\u202eb\\x00"
    data_set = result.quantities(target="data")[1]
    assert np.all(
        data_set.high - data_set.low < result.quantities()[1].high - result.quantities()[1].low
    )
