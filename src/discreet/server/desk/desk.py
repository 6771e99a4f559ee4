"""The desk: everything that people may do, in one place, for HTTP and pages alike.

    desk = open_desk(settings)
    person = desk.accounts.recognised(token, by="token")
    desk.questions.ask(person, study, question=…, key="mean income")

Every operation takes a person first and returns plain JSON words, or raises a refusal in four
parts whose status `discreet.server.refusals.status_of` says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from discreet.errors import LedgerRefused
from discreet.errors.tree import broken
from discreet.server.desk.accounts import Accounts
from discreet.server.desk.datasets import DataSets
from discreet.server.desk.ledgers import Ledgers
from discreet.server.desk.named import Named
from discreet.server.desk.office import Office
from discreet.server.desk.questions import Questions
from discreet.server.desk.studies import Studies
from discreet.server.settings import Settings
from discreet.server.store.opening import open_database
from discreet.server.trees import open_trees
from discreet.server.work.asked import SocketWorkers

VERIFIED = "its history was verified"


@dataclass(frozen=True, slots=True)
class Desk:
    """Operations by subject."""

    office: Office
    accounts: Accounts
    datasets: DataSets
    studies: Studies
    questions: Questions
    named: Named
    ledgers: Ledgers


def desk_of(office: Office) -> Desk:
    """The desk of an office."""
    datasets, studies, questions = DataSets(office), Studies(office), Questions(office)
    ledgers = Ledgers(office)
    named = Named(office, datasets, studies, questions, ledgers)
    return Desk(office, Accounts(office), datasets, studies, questions, named, ledgers)


def open_desk(settings: Settings) -> Desk:
    """The desk of a service, on its database and its trees."""
    workers = SocketWorkers(settings.socket)
    return desk_of(Office(open_database(settings), open_trees(settings), workers, settings))


def require_verified(office: Office, say: Callable[[str], None] = lambda _: None) -> None:
    """Refuses to start where a ledger does not verify; looks at each tree once."""
    with office.database.read() as rows:
        found = rows.run("SELECT id, name FROM datasets WHERE state <> 'opening' ORDER BY name")
    looked: set[int] = set()
    for row in found:
        try:
            tree = office.trees.tree(row["id"])
            if id(tree) in looked:
                continue
            looked.add(id(tree))
            problems = office.trees.problems(row["id"])
        except LedgerRefused as error:
            raise broken(error.found) from None
        if problems:
            raise broken(f"data set {row['id']}: " + "; ".join(problems[:3]))
        say(f"data set {row['id']}: {VERIFIED}")
