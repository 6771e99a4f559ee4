"""What a session on somebody else's data refuses, and what it says of a service that does; each
text in one place, all of it public.
"""

from __future__ import annotations

from discreet.errors import InvalidParameter, NotAnswered, ServiceRefused

_TRAVELS = {
    "watch": (
        "dp.watch keeps the state of its noise in the memory of the process that holds the data",
        "ask all filters at once with dp.above_threshold, which is one release",
    ),
    "holdout": (
        "dp.holdout keeps the state of its noise in the memory of the process that holds the data",
        "claim the shares and means beforehand and check them with dp.proportion_test or "
        "dp.mean_test, or have the holder of the data open the holdout beside them",
    ),
    "parts": (
        "dp.subsample_test runs a function of yours on rows, and a service runs no foreign code",
        "use dp.mean_test, dp.compare_means, dp.rank_test or dp.independence_test, whose "
        "statistics are declared, or have the holder of the data run it beside them",
    ),
    "friendly clusters": (
        "dp.friendly_clusters runs k-means on rows, and a question carries no function",
        "use dp.friendly_mean, or a regression or dp.table on declared columns, or have the "
        "holder of the data run it beside them",
    ),
    "tune": (
        "dp.tune runs whole fits beside the data without showing them",
        "fit each setting with a spend of its own and compare them with dp.accuracy, or have the "
        "holder of the data run it beside them",
    ),
}
_OTHERS = (
    "it runs a function of yours on rows, and a service runs no foreign code",
    "use estimators whose statistics are declared (dp.mean, dp.quantiles, dp.robust, dp.erm, …), "
    "or have the holder of the data run it beside them",
)


def does_not_travel(estimator: str) -> InvalidParameter:
    """A question that only the process that holds the rows can answer; nothing was debited."""
    why, instead = next(
        (told for name, told in _TRAVELS.items() if estimator.startswith(name)), _OTHERS
    )
    return InvalidParameter(
        "a question of a remote session", "it cannot be asked from afar", why, instead
    )


def foreign_words(found: str) -> ServiceRefused:
    """An answer that is none of this API."""
    return ServiceRefused(
        "an answer of the service",
        f"it holds {found}",
        "what is not understood word for word could be read wrongly",
        "check that the address is that of a discreet service of this version",
    )


def another_release(found: str) -> ServiceRefused:
    """A release that answers something else than was asked."""
    return ServiceRefused(
        "a release of the service",
        found,
        "estimates and intervals are read off a release, and would be those of something else",
        "do not use it; tell the owner of the data, with the key of the question",
    )


def unreachable(address: str, tries: int, found: str) -> ServiceRefused:
    """A service that gave no answer."""
    return ServiceRefused(
        f"the service at {address}",
        f"no answer after {tries} tries ({found})",
        "nothing is lost: a question that was paid for is finished under its key, once",
        "try again with the same key, and ask the operator if it stays so",
    )


def not_yet(key: str, found: str) -> NotAnswered:
    """A question that is paid for, or waits for a decision."""
    return NotAnswered(
        f"the question with key {key!r}",
        found,
        "an answer leaves at a time that depends on public facts alone",
        f"ask again with key={key!r}: it is not charged twice",
    )


def waits_for_owner(key: str) -> NotAnswered:
    """A question above the price from which on the owner decides."""
    return NotAnswered(
        f"the question with key {key!r}",
        "it waits for the owner of the data, and nothing was debited",
        "its price is above what the study allows without asking",
        f"ask again with key={key!r} once it is approved, or ask with a smaller spend and a new "
        "key",
    )


def declined(key: str, reason: str) -> ServiceRefused:
    """A question that the owner did not want answered."""
    return ServiceRefused(
        f"the question with key {key!r}",
        "the owner of the data declined it" + (f": {reason}" if reason else ""),
        "its price was above what the study allows without asking; nothing was debited",
        "ask with a smaller spend and a new key, or agree with the owner first",
    )


def no_token() -> InvalidParameter:
    """A connection without an identity."""
    return InvalidParameter(
        "token=",
        "no token was given, and DISCREET_TOKEN is not set",
        "a service answers those whom it knows",
        "make a token on the page Account of the service, and pass it or set DISCREET_TOKEN",
    )


def bad_address(found: str, remedy: str) -> InvalidParameter:
    """An address that is none, or that would show the token to the network."""
    return InvalidParameter(
        "url", found, "a token is as good as its owner to whoever reads it", remedy
    )


def not_among(what: str, asked: str, there: list[str]) -> InvalidParameter:
    """A data set or a study that is not among one's own."""
    return InvalidParameter(
        f"{what} {asked!r}",
        f"not among yours ({', '.join(there) or 'you have none'})",
        "a service tells nobody of what is not theirs",
        "use one of those, or ask the owner for a seat",
    )


def forgotten(found: str) -> ServiceRefused:
    """A service whose ledger does not hold what it signed."""
    return ServiceRefused(
        "the ledger of the service",
        found,
        "an older copy of a ledger would spend again what was spent",
        "stop asking, and send your receipts to the owner of the data",
    )
