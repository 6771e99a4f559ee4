"""Every golden case: a name and a function that computes its record.

A name is group/question/relation/variant. Groups become files:
tests/golden/recorded/<group>.json.gz.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import golden_asks as asks
from golden_data import RELATIONS, Sources
from golden_told import ledger_told, plain, refusal, told

import discreet as dp
from discreet.testing import SeededSource, seeded_session
from discreet.trusted.engines import execution

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
Case = Callable[[Sources], Any]
ITERATIVE = ("fits", "searches/", "residuals/", "sklearn/")
SPENDS_OF: dict[str, tuple[str, ...]] = {
    "replace": ("gdp", "pure", "approx", "zcdp"),
    "addremove": ("gdp",),
    "replace-unit": ("gdp",),
    "addremove-unit": ("gdp", "pure"),
}
ENGINES = ("frame", "parquet", "csv")
ASSUMED = dp.Assumptions(rows=300, mean=50, standard_deviation=12, share=0.3)


def open_ledger(kind: str) -> Any:
    """A ledger in memory with a large box of a kind."""
    if kind == "gdp":
        return dp.Ledger.open(dp.GDP(100))
    if kind == "pure":
        return dp.Ledger.open(dp.PureDP(100))
    if kind == "zcdp":
        return dp.Ledger.open(dp.ZCDP(500), delta0=0.01)
    return dp.Ledger.open(dp.ApproxDP(900, 0.5), pure=100, delta0=0.1)


@contextlib.contextmanager
def parts_apart() -> Iterator[None]:
    """Parts from a stream of their own: when part tests were recorded the system's generator drew
    parts, and the session's stream gave noise alone. Their tests answer alike whatever the parts.
    """
    drawn = execution._REJECTIONS
    execution._REJECTIONS = lambda engine, plan, _: drawn(engine, plan, SeededSource("parts"))
    try:
        yield
    finally:
        execution._REJECTIONS = drawn


def asked(
    sources: Sources, name: str, ask: asks.Ask, relation: str, engine: str, spend: str, full: bool
) -> Any:
    """One question on one data set: its result and what the ledger then holds."""
    box = "approx" if spend == "gdp" else spend
    ledger = open_ledger(box)
    session = seeded_session(sources.data(engine, relation), ledger, f"{name}/{relation}/{spend}")
    try:
        with parts_apart():
            record = told(ask(session, asks.SPENDS[spend], key="golden"), full=full)
    except dp.DiscreetError as error:
        record = refusal(error)
    return record | {"ledger": ledger_told(ledger)}


def ask_cases(group: str, questions: dict[str, asks.Ask]) -> Iterator[tuple[str, Case]]:
    """Every question: all relations on all engines, and all spends in boxes of their kind."""

    def case(name: str, relation: str, engine: str, spend: str, full: bool) -> Case:
        ask = questions[name]
        return lambda sources: asked(sources, name, ask, relation, engine, spend, full)

    for name in questions:
        for relation in RELATIONS:
            start = f"{group}/{name}/{relation}"
            few = group == "fits" and relation != "replace"
            for spend in ("gdp",) if few else SPENDS_OF[relation]:
                full = spend == "gdp" or (spend == "pure" and relation == "replace")
                yield f"{start}/arrays-{spend}", case(name, relation, "arrays", spend, full)
            for engine in ("parquet",) if few else ENGINES:
                yield f"{start}/{engine}-gdp", case(name, relation, engine, "gdp", False)


def preview_cases() -> Iterator[tuple[str, Case]]:
    """Every preview: all relations with each spend, in a box of its kind; nothing may be spent."""

    def case(name: str, relation: str, spend: str, box: str) -> Case:
        def run(sources: Sources) -> Any:
            session = seeded_session(sources.data("arrays", relation), open_ledger(box), name)
            head = session.ledger.head
            estimator, given, options = asks.PREVIEWS[name]
            spent = asks.SPENDS[spend]
            try:
                made = dp.preview(
                    session, estimator, *given, spend=spent, assume=ASSUMED, level=0.9, **options
                )
            except dp.DiscreetError as error:
                return refusal(error)
            assert session.ledger.head == head
            return told(made)

        return run

    for name in asks.PREVIEWS:
        for relation in RELATIONS:
            for spend in SPENDS_OF[relation]:
                yield f"previews/{name}/{relation}/{spend}", case(name, relation, spend, spend)
        for box in ("pure", "approx", "zcdp"):
            for spend in ("gdp", "pure") if box != "pure" else ("gdp",):
                yield f"previews/{name}/{spend} in a box/{box}", case(name, "replace", spend, box)


def cases() -> dict[str, Case]:
    """All of them by name."""
    import golden_more

    found = dict(ask_cases("asks", asks.ASKS))
    found |= dict(ask_cases("searches", asks.SEARCHES))
    found |= dict(ask_cases("fits", asks.FITS))
    found |= dict(preview_cases())
    return found | dict(golden_more.cases())


def computed(sources: Sources, case: Case) -> Any:
    """A case's record as JSON would give it back."""
    return json.loads(json.dumps(plain(case(sources))))


@contextlib.contextmanager
def opened_sources() -> Iterator[Sources]:
    """The survey in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        yield Sources(Path(folder))


def read_recorded() -> dict[str, Any]:
    """All records by name; one that says "as" is that of another case, in part."""
    found: dict[str, Any] = {}
    for path in sorted(RECORDED.glob("*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as text:
            found |= json.load(text)
    return found


def write_recorded(records: dict[str, Any]) -> None:
    """One file a group, the same bytes for the same records."""
    RECORDED.mkdir(exist_ok=True)
    for group in sorted({name.split("/")[0] for name in records}):
        part = {name: one for name, one in records.items() if name.split("/")[0] == group}
        lines = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(one, ensure_ascii=False)}"
            for name, one in part.items()
        )
        packed = gzip.compress(f"{{\n{lines}\n}}\n".encode(), 9, mtime=0)
        (RECORDED / f"{group}.json.gz").write_bytes(packed)


def referred(name: str) -> str | None:
    """The case on arrays whose record a case on another engine repeats."""
    start, _, variant = name.rpartition("/")
    engine, _, spend = variant.partition("-")
    return f"{start}/arrays-{spend}" if engine in ENGINES and spend else None


def part_of(record: Any, short: Any) -> Any:
    """The fields of a full record that a short one has."""
    return {field: record[field] for field in short if field in record}


def iterative(name: str) -> bool:
    """Whether later questions of a case depend on floats of earlier answers."""
    return name.startswith(ITERATIVE)
