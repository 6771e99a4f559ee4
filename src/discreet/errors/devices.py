"""What a device says when it does not answer: facts of the call and of the protocol alone."""

from __future__ import annotations

from discreet.errors import InvalidParameter, LedgerRefused


def not_a_spec() -> InvalidParameter:
    return InvalidParameter(
        "a spec",
        "this is not the JSON text of a local mechanism",
        "a device answers only what has a theorem",
        "send json.dumps(spec.to_dict())",
    )


def bad_rounds(most: int) -> InvalidParameter:
    return InvalidParameter(
        "rounds",
        f"it is not a whole number from 1 to {most}",
        "the noise of a report is set by how many there will be",
        "pass for example rounds=20",
    )


def bad_mu() -> InvalidParameter:
    return InvalidParameter(
        "mu",
        "it is outside 1e-5 … 1000",
        "it is the guarantee of all reports together",
        "pass for example mu=1",
    )


def forked() -> LedgerRefused:
    return LedgerRefused(
        "a gradient report",
        "this process is a fork of the one that made the account",
        "both would answer every round, and each was paid for once",
        "make one account for each person and descent, in the process that answers",
    )


def answered(number: int, rounds: int) -> LedgerRefused:
    return LedgerRefused(
        "a gradient report",
        f"round {number} was answered before or is beyond the {rounds} agreed ones",
        "every report is paid for, and a second one would cost again",
        "ask each round once",
    )


def copied() -> LedgerRefused:
    return LedgerRefused(
        "copying a local account",
        "it cannot be pickled or copied",
        "a copy could answer every round twice",
        "make one for each person and descent",
    )
