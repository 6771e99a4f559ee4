"""Sessions whose noise repeats, so that whole releases can be compared. They protect nobody."""

from __future__ import annotations

from discreet.accounting.guarantees import Guarantee
from discreet.testing.seeded import SeededSource
from discreet.trusted.datasets import Dataset
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.session import Session


def seeded_session(dataset: Dataset, budget: Guarantee | Ledger, seed: int | str) -> Session:
    """A session on `dataset` whose noise is a function of `seed`;
    its releases say ``secure=False``.

    `budget` opens a ledger in memory. An open Ledger may be passed instead; one that is a file
    refuses every debit of such a session (`InsecureNoise`).
    """
    ledger = budget if type(budget) is Ledger else Ledger.open(budget)  # type: ignore[arg-type]
    return Session(dataset._engine, dataset.schema, dataset.neighbors, ledger, SeededSource(seed))
