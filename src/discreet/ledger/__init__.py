"""The ledger: a fixed budget, spent once, with a history that can be checked."""

from discreet.ledger.core import Ledger
from discreet.ledger.entries import Entry
from discreet.ledger.opening import verify_file
from discreet.ledger.replay import Replay
from discreet.ledger.requests import Debit, Reservation
from discreet.ledger.units import Amounts, capacity, charge
from discreet.ledger.verification import Verification

__all__ = ["Amounts", "Debit", "Entry", "Ledger", "Replay", "Reservation", "Verification", "capacity", "charge", "verify_file"]
