"""Random names: ids, tokens, and what is stored of a token.

An id tells nothing and cannot be guessed. A token has 256 random bits, so that one SHA-256 of it is
as good as the token is secret; it is shown once, and only the digest is stored.
"""

from __future__ import annotations

import hashlib
import secrets

TOKEN = "dct_"  # a discreet token
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id(kind: str) -> str:
    """The id of a new thing: ``ds_…`` of a data set."""
    return f"{kind}_{''.join(secrets.choice(_ALPHABET) for _ in range(20))}"


def new_token() -> str:
    """A token that nobody else has."""
    return TOKEN + secrets.token_urlsafe(32)


def new_password() -> str:
    """A password to be told once: 80 bits, in groups that can be read out."""
    text = "".join(secrets.choice(_ALPHABET) for _ in range(16))
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))


def digest_of(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in time that does not tell where they differ."""
    return secrets.compare_digest(one.encode(), other.encode())


def key_bytes() -> bytes:
    """The key of a digest that is never shown."""
    return secrets.token_bytes(32)
