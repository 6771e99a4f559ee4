"""Random bits: a cryptographic stream keyed from the operating system.

    SecureSource    AES-256 in counter mode, key and counter from os.urandom
    secure_source() the one of this process

Claim.    No two requests, in any thread or process, are served from the same part of a key stream.
Proof.    Within a process the cipher's counter only moves forward, under a lock. A forked child
          discards key and buffer before its first request (a hook that runs in the child, and a
          check of the process id for forks that bypass the hook), so it draws a fresh key; copying
          and pickling are refused. A key serves 2**26 blocks, so that telling its output from ideal
          bits succeeds with advantage at most 2**-76 beyond breaking AES-256 (the switching lemma:
          q²/2**129, q = 2**26 blocks).
Checked.  tests/trusted/noise/test_noise_source.py
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any, NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from discreet.errors.noise import copied_source

Words = NDArray[np.uint64]

BYTES_PER_KEY = 1 << 30
_POOL_WORDS = 1 << 11  # small requests are cut from a pool of this many words
_ZEROS = bytes(1 << 17)  # what is encrypted: the key stream itself comes out


class Source(Protocol):
    """Where random bits come from; `secure` says whether they may protect anyone."""

    secure: bool

    def uint64(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""
        ...

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        ...


def keystream(encryptor: Any, count: int) -> Words:
    """The next `count` 64-bit words (little-endian) of a stream cipher."""
    words = np.empty(count, dtype="<u8")
    if count == 0:
        return words
    target = words.view(np.uint8).data
    for start in range(0, len(target), len(_ZEROS)):
        length = min(len(_ZEROS), len(target) - start)
        encryptor.update_into(memoryview(_ZEROS)[:length], target[start : start + length])
    return words.astype(np.uint64, copy=False)


def counter_mode(key: bytes, counter: bytes) -> Any:
    """An AES-256 counter-mode key stream."""
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()


class SecureSource:
    """A cryptographic source of random bits for this process; safe to share between threads."""

    __slots__ = ("__weakref__", "_encryptor", "_left", "_lock", "_pool", "_process")
    secure = True

    def __init__(self) -> None:
        self._forget()
        _SOURCES.add(self)

    def _forget(self) -> None:
        """Drop key and buffered words; the next request draws a new key."""
        self._lock = threading.Lock()
        self._encryptor: Any = None
        self._left = 0
        self._pool: Words = np.empty(0, dtype=np.uint64)
        self._process = os.getpid()

    def uint64(self, count: int) -> Words:
        """`count` independent uniform 64-bit words."""
        if self._process != os.getpid():
            self._forget()
        if count <= 0:
            return np.empty(0, dtype=np.uint64)
        with self._lock:
            if count > _POOL_WORDS // 4:
                return self._stream(count)
            if count > len(self._pool):
                self._pool = self._stream(_POOL_WORDS)
            words = self._pool[:count].copy()
            self._pool[:count] = 0  # words already served are not kept in memory
            self._pool = self._pool[count:]
            return words

    def bits(self, count: int) -> int:
        """A uniform integer of `count` bits."""
        return take_bits(self, count)

    def _stream(self, count: int) -> Words:
        pieces = []
        while count > 0:
            if self._left <= 0:
                self._encryptor = counter_mode(os.urandom(32), os.urandom(16))
                self._left = BYTES_PER_KEY // 8
            length = min(count, self._left)
            pieces.append(keystream(self._encryptor, length))
            self._left -= length
            count -= length
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise copied_source()


def take_bits(source: Source, count: int) -> int:
    """A uniform integer of `count` bits from whole words; the bits left over are thrown away."""
    words = -(-count // 64)
    number = int.from_bytes(source.uint64(words).astype("<u8").tobytes(), "little")
    return number >> (64 * words - count)


_SOURCES: weakref.WeakSet[SecureSource] = weakref.WeakSet()


def _forget_all() -> None:
    for source in list(_SOURCES):
        source._forget()


os.register_at_fork(after_in_child=_forget_all)
_OF_THIS_PROCESS = SecureSource()


def secure_source() -> SecureSource:
    """The source of this process. It holds no setting: nobody can seed, replace or rewind it."""
    return _OF_THIS_PROCESS
