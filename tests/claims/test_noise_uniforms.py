"""Adversarial uniforms: words at cell edges, near ½ and near 0, against mpmath at 80 digits.

Nothing may be decided wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
)
from discreet.testing import SeededSource
from discreet.trusted.noise.kernels import UNDECIDED, compiled_kernel, in_numpy
from discreet.trusted.noise.laws import Law, law_of
from discreet.trusted.noise.sampling import from_words, magnitude
from discreet.trusted.noise.tables import MARGIN, tables

KERNELS = {"numpy": in_numpy, "numba": compiled_kernel()}
WIDE = [2.0**10, 1234.56789, 2.0**14 / 3, 3.3e6, 2.0**32 * 1.1, 7.7e11, 2.0**47 * 0.9, 2.0**50]
NARROW = [0.05, 0.3, 1.0, 7.5, 1000.3, 2.0**31 * 1.7, 2.0**50]
TINY = 12345678901234567


def mechanism(kind: str, steps: float) -> AdditiveNoise:
    spread = Fraction(steps)
    if kind == "gaussian":
        return GaussianNoise(L2(Fraction(1)), spread, 0)
    return (LaplaceNoise if kind == "laplace" else GeometricNoise)(L1(Fraction(1)), spread, 0)


LAWS = (
    [("gaussian", s) for s in WIDE]
    + [("laplace", s) for s in WIDE]
    + [("geometric", s) for s in NARROW]
)


def boundary(kind: str, steps: float, k: int) -> mpmath.mpf:
    """The largest t with magnitude ≥ k, k ≥ 1, by the definition of the law."""
    s = mpmath.mpf(steps)
    if kind == "gaussian":
        return mpmath.erfc((k - mpmath.mpf(1) / 2) / (s * mpmath.sqrt(2))) / 2
    if kind == "laplace":
        return mpmath.exp(-(k - mpmath.mpf(1) / 2) / s) / 2
    return mpmath.exp(-k / s) / (1 + mpmath.exp(-1 / s))


def edges(kind: str, steps: float) -> Iterator[int]:
    """Tails T at and around the cell edges of magnitudes spread over the law's range."""
    rng = np.random.default_rng(7)
    reach = {"gaussian": 7.4, "laplace": 29.0, "geometric": 29.0}[kind]
    for share in np.concatenate([rng.random(14), rng.random(6) ** 4]):
        k = max(1, int(share * reach * steps))
        t = boundary(kind, steps, k)
        edge = int(mpmath.floor(t * 2**64))
        for away in [0, 1, 2, 3, *(1 << j for j in range(4, 46, 3))]:
            for T in (edge - away, edge + away):
                if 0 <= T < 2**63:
                    yield T


def corners() -> list[int]:
    near = [0, 1, 2, 3, 100]
    ends = [2**63 - 1 - d for d in (*near, 511, 512, 513, 1 << 20)]
    octaves = [(1 << e) + d for e in range(62) for d in (-1, 0, 1) if e > 1]
    return near + ends + octaves


def words_of(kind: str, steps: float) -> np.ndarray:
    tails = np.array([*edges(kind, steps), *corners()], dtype=np.uint64)
    random = SeededSource(f"{kind}{steps}").uint64(200)
    signs = SeededSource("signs").uint64(len(tails)) & np.uint64(1 << 63)
    return np.concatenate([tails | signs, random])


def right(kind: str, steps: float, word: int, value: int) -> bool:
    """Whether the whole cell of `word` has the signed magnitude `value`."""
    T, size = word & (2**63 - 1), abs(value)
    if value and (value < 0) != bool(word >> 63):
        return False
    low, high = mpmath.mpf(T) / 2**64, mpmath.mpf(T + 1) / 2**64
    return boundary(kind, steps, size + 1) <= low and (
        size == 0 or high <= boundary(kind, steps, size)
    )


def decisions(law: Law, words: np.ndarray, kernel, table: np.ndarray) -> np.ndarray:
    out = np.empty(len(words), np.int64)
    undecided = kernel(words, table, law.steps, law.offset, law.slack, out)
    assert undecided == np.count_nonzero(out == UNDECIDED)
    return out


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(80):
        yield


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize(("kind", "steps"), LAWS)
def test_no_word_is_decided_wrongly(kind, steps):
    law, words = law_of(mechanism(kind, steps)), words_of(kind, steps)
    decided = {}
    for name, kernel in KERNELS.items():
        out = decisions(law, words, kernel, tables()[law.tail])
        decided[name] = np.flatnonzero(out != UNDECIDED)
        wrong = [i for i in decided[name] if not right(kind, steps, int(words[i]), int(out[i]))]
        assert not wrong
    assert len(decided["numpy"]) < len(words)
    if steps < 2.0**40:
        assert len(decided["numpy"]) > len(words) // 4


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("margin", ["none", "relative only"])
@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
def test_a_margin_that_is_too_small_is_caught(kind, margin, name):
    wrong = 0
    for steps in WIDE[:5]:
        law, words = law_of(mechanism(kind, steps)), words_of(kind, steps)
        table = tables()[law.tail].copy()
        table[1:, MARGIN] = 0 if margin == "none" else 2.0**-52 * np.abs(table[1:, 0])
        out = decisions(law, words, KERNELS[name], table)
        wrong += sum(
            not right(kind, steps, int(words[i]), int(out[i]))
            for i in np.flatnonzero(out != UNDECIDED)
        )
    assert wrong > 0


@pytest.mark.few(2)
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("kind", "steps"),
    [
        ("gaussian", 2.0**10),
        ("gaussian", 7.7e11),
        ("laplace", 1234.56789),
        ("laplace", 2.0**47),
        ("geometric", 7.5),
        ("geometric", 0.3),
        ("geometric", 2.0**40),
    ],
)
def test_the_exact_path_agrees_with_the_fast_path(kind, steps):
    law = law_of(mechanism(kind, steps))
    words = np.concatenate([SeededSource("agree").uint64(2000), words_of(kind, steps)[:300]])
    exact = from_words(law, words, SeededSource("more"), kernel=None)
    for kernel in KERNELS.values():
        np.testing.assert_array_equal(
            from_words(law, words, SeededSource("more"), kernel=kernel), exact
        )
    if steps < 2.0**20:
        assert all(
            right(kind, steps, int(w), int(v))
            for w, v in zip(words[:300], exact[:300], strict=True)
        )


class Scripted:
    """A source that gives the listed words, then fails."""

    secure = False

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def uint64(self, count: int) -> np.ndarray:
        raise AssertionError("the exact path asks for bits")

    def bits(self, count: int) -> int:
        assert count == 64
        return self.words.pop(0)


@pytest.mark.parametrize(("kind", "steps"), LAWS)
def test_an_open_cell_is_split_at_the_true_edge(kind, steps):
    """The next 64 bits decide on which side of the edge t lies;
    128 bits more where they hit it too.
    """
    law = law_of(mechanism(kind, steps))
    for k in {1, 2, 1 + int(steps / 3), 1 + int(2.7 * steps)}:
        t = boundary(kind, steps, k)
        edge = int(mpmath.floor(t * 2**64))
        if edge == 0 or steps > 2.0**45:
            continue
        second = int(mpmath.floor(t * 2**128)) & (2**64 - 1)
        third = int(mpmath.floor(t * mpmath.mpf(2) ** 192)) & (2**64 - 1)
        assert magnitude(law, edge, Scripted(second - 1)) == k
        assert magnitude(law, edge, Scripted(second + 1)) == k - 1
        assert magnitude(law, edge, Scripted(second, third - 1)) == k
        assert magnitude(law, edge, Scripted(second, third + 1)) == k - 1


@pytest.mark.parametrize(
    ("kind", "steps"),
    [("gaussian", 1234.5), ("laplace", 1e6), ("geometric", 7.5), ("geometric", 0.05)],
)
def test_a_tail_of_zero_bits_is_refined(kind, steps):
    law, source = law_of(mechanism(kind, steps)), Scripted(0, TINY)
    size = magnitude(law, 0, source)
    assert not source.words
    low, high = (mpmath.mpf(T) / mpmath.mpf(2) ** 192 for T in (TINY, TINY + 1))
    assert boundary(kind, steps, size + 1) <= low
    assert high <= boundary(kind, steps, size)
