"""Noise that repeats, for tests and demonstrations only. It protects nobody."""

from __future__ import annotations

import hashlib
from typing import Any

from discreet.trusted.noise.source import Words, counter_mode, keystream, take_bits


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
