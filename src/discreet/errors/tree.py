"""What a budget tree says when it refuses: public facts of the asker's own, and what to do."""

from __future__ import annotations

from discreet.errors import InvalidParameter, LedgerRefused, NodeFrozen, NoTheorem

_ONE_KEY = "one key names one node, so that a retry makes no second one"


def no_node(node: str) -> LedgerRefused:
    return LedgerRefused(
        f"node {node!r}",
        "this budget tree has none of that id",
        "a budget is spent from a place that is known",
        "use the id that root, carve or pool returned",
    )


def frozen() -> NodeFrozen:
    return NodeFrozen(
        "a change of a frozen budget",
        "its owner, or a check of its history, has stopped it",
        "while it is not certain what was spent, nothing more is spent or drawn",
        "read stored answers as before; the owner unfreezes it, or `discreet curator recover` does",
    )


def closed() -> LedgerRefused:
    return LedgerRefused(
        "a change of a closed budget",
        "it was closed, and what it had not spent went back",
        "what was handed back may be spent elsewhere",
        "read stored answers as before; ask for a new study for new questions",
    )


def other_node(key: str) -> LedgerRefused:
    return LedgerRefused(
        f"a node under the key {key!r}",
        "that key was used for a node of another kind, name or budget",
        _ONE_KEY,
        "use a new key for a new node",
    )


def below_pooled() -> LedgerRefused:
    return LedgerRefused(
        "carving a node below a pooled one",
        "a pooled node is a limit on money that others may spend too",
        "what is set aside must be set aside from money that is nobody else's",
        "pool it, or carve it from the nearest carved node",
    )


def not_that_relation(asked: str, found: str) -> LedgerRefused:
    return LedgerRefused(
        f"a debit for neighbours {asked}",
        f"this tree was opened for neighbours {found}",
        "prices add up only while they all protect the same thing",
        "open a root of its own for another relation",
    )


def not_that_noise() -> LedgerRefused:
    return LedgerRefused(
        "a debit for noise of another kind",
        "a tree is opened for secure noise, or in memory for seeded noise",
        "whoever knows the seed can subtract seeded noise, so one balance over both kinds would "
        "promise nothing",
        "open a root of its own for seeded sessions, in memory, with secure=False",
    )


def no_theorem_from_rho() -> NoTheorem:
    return NoTheorem(
        "a price in μ² or ε for what is known in ρ",
        "no theorem gives one",
        "a bound on Rényi divergences fixes no trade-off curve",
        "open the box above with dp.ZCDP(rho), or state this one by dp.GDP, dp.PureDP or "
        "dp.ApproxDP",
    )


def no_pure_part() -> InvalidParameter:
    return InvalidParameter(
        "pure=",
        "the box above opened no pure ε, so none can be carved from it",
        "a carved box is set aside in the coordinates of the box above",
        "leave pure= out",
    )


def no_relation() -> InvalidParameter:
    return InvalidParameter(
        "neighbors=",
        "a root says from the start what it protects",
        "were it the first debit's, one asker's choice would be seen by the others as a refusal",
        "pass the relation of the data set, for example dp.AddRemove()",
    )


def bad_name() -> InvalidParameter:
    return InvalidParameter(
        "name",
        "it must be printable text of 1 to 200 characters",
        "it is written into the history",
        "pass a short name",
    )


def broken(problems: str) -> LedgerRefused:
    return LedgerRefused(
        "opening a budget tree",
        f"it does not verify ({problems})",
        "a changed history cannot say what was spent",
        "bring back the newest intact copy, or see `discreet curator verify` and `recover`",
    )


def rolled_back(name: str) -> NodeFrozen:
    return NodeFrozen(
        "the history of a budget",
        f"{name} does not know an entry that it had before",
        "an older copy of a ledger forgets what was already spent",
        "freeze it and bring back the newest copy; where that is lost, "
        "`discreet curator recover` charges what is missing",
    )


def open_reservations() -> LedgerRefused:
    return LedgerRefused(
        "making a ledger file the root of a tree",
        "it has open reservations",
        "a procedure that is still running could go on in two places",
        "close them with ledger.close_reservation(id) first",
    )


def no_postgresql() -> InvalidParameter:
    return InvalidParameter(
        "a budget tree in PostgreSQL",
        "psycopg is not installed",
        "it carries the statements to the database",
        "pip install 'discreet[server]'",
    )


def bad_pins(name: str, said: str) -> LedgerRefused:
    return LedgerRefused(
        f"the pins {name!r}",
        f"the file system said: {said}",
        "an answer leaves only after its place was noted outside the database",
        "make the folder writable, or name another file",
    )


def bad_key_file(name: str) -> InvalidParameter:
    return InvalidParameter(
        f"the key file {name!r}",
        "it holds no key, or cannot be read or made",
        "receipts are signed with one key, which is not in the database",
        "correct the path, or take the file away so that a new key is made: receipts of the old "
        "one are not recognised any more",
    )


def not_this_tree() -> LedgerRefused:
    return LedgerRefused(
        "recovering a budget tree",
        "something was pinned below a root that this tree does not have",
        "a root that is opened anew would grant its whole budget again",
        "bring back a copy that has the root; do not register its data again",
    )
