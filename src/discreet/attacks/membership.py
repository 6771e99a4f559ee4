"""Membership: from many averages, whether somebody is in the data (Homer et al. 2008).

*Method.* Everybody has a yes/no marker at many places; how frequent each is in the population is
public. The group's counts are published. A person is scored by how far the counts lean towards
their markers,

    Σⱼ (xⱼ − pⱼ)(yⱼ − npⱼ) / (npⱼ(1−pⱼ) + s²),     s the known spread of the errors.

Members are compared with as many people who are not in the group.

*Limit.* Members and outsiders are drawn alike, so which of a pair is the member is a fair coin, and
exchanging them changes one row: the expected area under the curve of a release is at most
1 − min_α(α + f(α))/2 under Replace.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet import plain
from discreet.accounting.tradeoff.guessing import chance_of, right_limit
from discreet.attacks.publishers import Publisher, Raw, Survey, publishers, whole
from discreet.attacks.results import BEYOND, AttackResult, averaged
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

RAREST = 0.05
NOTHING = "nothing is secret"  # markers are what is published and what is known


@plain.called
def membership(
    people: int = 100,
    *,
    markers: int = 2000,
    against: Sequence[Publisher] = (Raw(),),
    releases: int = 5,
    seed: int = 1,
) -> AttackResult:
    """The area under the curve (hits by false alarms) of telling members of a group from others by
    the group's marker counts.
    """
    people, markers = whole(people, "people", 2), whole(markers, "markers", 1)
    releases = whole(releases, "releases", 2)
    outcomes = []
    for publisher in publishers(against):
        scores = [
            _scores(publisher, people, markers, Stream(f"membership/{seed}/{one}"))
            for one in range(releases)
        ]
        areas = [_area(members, others) for members, others in scores]
        limit = None if publisher.guarantee is None else right_limit(publisher.guarantee)
        right = [int((members > others).sum()) for members, others in scores]
        beyond = (
            publisher.guarantee is not None
            and chance_of(publisher.guarantee, right, people) < BEYOND
        )
        outcomes.append(averaged(publisher, areas, limit, beyond=beyond))
    about = (
        f"{people} people with {markers} yes/no markers, of known frequency in the population.",
        f"{releases} groups, and as many outsiders as members.",
    )
    return AttackResult("Membership", "area under the curve", 0.5, tuple(outcomes), about)


def _scores(publisher: Publisher, people: int, markers: int, stream: Stream) -> tuple[Array, Array]:
    """The scores of a group's members, and of as many others."""
    shares = RAREST + (1 - 2 * RAREST) * stream.uniforms((markers,), "frequencies")
    everybody = stream.uniforms((2 * people, markers), "people") < shares
    names = [f"marker {number}" for number in range(markers)]
    group = Survey(
        dict(zip(names, everybody[:people].T, strict=True)), [{name: True} for name in names]
    )
    answers = publisher.publish(group, NOTHING, stream)
    spread = people * shares * (1 - shares) + answers.spread**2
    lean = np.where(np.isfinite(answers.values), (answers.values - people * shares) / spread, 0.0)
    scores = (everybody - shares) @ lean
    return scores[:people], scores[people:]


def _area(members: Array, others: Array) -> float:
    """The share of pairs in which the member's score is larger; ties count half."""
    larger = (members[:, None] > others).mean()
    return float(larger + (members[:, None] == others).mean() / 2)
