"""The attacks that private statistics answer, run on made-up people against what is published.

    from discreet.attacks import FreshNoise, Raw, Released, Rounded

    result = dp.attacks.reconstruction(against=[Raw(), Rounded(10), Released(dp.GDP(1))])
    print(result.summary())

Each is shown beside the limit that a guarantee sets to every attack (docs/theory/attacks.md);
publishers without a guarantee have none. Nothing here reads data of yours, but `uniqueness` if it
is given a table; nothing in the library reads this room.
"""

from discreet.attacks.averaging import averaging
from discreet.attacks.differencing import differencing
from discreet.attacks.linkage import linkage
from discreet.attacks.membership import membership
from discreet.attacks.publishers import (
    FreshNoise,
    KAnonymous,
    Publisher,
    Raw,
    Released,
    Rounded,
    Suppressed,
)
from discreet.attacks.reconstruction import reconstruction
from discreet.attacks.results import AttackResult, Outcome
from discreet.attacks.uniqueness import uniqueness

__all__ = [
    "AttackResult",
    "FreshNoise",
    "KAnonymous",
    "Outcome",
    "Publisher",
    "Raw",
    "Released",
    "Rounded",
    "Suppressed",
    "averaging",
    "differencing",
    "linkage",
    "membership",
    "reconstruction",
    "uniqueness",
]
