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

from discreet.server.desk.accounts import Accounts
from discreet.server.desk.datasets import DataSets
from discreet.server.desk.histories import Histories
from discreet.server.desk.ledgers import Ledgers
from discreet.server.desk.named import Named
from discreet.server.desk.office import Office
from discreet.server.desk.populations import Populations
from discreet.server.desk.questions import Questions
from discreet.server.desk.studies import Studies
from discreet.server.settings import Settings
from discreet.server.store.opening import open_database
from discreet.server.trees import open_trees
from discreet.server.work.asked import SocketWorkers
from discreet.trusted.tree.receipts import Seal


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
    histories: Histories
    populations: Populations


def desk_of(office: Office) -> Desk:
    """The desk of an office."""
    datasets, studies, histories = DataSets(office), Studies(office), Histories(office)
    questions, ledgers = Questions(office, histories), Ledgers(office)
    named = Named(office, datasets, studies, questions, ledgers)
    accounts = Accounts(office)
    kept = Populations(office)
    return Desk(office, accounts, datasets, studies, questions, named, ledgers, histories, kept)


def open_desk(settings: Settings) -> Desk:
    """The desk of a service, on its database and its trees."""
    workers = SocketWorkers(settings.socket)
    database, trees = open_database(settings), open_trees(settings, pinned=True)
    seal = Seal.open(settings.seal)
    return desk_of(Office(database, trees, workers, settings, seal=seal))


def require_verified(office: Office, say: Callable[[str], None] = lambda _: None) -> None:
    """Refuses to start where a ledger was changed, and freezes older copies."""
    Histories(office).require_whole(say)
