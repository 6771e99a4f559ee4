"""Random sources: no stream twice, no copies, and known answers for the ciphers."""

from __future__ import annotations

import copy
import hashlib
import os
import pickle
import threading

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from discreet.errors import InsecureNoise
from discreet.testing import SeededSource
from discreet.trusted.noise import source
from discreet.trusted.noise.source import SecureSource, counter_mode, keystream, secure_source


def words_in_child(secure: SecureSource, count: int) -> list[int]:
    """What a forked child draws from the same object."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, secure.uint64(count).tobytes())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        # before waiting: a pipe holds only so much
        words = np.frombuffer(pipe.read(), dtype=np.uint64).tolist()
    os.waitpid(child, 0)
    return words


@pytest.mark.few(2)
@pytest.mark.parametrize("count", [1, 8, 4000])
def test_children_and_parent_draw_different_words(count):
    secure = SecureSource()
    secure.uint64(3)  # so that a key and a pool exist before the fork
    streams = [
        words_in_child(secure, count),
        words_in_child(secure, count),
        secure.uint64(count).tolist(),
    ]
    everything = [word for stream in streams for word in stream]
    assert len(set(everything)) == 3 * count


def test_a_fork_that_bypasses_the_hook_is_noticed(monkeypatch):
    secure = SecureSource()
    secure.uint64(3)
    pool = secure._pool.copy()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert secure.uint64(1)[0] != pool[0]


def test_a_shared_key_would_be_seen():
    """The comparison above does tell: two sources with one key repeat each other."""
    one, two = SeededSource(5), SeededSource(5)
    assert set(one.uint64(8).tolist()) == set(two.uint64(8).tolist())


def test_threads_never_share_words():
    secure, seen = SecureSource(), []

    def work() -> None:
        mine = [word for _ in range(300) for word in secure.uint64(7).tolist()]
        seen.append(mine + secure.uint64(3000).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [word for words in seen for word in words]
    assert len(everything) == len(set(everything)) == 8 * (2100 + 3000)


def test_a_key_is_replaced_after_its_share(monkeypatch):
    monkeypatch.setattr(source, "BYTES_PER_KEY", 1 << 14)
    keys = []
    monkeypatch.setattr(
        source, "counter_mode", lambda key, counter: keys.append(key) or counter_mode(key, counter)
    )
    words = SecureSource().uint64(5000)
    assert len(words) == len(set(words.tolist())) == 5000
    assert len(keys) == len(set(keys)) == 3


def test_sources_cannot_be_copied():
    for duplicate in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(InsecureNoise, match="copied"):
            duplicate(secure_source())


def test_words_served_are_wiped_from_the_pool():
    secure = SecureSource()
    secure.uint64(1)
    pool = secure._pool
    secure.uint64(10)
    assert not pool[:10].any()
    assert pool[10:].all()


def test_security_is_marked():
    assert secure_source().secure is True
    assert secure_source() is secure_source()
    assert SeededSource(1).secure is False


@pytest.mark.parametrize("kind", [SecureSource, lambda: SeededSource(0)])
@pytest.mark.parametrize("count", [0, 1, 511, 513, 40_000])
def test_counts_and_types(kind, count):
    words = kind().uint64(count)
    assert words.dtype == np.uint64
    assert words.shape == (count,)


@pytest.mark.parametrize("count", [1, 5, 64, 65, 200])
def test_bits_fill_their_range(count):
    numbers = [secure_source().bits(count) for _ in range(200)]
    assert all(0 <= number < 1 << count for number in numbers)
    assert any(number >> (count - 1) for number in numbers)
    assert not all(number >> (count - 1) for number in numbers)


def test_counter_mode_known_answer():
    """NIST SP 800-38A, F.5.5 (CTR-AES256): the first two output blocks."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    blocks = keystream(counter_mode(key, counter), 4).astype("<u8").tobytes().hex()
    assert blocks == "0bdf7df1591716335e9a8b15c860c502" + "5a6e699d536119065433863c8f657b94"


def test_seeded_source_known_answer():
    """The words are AES of the block numbers 0, 1, 2, … under SHA-256 of the seed,
    however they are asked for.
    """
    key = hashlib.sha256(b"discreet.testing/7").digest()
    block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    expected = np.frombuffer(
        b"".join(block.update(i.to_bytes(16, "big")) for i in range(4)), dtype="<u8"
    )
    seeded = SeededSource(7)
    assert (
        np.concatenate([seeded.uint64(1), seeded.uint64(4), seeded.uint64(3)]).tolist()
        == expected.tolist()
    )
    assert SeededSource(7).bits(64) == int(expected[0])
    assert int(expected[0]) == KNOWN


KNOWN = 16963560271718199387
