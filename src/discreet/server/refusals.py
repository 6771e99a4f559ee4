"""What the service refuses, each text in one place, and the status that it has by HTTP.

All of it is public: a refusal is decided from who asks, what is asked and what the ledger shows
them. What is not somebody's is refused in the same words as what is not there.
"""

from __future__ import annotations

from typing import Any

from discreet import errors
from discreet.errors import DiscreetError, InvalidParameter, ServiceRefused
from discreet.errors.ledger import failed, not_a_ledger
from discreet.errors.tree import no_node

# the class of an error decides its status, where it does not say one itself
STATUS: tuple[tuple[type[DiscreetError], int], ...] = (
    (errors.BudgetExceeded, 409),
    (errors.NodeFrozen, 423),
    (errors.SourceChanged, 423),
    (errors.ReleaseFailed, 500),
    (errors.InsecureNoise, 500),
    (errors.DiscreetError, 422),
)


_LOST = (not_a_ledger("").why, no_node("").why)


def status_of(error: DiscreetError) -> int:
    """The status of a refusal by HTTP."""
    told = getattr(error, "status", None)
    if isinstance(told, int):
        return told
    if isinstance(error, errors.LedgerRefused) and error.why == failed("", "").why:
        return 503  # the ledger's database is away
    if isinstance(error, errors.LedgerRefused) and error.why in _LOST:
        return 423  # another file is in the place of the ledger
    return next(status for kind, status in STATUS if isinstance(error, kind))


def words_of(error: DiscreetError) -> dict[str, Any]:
    """The body of a refusal: four parts, and the class that a client raises again."""
    words: dict[str, Any] = {
        "type": f"urn:discreet:{type(error).__name__}",
        "title": error.asked,
        "status": status_of(error),
        "code": type(error).__name__,
        "asked": error.asked,
        "found": error.found,
        "why": error.why,
        "remedy": error.remedy,
    }
    fits = getattr(error, "fits", None)
    return words if fits is None else {**words, "fits": fits}


def _of(status: int, asked: str, found: str, why: str, remedy: str) -> ServiceRefused:
    error = ServiceRefused(asked, found, why, remedy)
    error.status = status
    return error


def not_known() -> ServiceRefused:
    """No token, or one that is dead: which, nobody is told."""
    return _of(
        401,
        "who asks",
        "there is no valid token or login",
        "answers are paid from the budget of a person",
        "log in, or make a new token on the page Account and send it as a bearer token",
    )


def bad_login() -> ServiceRefused:
    return _of(
        401,
        "a login",
        "name and password do not belong together, or the account is locked for a while",
        "which of these it is would tell who has an account",
        "try again later, or ask the operator for a new password",
    )


def not_there() -> ServiceRefused:
    """What is not somebody's, and what is not there."""
    return _of(
        404,
        "what is at this address",
        "nothing of yours",
        "a service tells nobody of what is not theirs",
        "look at what is yours, or ask the owner of the data for a seat",
    )


def wrong_role(needed: str) -> ServiceRefused:
    return _of(
        403,
        "what was asked for",
        f"it is for people with the role {needed}",
        "those who ask, decide and look after accounts are kept apart",
        "ask somebody with that role",
    )


def wrong_scope(needed: str) -> ServiceRefused:
    return _of(
        403,
        "what was asked for",
        f"this token has no scope {needed!r}",
        "a token can do what it was made for and nothing else",
        "make a token with that scope on the page Account",
    )


def foreign_origin() -> ServiceRefused:
    return _of(
        403,
        "a change",
        "it came from a page of another site",
        "other sites must not act in the name of who is logged in here",
        "use the pages of this service, or a token",
    )


def no_key() -> ServiceRefused:
    return _of(
        400,
        "a question",
        "it has no Idempotency-Key",
        "a call that was cut off is made again, and must not be paid twice",
        "send a header Idempotency-Key with a name that no other question has",
    )


def bad_key() -> ServiceRefused:
    return _of(
        422,
        "the Idempotency-Key",
        "it is not printable text of 1 to 200 characters",
        "a key names one question, so that a retry is not paid twice",
        "use for example a UUID, or a short name of the question",
    )


def other_question() -> ServiceRefused:
    return _of(
        422,
        "a question under this key",
        "the key was used for another one",
        "one key means one question and one answer",
        "use a new key for a new question",
    )


def frozen(what: str = "the data set") -> ServiceRefused:
    return _of(
        423,
        "a question",
        f"{what} is frozen",
        "its source or its ledger is not what it was, or its owner stopped it; nothing was debited",
        "ask the owner; answers that were given can still be read",
    )


def over(what: str) -> ServiceRefused:
    return _of(
        423,
        "a question",
        f"{what} is closed",
        "what was not spent went back to where it came from; nothing was debited",
        "ask the owner for another study; answers that were given can still be read",
    )


def too_large(most: int) -> ServiceRefused:
    return _of(
        413,
        "a body",
        f"it is longer than {most} bytes",
        "a question is short, and memory is for answering",
        "send a smaller one",
    )


def too_fast(seconds: int) -> ServiceRefused:
    return _of(
        429,
        "a call",
        "there were too many in a short time",
        "one person must not keep others waiting",
        f"try again after {seconds} seconds",
    )


def unavailable() -> ServiceRefused:
    return _of(
        503,
        "a call",
        "the service's database does not answer now",
        "nothing counts that was not durably written",
        "try again with the same key: nothing is debited twice",
    )


def no_worker() -> ServiceRefused:
    return _of(
        503,
        "a look at a source",
        "the processes that open data do not answer",
        "web processes cannot open data themselves",
        "try again, and ask the operator if it stays so",
    )


def broken() -> ServiceRefused:
    """Whatever else happened: the same words for everything."""
    return _of(
        500,
        "a call",
        "it failed",
        "what failed could depend on what nobody may see",
        "try again with the same key, and ask the operator if it stays so",
    )


def malformed(
    found: str, remedy: str = "correct it; the OpenAPI document shows each body"
) -> ServiceRefused:
    return _of(
        422,
        "a call",
        found,
        "every word of a call must be known, so that nothing is left out in silence",
        remedy,
    )


def invalid(asked: str, found: str, why: str, remedy: str) -> InvalidParameter:
    """Something that is outside its domain."""
    return InvalidParameter(asked, found, why, remedy)


def conflict(asked: str, found: str, why: str, remedy: str) -> ServiceRefused:
    """Something that cannot be done any more, or not yet."""
    return _of(409, asked, found, why, remedy)
