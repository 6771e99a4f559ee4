"""Data in memory have a name: with a ledger file their keys replay as those of files do."""

from __future__ import annotations

from pathlib import Path

import pandas
import polars
import pytest

import discreet as dp

COLUMNS = {"x": [1.0, 2.5, 4.0, 8.0] * 50}
DECLARED = {"schema": {"x": dp.Real(0, 10)}, "neighbors": dp.Replace()}
SPEND = dp.GDP(0.3)
SOURCES = {
    "arrays": lambda **more: dp.from_arrays(COLUMNS, **DECLARED, **more),
    "mapping": lambda **more: dp.from_frame(COLUMNS, **DECLARED, **more),
    "pandas": lambda **more: dp.from_frame(pandas.DataFrame(COLUMNS), **DECLARED, **more),
    "polars": lambda **more: dp.from_frame(polars.DataFrame(COLUMNS), **DECLARED, **more),
}
BY_SOURCE = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


@pytest.mark.few(2)
@BY_SOURCE
def test_a_key_replays_on_data_of_the_same_name(source, tmp_path: Path) -> None:
    first = source(name="four").open(budget=dp.GDP(1), ledger=tmp_path / "l")
    answer = dp.mean(first, "x", spend=SPEND, key="k")
    later = source(name="four").open(budget=dp.GDP(1), ledger=tmp_path / "l")
    assert dp.mean(later, "x", spend=SPEND, key="k") == answer
    assert [entry.kind for entry in later.ledger.entries()] == ["open", "debit", "answer"]


@pytest.mark.few(2)
@BY_SOURCE
def test_a_key_belongs_to_its_name(source, tmp_path: Path) -> None:
    first = source(name="four").open(budget=dp.GDP(1), ledger=tmp_path / "l")
    dp.mean(first, "x", spend=SPEND, key="k")
    other = source(name="five").open(ledger=tmp_path / "l")
    with pytest.raises(dp.LedgerRefused):
        dp.mean(other, "x", spend=SPEND, key="k")
    dp.mean(other, "x", spend=SPEND, key="another")  # and the budget is one


@BY_SOURCE
def test_a_ledger_file_needs_a_name(source, tmp_path: Path) -> None:
    path = tmp_path / "l"
    with pytest.raises(dp.InvalidParameter, match="no name"):
        source().open(budget=dp.GDP(1), ledger=path)
    assert not path.exists()
    with pytest.raises(dp.InvalidParameter, match="no name"):
        source().open(ledger=dp.Ledger.open(dp.GDP(1), path=path))
    source().open(ledger=dp.Ledger.open(dp.GDP(1)))


@BY_SOURCE
def test_without_a_name_every_declaration_is_another_data_set(source) -> None:
    ledger = dp.Ledger.open(dp.GDP(1))
    first, second = source().open(ledger=ledger), source().open(ledger=ledger)
    dp.mean(first, "x", spend=SPEND, key="k")
    with pytest.raises(dp.LedgerRefused):
        dp.mean(second, "x", spend=SPEND, key="k")


@pytest.mark.parametrize("name", ["", "x" * 201, 3, b"k", True])
def test_odd_names_are_refused(name) -> None:
    with pytest.raises(dp.InvalidParameter):
        dp.from_arrays(COLUMNS, **DECLARED, name=name)


def test_a_name_is_no_token_and_no_path(tmp_path: Path) -> None:
    """A name that is written like the id of other data does not mean them."""
    frame = SOURCES["arrays"]()
    token = frame._engine.data_id().removeprefix("memory:")
    assert SOURCES["arrays"](name=token)._engine.data_id() != frame._engine.data_id()
