"""`draw`: both kernels and the exact path are one function of the words;
what does not fit is refused.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

from discreet.errors import InvalidParameter
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import (
    AdditiveNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    TulapNoise,
)
from discreet.testing import SeededSource
from discreet.trusted.noise import kernels, sampling
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source
from discreet.trusted.noise.tables import tables

ONE = Fraction(1)
MECHANISMS = [
    GaussianNoise(L2(ONE), Fraction(1000.1), 3),
    GaussianNoise(L2(ONE), Fraction(1000.1), 34),
    LaplaceNoise(L1(ONE), Fraction(1000.1), 3),
    LaplaceNoise(L1(ONE), Fraction(1000.1), 34),
    GeometricNoise(L1(ONE), Fraction(0.7), 0),
    GeometricNoise(L1(ONE), Fraction(2.0**36), 0),
    TulapNoise(L1(ONE), Fraction(1.5), 32),
    TulapNoise(L1(ONE), Fraction(1.5), 49),
]
NAMES = [f"{m.kind}-{float(m.steps):.3g}" for m in MECHANISMS]


@pytest.mark.few(2)
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=NAMES)
def test_numba_numpy_and_the_exact_path_draw_the_same(mechanism, monkeypatch):
    size = 40_000
    compiled = draw(mechanism, size, SeededSource("same"))
    monkeypatch.setattr(sampling, "kernel_for", lambda size: kernels.in_numpy)
    np.testing.assert_array_equal(draw(mechanism, size, SeededSource("same")), compiled)
    exact = draw(mechanism, 1000, SeededSource("same"), force_exact=True)
    np.testing.assert_array_equal(exact, draw(mechanism, 1000, SeededSource("same")))
    if not isinstance(mechanism, TulapNoise):
        np.testing.assert_array_equal(exact, compiled[:1000])


@pytest.mark.parametrize("size", [0, 1, 2, 16_383, 16_384, 16_385, 50_000])
def test_sizes(size):
    # two secure draws are equal once in 30 000 times
    noise = draw(MECHANISMS[0], size, SeededSource("sizes"))
    assert noise.shape == (size,)
    assert noise.dtype == np.int64
    assert size < 2 or len(np.unique(noise)) > 1


@pytest.mark.parametrize("size", [-1, 1.0, True, None, "3"])
def test_bad_sizes_are_refused(size):
    with pytest.raises(InvalidParameter, match="size="):
        draw(MECHANISMS[0], size, secure_source())


def test_tulap_beyond_64_bits_is_refused():
    with pytest.raises(InvalidParameter, match=r"2\*\*50"):
        draw(TulapNoise(L1(ONE), Fraction(2**20), 40), 1, secure_source())


def test_a_mechanism_without_a_sampler_is_refused():
    class Unknown(AdditiveNoise):
        pass

    with pytest.raises(InvalidParameter, match="no sampler"):
        draw(Unknown(L1(ONE), ONE, 0), 1, secure_source())


@pytest.mark.parametrize("spread", [2.0**-1074, 1e-300, 1e-30, 1e-3])
def test_vanishing_geometric_noise(spread):
    """b = exp(−1/spread) is 0 in floats; the noise is 0 and nothing overflows."""
    assert not draw(GeometricNoise(L1(ONE), Fraction(spread), 0), 50, secure_source()).any()


def test_threads_do_not_disturb_the_exact_path():
    """Ball arithmetic has one precision a process;
    threads that share it still give each word its value.
    """
    alone = [draw(m, 200, SeededSource("alone"), force_exact=True) for m in MECHANISMS]
    with ThreadPoolExecutor(4) as pool:
        together = list(
            pool.map(
                lambda m: draw(m, 200, SeededSource("alone"), force_exact=True), MECHANISMS * 3
            )
        )
    for expected, found in zip(alone * 3, together, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_undecided_words_are_rare():
    """At most 2**-48·s of them: what the exact path costs."""
    law_words = SeededSource("rare").uint64(1 << 20)
    out = np.empty(len(law_words), np.int64)
    for tail in (0, 1):
        undecided = kernels.in_numpy(law_words, tables()[tail], 2.0**36 * 1.1, 0.5, 2.0**-51, out)
        assert 0 < undecided < 2.0 ** (36 - 48) * 1.1 * len(law_words)
