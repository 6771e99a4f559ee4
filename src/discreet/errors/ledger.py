"""What a ledger says when it refuses: public facts, and what to do.

Amounts that do not fit are described by `discreet.accounting.statement`.
"""

from __future__ import annotations

from discreet.errors import InsecureNoise, InvalidParameter, LedgerRefused

NEVER_RESPLIT = (
    "the box is fixed when the ledger is opened and never re-split: moving budget after seeing "
    "answers breaks the guarantee"
)
_BOUND = "the key is bound to the request, so that a retry cannot ask something else"
_ONE_FILE = "a persistent ledger is one file on a local disk"
_PRICE_IT = "price the mechanisms with discreet.accounting.price_of"


# ── parameters ────────────────────────────────────────────────────────────────────────────────────


def not_a_store(kind: str) -> InvalidParameter:
    return InvalidParameter(
        "Ledger",
        f"a {kind} is no store of this package",
        "an account is kept by a store that is proven to keep it",
        "open a ledger with Ledger.open(budget, path=...)",
    )


def not_a_guarantee(kind: str) -> InvalidParameter:
    return InvalidParameter(
        "budget=",
        f"a {kind} is not a guarantee",
        "a ledger promises one guarantee for everything",
        "pass for example dp.ApproxDP(1, 1e-6)",
    )


def nothing_to_split() -> InvalidParameter:
    return InvalidParameter(
        "pure=, delta0=",
        "no budget was given to split",
        "the split belongs to the budget",
        "pass budget= too, or neither",
    )


def bad_box() -> InvalidParameter:
    return InvalidParameter(
        "the ledger's box",
        "it holds less than one unit, or more than 2**63 of them",
        "amounts are 64-bit counts of units",
        "open it with a guarantee, for example dp.ApproxDP(1, 1e-6)",
    )


def not_a_price(kind: str) -> InvalidParameter:
    return InvalidParameter(
        "price",
        f"a {kind} is not a Price",
        "a ledger charges exact amounts in each coordinate of its box",
        _PRICE_IT,
    )


def negative_price() -> InvalidParameter:
    return InvalidParameter(
        "price",
        "a coordinate is negative",
        "a negative price would hand budget back, and what was released stays released",
        _PRICE_IT,
    )


def no_price() -> InvalidParameter:
    return InvalidParameter(
        "price",
        "it charges nothing",
        "a release that costs nothing needs no ledger; one that costs something must say what",
        _PRICE_IT,
    )


def not_a_dict(kind: str) -> InvalidParameter:
    return InvalidParameter(
        "request=",
        f"a {kind} is not a dict",
        _BOUND,
        "describe the query, mechanisms, spend, neighbors and data id in a dict",
    )


def marked_request() -> InvalidParameter:
    return InvalidParameter(
        "request=",
        "it has an entry 'secure'",
        "the ledger writes it where noise is seeded",
        "leave it out, and pass secure=False",
    )


def not_json() -> InvalidParameter:
    return InvalidParameter(
        "request=",
        "it cannot be written as JSON",
        _BOUND,
        "use text, whole numbers, finite floats, lists and dicts with text keys",
    )


def not_text() -> InvalidParameter:
    return InvalidParameter(
        "make_answer",
        "it did not return plain text",
        "the answer is stored as it will be read again",
        "return the JSON text of the release",
    )


def bad_key(name: str, longest: int) -> InvalidParameter:
    return InvalidParameter(
        f"{name}=",
        f"it must be printable text of 1 to {longest} characters",
        "a key names one request, so that a retry is not paid twice",
        "pass for example a UUID, or a short name of the question",
    )


# ── requests ──────────────────────────────────────────────────────────────────────────────────────


def seeded_on_file() -> InsecureNoise:
    return InsecureNoise(
        "a debit for seeded noise",
        "this ledger is a file",
        "a persistent ledger promises real privacy, and seeded noise can be subtracted",
        "use a ledger in memory (path=None) for tests",
    )


def other_request(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"a debit under the key {key!r}",
        "that key was used for another request, or for one that cost less",
        "one key means one question and one answer; a second question under it would not be paid "
        "for",
        "use a new key for a new question (it is a new debit)",
    )


def other_relation(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        f"a debit for neighbours {asked}",
        f"this ledger has debits for neighbours {found}",
        "prices add up only while they all protect the same thing",
        "keep one ledger for each neighbour relation",
    )


def other_noise(*, secure: bool) -> InsecureNoise:
    asked, found = ("secure", "seeded") if secure else ("seeded", "secure")
    return InsecureNoise(
        f"a debit for {asked} noise",
        f"this ledger has debits for {found} noise",
        "whoever knows the seed can subtract seeded noise, so one balance over both kinds would "
        "promise nothing",
        "open a ledger of its own for seeded sessions",
    )


def no_debit(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"storing an answer under the key {key!r}",
        "nothing was debited under that key",
        "every answer must have been paid for before the data was read",
        "call ledger.debit(key=..., ...) first",
    )


def no_reservation(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"reservation {key!r}",
        "this ledger has none of that name",
        "a debit must say where its budget comes from",
        "use the id that ledger.reserve(...) returned",
    )


def other_reservation(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"a reservation under the key {key!r}",
        "that key was used for a reservation of another size",
        "one key means one reservation",
        "use a new key",
    )


def other_box(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        f"opening a ledger with {asked}",
        f"it was opened with {found}",
        NEVER_RESPLIT,
        "open it as it is (budget=None), or open a new ledger under another name",
    )


def no_budget() -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        "it does not exist yet and no budget was given",
        "a ledger's box is fixed when it is opened",
        "pass budget=, for example dp.ApproxDP(1, 1e-6), or correct the path",
    )


def rolled_back(found: str) -> LedgerRefused:
    return LedgerRefused(
        "the ledger's known head",
        found,
        "an older copy of a ledger forgets what was already spent",
        "bring back the newest file; if it is lost, treat its whole budget as spent",
    )


def replaced(name: str) -> LedgerRefused:
    return rolled_back(f"{name}, or its log, was replaced while it was in use")


def broken(problems: str) -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        f"it does not verify ({problems})",
        "a changed history cannot say what was spent",
        "bring back the newest intact copy; discreet.trusted.ledger.verify_file lists every "
        "problem",
    )


def not_copied() -> LedgerRefused:
    return LedgerRefused(
        "copying or pickling a ledger",
        "a ledger is one place, not a value",
        "two copies could each spend the whole budget",
        "share the object between threads, and open the same path in other processes",
    )


def inside_answer() -> LedgerRefused:
    return LedgerRefused(
        "changing a ledger while an answer is being made",
        "make_answer used the ledger that is storing its answer",
        "draw and store are one transaction",
        "debit first, then call ledger.store with a function that only draws and serialises",
    )


# ── places ────────────────────────────────────────────────────────────────────────────────────────


def forked_memory() -> LedgerRefused:
    return LedgerRefused(
        "a memory ledger in a forked process",
        "it was opened in the process that forked",
        "two copies could each spend the whole budget",
        "open the ledger with a path: a file can be shared by processes",
    )


def forked_inside() -> LedgerRefused:
    return LedgerRefused(
        "a ledger transaction",
        "the process forked inside it",
        "only the process that began it may end it",
        "do not fork while an answer is being made",
    )


def bad_path(found: str) -> LedgerRefused:
    return LedgerRefused(
        "ledger path", found, _ONE_FILE, "pass a file name, or path=None for a ledger in memory"
    )


def rule_broken(name: str, error: Exception) -> LedgerRefused:
    return LedgerRefused(
        f"a change of {name}",
        f"it would break a rule of the file ({error})",
        "the rules keep what is spent within the budget",
        "check the ledger with ledger.verify()",
    )


def not_created(name: str, folder: str, error: OSError) -> LedgerRefused:
    if not isinstance(error, FileNotFoundError):
        return failed(f"creating {name}", f"the file system said: {error.strerror}")
    return LedgerRefused(
        f"creating {name}",
        f"there is no folder {folder!r} to put it in",
        "an account is kept where it was asked for, and nowhere else",
        "make the folder first, or correct the path; nothing was debited",
    )


def failed(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        asked,
        found,
        "a debit counts only when it is durably written",
        "when the cause is gone, ask again with the same key: nothing is debited twice",
    )


def not_a_ledger(found: str) -> LedgerRefused:
    return LedgerRefused(
        "opening a ledger",
        found,
        "spending from a file that is not understood could overspend the budget",
        "name another file, or open it with the version of discreet that wrote it",
    )
