"""Receipts: a line's place in its chain, signed with a key that is not in the database.

A receipt says that a chain has, at some number, a line of some hash. Whoever was answered keeps
it, and shows the last one with the next call: a valid receipt that the database does not know is
proof that the database is an older copy, or another.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from discreet import plain
from discreet.errors.tree import bad_key_file
from discreet.trusted.ledger.entries import canonical

PREFIX = b"discreet receipt 1\n"
_HASH = re.compile(r"[0-9a-f]{64}")
_NODE = re.compile(r"[0-9a-f]{32}")


class Seal:
    """The key that receipts are signed with; `Seal.open` makes one where there is none."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.key = private.public_key().public_bytes_raw().hex()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Seal:
        """The key in a file that its owner alone may read."""
        place = Path(plain.path(path, "key file"))
        try:
            try:
                file = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            except FileExistsError:
                held = place.read_bytes()
            else:
                held = Ed25519PrivateKey.generate().private_bytes_raw()
                os.write(file, held)
                os.fsync(file)
                os.close(file)
            return cls(Ed25519PrivateKey.from_private_bytes(held))
        except (OSError, ValueError):
            raise bad_key_file(place.name) from None

    def receipt(self, node: str, number: int, digest: str) -> dict[str, Any]:
        """The signed words of a line; `node` is the chain's."""
        words = {"node": node, "number": number, "hash": digest}
        signature = base64.b64encode(self._private.sign(_signed(words))).decode("ascii")
        return words | {"signature": signature, "key": self.key}

    def is_own(self, receipt: object) -> bool:
        """Whether this key signed what a caller shows."""
        words = _words(receipt)
        return words is not None and words["key"] == self.key and is_signed(words)


def is_signed(receipt: object) -> bool:
    """Whether a receipt is what the key that it names has signed."""
    words = _words(receipt)
    if words is None:
        return False
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(words["key"]))
        public.verify(base64.b64decode(words["signature"], validate=True), _signed(words))
    except (InvalidSignature, ValueError):
        return False
    return True


def _words(receipt: object) -> dict[str, Any] | None:
    """A receipt as exact values of the right kinds; None for anything else."""
    read = plain.copied(receipt) if isinstance(receipt, Mapping) else None
    if type(read) is not dict or set(read) != {"node", "number", "hash", "signature", "key"}:
        return None
    texts = (read["node"], read["hash"], read["signature"], read["key"])
    if not all(type(text) is str and len(text) <= 200 for text in texts):
        return None
    whole = type(read["number"]) is int and 0 <= read["number"] < 2**63
    right = _NODE.fullmatch(read["node"]) and _HASH.fullmatch(read["hash"])
    return read if whole and right and _HASH.fullmatch(read["key"]) else None


def _signed(words: Mapping[str, Any]) -> bytes:
    told = {name: words[name] for name in ("node", "number", "hash")}
    return PREFIX + canonical(told).encode("ascii")
