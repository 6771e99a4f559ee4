"""Noise that repeats, for tests and demonstrations only: a source, sessions and local reports whose
bits are a function of a seed. They protect nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from discreet.accounting.guarantees import Guarantee
from discreet.specs.mechanisms.local import LocalSpec
from discreet.trusted.datasets import Dataset
from discreet.trusted.extensions.local.client import randomized
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.noise.source import Words, counter_mode, keystream, take_bits
from discreet.trusted.session import Session


class SeededSource:
    """A source whose bits are a function of `seed`: AES-256-CTR, key =
    SHA-256("discreet.testing/" + seed), counter 0.
    """

    __slots__ = ("_encryptor",)
    secure = False

    def __init__(self, seed: int | str) -> None:
        key = hashlib.sha256(f"discreet.testing/{seed}".encode()).digest()
        self._encryptor: Any = counter_mode(key, bytes(16))

    def uint64(self, count: int) -> Words:
        """The next `count` 64-bit words."""
        return keystream(self._encryptor, count)

    def bits(self, count: int) -> int:
        """The next integer of `count` bits."""
        return take_bits(self, count)


def seeded_session(dataset: Dataset, budget: Guarantee | Ledger, seed: int | str) -> Session:
    """A session on `dataset` whose noise is a function of `seed`;
    its releases say ``secure=False``.

    `budget` opens a ledger in memory. An open Ledger may be passed instead; one that is a file
    refuses every debit of such a session (`InsecureNoise`).
    """
    ledger = budget if type(budget) is Ledger else Ledger.open(budget)  # type: ignore[arg-type]
    return Session(dataset._engine, dataset.schema, dataset.neighbors, ledger, SeededSource(seed))


def seeded_reports(spec: LocalSpec, values: Iterable[Any], seed: int | str) -> Any:
    """`discreet.trusted.extensions.local.client.reports` with seeded bits:
    the same seed gives the same reports.
    """
    return randomized(spec, values, SeededSource(seed))
