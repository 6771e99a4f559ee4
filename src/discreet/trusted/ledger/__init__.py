"""The ledger: a fixed budget, spent once, with a history that can be checked."""

from discreet.accounting.replay import Replay
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.entries import Entry
from discreet.trusted.ledger.opening import verify_file
from discreet.trusted.ledger.requests import Debit, Reservation
from discreet.trusted.ledger.units import Amounts, capacity, charge
from discreet.trusted.ledger.verification import Verification

__all__ = ["Amounts", "Debit", "Entry", "Ledger", "Replay", "Reservation", "Verification", "capacity", "charge", "verify_file"]
