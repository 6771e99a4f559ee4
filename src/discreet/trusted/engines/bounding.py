"""Contribution bounding: at most `max_rows` rows of a unit count,
chosen from that unit's own rows alone.

Within a unit, rows are put in a pseudo-random order: a hash of the unit's id, of the row's encoded
content (all declared columns, by sorted name; of an Open column the MD5 of its key) and of the
number of earlier copies of the same content; ties go by the content itself. The first `max_rows`
are kept; a row without an id belongs to nobody and counts nowhere. Only whole-number arithmetic
below 2**63 is used, so that every engine computes the same order.

Theorem.  Changing one unit's rows changes which rows are kept of that unit only, and at most
          max_rows of them; the kept rows do not depend on the order in which rows are stored.
Proof.    The order within a unit is a function of the multiset of that unit's rows and its id. Rows
          that tie are equal in everything that is read, so they are interchangeable.
Checked.  tests/claims/test_exact_sums.py::test_one_unit_never_moves_a_sum_by_more_than_claimed

The hash is public and fixed: no secret is needed, since the guarantee above holds for every order
whatsoever. It only has to be unrelated to the values, so that the kept rows are a fair sample of
the unit's rows. The id varies the order between units, and copies count separately, so a value is
kept in proportion to its share.
Checked.  tests/trusted/engines/test_bounding.py::test_kept_rows_are_a_fair_sample
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

PRIME = (1 << 31) - 1
MULTIPLIER = 1_583_458_089
INCREMENT = 784_588_716
FINAL_ROUNDS = 3

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Content:
    """One declared column of the rows: what rows are ordered by,
    and the non-negative whole number that is hashed.
    """

    ordered: npt.NDArray[Any]
    hashed: npt.NDArray[np.int64]


def unit_seed(text: str) -> int:
    """The start of a unit's hash chain: the last eight bytes of the MD5 of its id's text,
    modulo the prime.

    MD5 serves as a mixing function; nothing here is a secret.
    """
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little") % PRIME


def kept_rows(
    labels: Labels, seeds: Sequence[str], contents: Sequence[Content], max_rows: int
) -> npt.NDArray[np.int64] | None:
    """The row numbers to keep, in increasing order; None when every row is kept."""
    owned = labels >= 0
    crowded_units = np.bincount(labels[owned], minlength=len(seeds)) > max_rows
    crowded = np.flatnonzero(owned & np.append(crowded_units, False)[labels])
    if not crowded.size:
        return None if owned.all() else np.flatnonzero(owned)
    units = labels[crowded]
    ordered = [content.ordered[crowded] for content in contents]
    asked = zip(seeds, crowded_units, strict=True)
    starts = [unit_seed(text) if needed else 0 for text, needed in asked]
    value = np.array(starts, dtype=np.int64)[units]
    value = chained(value, [content.hashed[crowded] for content in contents])
    value = final_hash(hash_step(value, ranks(units, value, ordered, among_copies=True)))
    keep = owned
    keep[crowded[ranks(units, value, ordered, among_copies=False) >= max_rows]] = False
    return np.flatnonzero(keep)


def chained(value: Labels, hashed: Sequence[npt.NDArray[np.int64]]) -> Labels:
    """The hash of each row's content, column after column, from the seed of its unit on."""
    for part in hashed:
        value = hash_step(value, part)
    return value


def ranks(
    units: Labels, value: Labels, ordered: Sequence[npt.NDArray[Any]], *, among_copies: bool
) -> Labels:
    """Each row's position, by hash and then content, within its unit,
    or among the copies of its content there.
    """
    key = units * (PRIME + 1) + value  # below 2**63 for fewer than 2**32 units
    order = np.argsort(key)
    tied = np.zeros(order.size, dtype=bool)
    same = key[order[1:]] == key[order[:-1]]
    tied[1:] |= same
    tied[:-1] |= same
    rows = order[tied]
    order[tied] = rows[np.lexsort((*(column[rows] for column in ordered), key[rows]))]
    starts = np.ones(order.size, dtype=bool)
    starts[1:] = (
        key[order[1:]] != key[order[:-1]] if among_copies else units[order[1:]] != units[order[:-1]]
    )
    if among_copies:
        for column in ordered:
            starts[1:] |= column[order[1:]] != column[order[:-1]]
    index = np.arange(order.size)
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = index - np.maximum.accumulate(np.where(starts, index, 0))
    return rank


def hash_step(value: Labels, part: npt.NDArray[np.int64]) -> Labels:
    """h ← mix(h·A + part), part below 2**33; mix(h) = (h² + h·A + B) mod p;
    every intermediate is below 2**63.
    """
    return _mix((value * MULTIPLIER + part) % PRIME)


def final_hash(value: Labels) -> Labels:
    """A few more rounds, so that the last parts are mixed like the first."""
    for _ in range(FINAL_ROUNDS):
        value = _mix(value)
    return value


def _mix(value: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return (value * value + value * MULTIPLIER + INCREMENT) % PRIME
