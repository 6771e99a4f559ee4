"""What a session and its questions refuse, each text in one place; all of it is public."""

from __future__ import annotations

from discreet.errors import DataShapeRefused, InvalidParameter, LedgerRefused


def mismatched(found: str) -> InvalidParameter:
    """The refusal of a question whose statistic, noise and price do not belong together."""
    return InvalidParameter(
        "a question",
        found,
        "the guarantee holds for this statistic with this noise at this price, and for nothing "
        "else",
        "ask through dp.count, dp.mean, …, which build all three together",
    )


def not_spendable(kind: str) -> InvalidParameter:
    """A spend that is no guarantee."""
    return InvalidParameter(
        "spend=",
        f"a {kind} is not a guarantee that can be spent",
        "the price of an answer is read from it",
        "pass for example dp.GDP(0.1), dp.PureDP(0.5) or dp.ApproxDP(1, 1e-6)",
    )


def budget_beside_ledger() -> InvalidParameter:
    """Two budgets for one session."""
    return InvalidParameter(
        "budget=",
        "given beside an open ledger",
        "a ledger has its budget already",
        "pass one or the other",
    )


def no_budget() -> InvalidParameter:
    """A session that could never stop."""
    return InvalidParameter(
        "budget=",
        "no budget was given",
        "a session stops when its budget is spent",
        "pass for example budget=dp.ApproxDP(epsilon=1, delta=1e-6)",
    )


def no_name() -> InvalidParameter:
    """Data in memory beside a ledger that outlives them."""
    return InvalidParameter(
        "name=",
        "data in memory have no name, and the ledger is a file",
        "a key is bound to its data, so that a script that runs again is answered from the ledger "
        "and pays once",
        "say what the rows are, for example dp.from_frame(frame, name='survey-2024', ...), and "
        "use another name for other rows",
    )


def another_engine() -> InvalidParameter:
    """An engine that was declared otherwise than its session."""
    return InvalidParameter(
        "a session",
        "its engine has another schema or neighbour relation",
        "noise is set by the one and rows are read by the other",
        "declare the data set again, with dp.read_parquet, dp.from_frame, …",
    )


def bad_key() -> InvalidParameter:
    """A key that cannot name a question."""
    return InvalidParameter(
        "key=",
        "not a text of 1 to 200 characters",
        "a key names one question and its one answer",
        "pass for example key='income-mean-2026'",
    )


def not_a_reservation(kind: str) -> InvalidParameter:
    """Something else where a reservation is needed."""
    return InvalidParameter(
        "reservation=",
        f"a {kind} is not a Reservation",
        "a debit must say where its budget comes from",
        "pass what session.reserve(...) returned",
    )


def foreign_answer() -> LedgerRefused:
    """A stored text that no session wrote."""
    return LedgerRefused(
        "an answer that is stored",
        "it is none that this library wrote",
        "the ledger keeps whatever text was handed to ledger.store",
        "use another key",
    )


def foreign_record(layout: str) -> InvalidParameter:
    """A JSON text of another layout."""
    return InvalidParameter(
        "from_json",
        f"this is not a {layout}",
        "another layout could be read wrongly",
        "pass what to_json() of this version wrote",
    )


def not_copied(what: str) -> LedgerRefused:
    """A copy of what must be one."""
    return LedgerRefused(
        f"copying a {what}",
        "it cannot be pickled or copied",
        "a copy could spend the same budget twice or carry private data",
        "copy the results instead; they are safe to share",
    )


def data_unreadable() -> DataShapeRefused:
    """Data that could not be read when a session was opened."""
    return DataShapeRefused(
        "opening a session",
        "the data could not be read",
        "the reader's own message may quote the data and is not shown",
        "check that the file is intact",
    )


# ── a threshold that stays open ───────────────────────────────────────────────────────────────────


def not_a_threshold() -> InvalidParameter:
    """Another mechanism than the one that a watch is paid by."""
    return InvalidParameter(
        "a watch",
        "its mechanism stays open for no questions, or it is not described as a watch",
        "its price is that mechanism's, and what is paid as a watch is never released otherwise",
        "open it with dp.watch or dp.holdout",
    )


def watch_released() -> LedgerRefused:
    """A question that a threshold is opened with, asked as a release."""
    return LedgerRefused(
        "a release",
        "its question is that of a watch",
        "a watch that was paid for would run a second time under its key, for one price",
        "open one with dp.watch, or ask with dp.above_threshold",
    )


def not_one_count() -> InvalidParameter:
    """A question that a watch's noise does not fit."""
    return InvalidParameter(
        "a watch",
        "this is not one count of rows",
        "its noise is calibrated to counts",
        "ask watch.above(where)",
    )


def watch_in_fork() -> LedgerRefused:
    """A watch in another process than its own."""
    return LedgerRefused(
        "a question to a watch",
        "this process is a fork of the one that opened it",
        "both would answer with the same noisy threshold, paid for once",
        "open a watch in this process",
    )


def watch_used_up() -> LedgerRefused:
    """A watch without positive answers left."""
    return LedgerRefused(
        "a question to a watch",
        "it has given all the positive answers that were paid for",
        "each further answer would cost more privacy",
        "open another one with dp.watch, or ask for more positives= from the start",
    )


def watch_failed(found: str, remedy: str) -> LedgerRefused:
    """A question to a watch that got no answer."""
    return LedgerRefused(
        "a question to a watch",
        found,
        "nothing was answered, and nothing more was charged",
        remedy,
    )


def watch_copied() -> LedgerRefused:
    """A copy of a watch."""
    return LedgerRefused(
        "copying a watch",
        "it cannot be pickled or copied",
        "a copy would answer with the same noisy threshold, paid for once",
        "open another one with dp.watch",
    )


def holdout_used_up() -> LedgerRefused:
    """A holdout without answers left."""
    return LedgerRefused(
        "a question to a holdout",
        "it has given all the answers that were paid for",
        "each further question could be a surprise, whose answer would cost more privacy",
        "open another one with dp.holdout, or ask for more answers= from the start",
    )


def holdout_rows_are_public() -> InvalidParameter:
    """The noisy number of rows of a holdout whose number of rows is public."""
    return InvalidParameter(
        "the noisy number of rows",
        "this holdout has none",
        "under row-level Replace the number of rows is public",
        "read session.public.rows",
    )


def not_one_mean() -> InvalidParameter:
    """A question that a holdout's noise does not fit."""
    return InvalidParameter(
        "a question to a holdout",
        "it is no mean on the holdout's own grid",
        "its noise is calibrated to means of numbers between 0 and 1, one a row",
        "ask holdout.share, holdout.mean or holdout.accuracy",
    )
