"""Linkage: whose row is it, when names are gone (Narayanan and Shmatikov 2008; reference.md A9).

*Method.* People rated films, each with stars and a day. The attacker knows a few ratings of a
target, some of them wrong and days only nearly. Each published row is scored by how alike it is,

    Σⱼ (e^(−|days|/30) + e^(−|stars|/1.5)) / ln nⱼ,     nⱼ ≥ 2 how many people rated film j,

and the best row is claimed if it leads the second by 1.5 standard deviations of all scores (the
eccentricity test), else nobody is.

A private release has no rows: there the attacker knows as much of a target and of somebody who was
drawn alike and is not in the data, and guesses which of them is, from released counts of the
known films by stars.

*Limit.* Of that guess 1 − min_α(α + f(α))/2, a fair coin being right half the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from discreet import plain
from discreet.accounting.tradeoff.guessing import right_limit
from discreet.attacks.publishers import (
    FreshNoise,
    KAnonymous,
    Publisher,
    Raw,
    Released,
    Rounded,
    Suppressed,
    Survey,
    publishers,
    whole,
)
from discreet.attacks.results import AttackResult, Outcome, guessed
from discreet.errors import InvalidParameter
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

FILMS, STARS, DAYS = 500, 5, 700
RATED = 40  # films a person, on average
DAYS_ALIKE, STARS_ALIKE = 30.0, 1.5
LEAD = 1.5
NOTHING = "nothing is secret"


@dataclass(frozen=True, slots=True)
class Ratings:
    """Stars (0 where a film was not rated) and days, people by films."""

    stars: Array
    days: Array


@plain.called
def linkage(
    people: int = 1000,
    *,
    known: int = 8,
    wrong: int = 2,
    days: int = 14,
    targets: int = 100,
    against: Sequence[Publisher] = (Raw(),),
    seed: int = 1,
) -> AttackResult:
    """The share of targets whose row is found by what somebody knows of them: `known` ratings,
    `wrong` of them wrong, each day off by up to `days`.
    """
    people, known, days = (
        whole(people, "people", 4),
        whole(known, "known", 1),
        whole(days, "days", 0),
    )
    wrong, targets = whole(wrong, "wrong", 0), whole(targets, "targets", 1)
    if wrong > known or targets > people:
        raise InvalidParameter(
            "wrong=, targets=",
            f"{wrong} of {known} known ratings, {targets} of {people} people",
            "a part cannot be larger than what it is part of",
            "pass wrong=2 with known=8, and fewer targets than people",
        )
    stream = Stream(f"linkage/{seed}")
    data, others = (_ratings(people, Stream(f"linkage/{seed}/{part}")) for part in ("in", "out"))
    facts = _facts(data, known, wrong, days, targets, stream)
    outcomes = []
    for publisher in publishers(against):
        if isinstance(publisher, Released):
            decoys = _facts(others, known, wrong, days, targets, Stream(f"linkage/{seed}/decoys"))
            outcomes.append(_told_apart(publisher, data, facts, decoys, stream))
        else:
            claims = [_claimed(_published(publisher, data, stream), fact) for fact in facts]
            right = sum(claim == number for number, claim in enumerate(claims))
            outcomes.append(guessed(publisher, None, None, right=[right], coins=targets))
    about = (
        f"{people} people rated about {RATED} of {FILMS} films; {targets} targets.",
        f"Of each {known} ratings are known, {wrong} of them wrong, days to ±{days}.",
        *(
            (
                "Of a release: is the target in the data, or somebody alike? A coin is right half "
                "of the time.",
            )
            if any(one.limit is not None for one in outcomes)
            else ()
        ),
    )
    rows_shown = any(one.limit is None for one in outcomes)
    return AttackResult(
        "Linkage",
        "share of targets found",
        1 / people if rows_shown else 0.5,
        tuple(outcomes),
        about,
    )


def _ratings(people: int, stream: Stream) -> Ratings:
    """Made-up people: some films are rated by many, most by few."""
    popular = 1 / (np.arange(FILMS) + 3.0)
    share = np.minimum(0.9, popular * RATED / popular.sum())
    rated = stream.uniforms((people, FILMS), "rated") < share
    taste = np.clip(3 + 1.2 * ndtri(stream.uniforms((people, FILMS), "stars")), 1, STARS)
    days = np.floor(DAYS * stream.uniforms((people, FILMS), "days"))
    return Ratings(np.where(rated, np.round(taste), 0.0), days)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one person: films, stars, days."""

    films: npt.NDArray[np.int64]
    stars: Array
    days: Array


def _facts(
    data: Ratings, known: int, wrong: int, days: int, targets: int, stream: Stream
) -> list[Facts]:
    found = []
    for person in range(targets):
        numbers = stream.uniforms((4, FILMS), f"facts {person}")
        order = np.argsort(np.where(data.stars[person] > 0, numbers[0], 2.0))[:known]
        films = order.copy()
        films[:wrong] = np.floor(FILMS * numbers[1, :wrong])
        stars = data.stars[person, order].copy()
        stars[:wrong] = 1 + np.floor(STARS * numbers[2, :wrong])
        off = np.round((2 * numbers[3, :known] - 1) * days)
        found.append(Facts(films, stars, data.days[person, order] + off))
    return found


def _published(publisher: Publisher, data: Ratings, stream: Stream) -> Ratings:
    """The rows without names, as a publisher shows them."""
    if isinstance(publisher, Rounded):
        return replace(data, days=(data.days // publisher.to + 0.5) * publisher.to)
    if isinstance(publisher, FreshNoise):
        noise = publisher.sd * ndtri(stream.uniforms(data.days.shape, "fresh noise"))
        return replace(data, days=data.days + noise)
    if isinstance(publisher, Suppressed):
        return replace(
            data, stars=np.where((data.stars > 0).sum(axis=0) < publisher.below, 0.0, data.stars)
        )
    if isinstance(publisher, KAnonymous):
        shared = [(data.stars == stars).sum(axis=0) >= publisher.k for stars in range(1, STARS + 1)]
        kept = np.stack([np.zeros(FILMS, dtype=bool), *shared])
        held = kept[data.stars.astype(int), np.arange(FILMS)]
        return replace(data, stars=np.where(held, data.stars, 0.0))
    return data


def _claimed(shown: Ratings, facts: Facts) -> int | None:
    """The row that is claimed, None where none leads."""
    scores = _alike(shown, facts)
    best, second = np.sort(scores)[-1:-3:-1]
    return int(np.argmax(scores)) if best - second > LEAD * scores.std() else None


def _alike(shown: Ratings, facts: Facts) -> Array:
    stars, days = shown.stars[:, facts.films], shown.days[:, facts.films]
    raters = np.maximum((shown.stars[:, facts.films] > 0).sum(axis=0), 2)
    alike = np.exp(-np.abs(days - facts.days) / DAYS_ALIKE) + np.exp(
        -np.abs(stars - facts.stars) / STARS_ALIKE
    )
    return np.asarray(np.where(stars > 0, alike / np.log(raters), 0.0).sum(axis=1))


def _told_apart(
    publisher: Released, data: Ratings, facts: list[Facts], decoys: list[Facts], stream: Stream
) -> Outcome:
    """How often the one who is in the data is told from one who is not, by released counts."""
    told = [list(zip(one.films.tolist(), one.stars.tolist(), strict=True)) for one in facts]
    alike = [list(zip(one.films.tolist(), one.stars.tolist(), strict=True)) for one in decoys]
    cells = sorted({cell for person in (*told, *alike) for cell in person})
    names = {cell: f"film {cell[0]}, {cell[1]:g} stars" for cell in cells}
    survey = Survey(
        {names[film, stars]: data.stars[:, film] == stars for film, stars in cells},
        [{names[cell]: True} for cell in cells],
    )
    answers = publisher.publish(survey, NOTHING, stream)
    others = _ratings(len(data.stars), Stream("linkage/population"))  # what anybody may know
    usual = np.array([(others.stars[:, film] == stars).sum() for film, stars in cells])
    lean = dict(
        zip(cells, (answers.values - usual) / (usual + 1.0 + answers.spread**2), strict=True)
    )
    right = sum(
        sum(lean[cell] for cell in one) > sum(lean[cell] for cell in other)
        for one, other in zip(told, alike, strict=True)
    )
    limit = right_limit(publisher.guarantee)
    return guessed(publisher, publisher.guarantee, limit, right=[right], coins=len(facts))
