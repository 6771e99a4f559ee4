"""Reconstruction: from many counts about random groups, everybody's secret (Dinur and Nissim 2003).

*Method.* Everybody has a secret bit, a fair coin. Each question counts the bits of a random half of
the people, who are known. The bits are solved for by least squares, or by the least sum of absolute
errors with every bit in [0, 1] (a linear program, which bears a few wild answers), and rounded.

*Limit.* With a guarantee, a share of at most 1 − min_α(α + f(α))/2 of the bits is guessed right on
average, whatever the attack: each bit is one coin (`accounting.tradeoff.guessing.chance_of`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet import plain
from discreet.accounting.tradeoff.guessing import right_limit
from discreet.attacks.publishers import Publisher, Raw, Survey, publishers, whole
from discreet.attacks.results import AttackResult, guessed
from discreet.errors import InvalidParameter, shown
from discreet.inference.results.laws import Array
from discreet.inference.simulation.streams import Stream

SECRET = "secret"
METHODS = ("least squares", "linear program")
RIDGE = 1e-9  # keeps fewer questions than people solvable; the shortest solution is taken


@plain.called
def reconstruction(
    rows: int = 500,
    *,
    questions: int | None = None,
    against: Sequence[Publisher] = (Raw(),),
    method: str = "least squares",
    releases: int = 1,
    seed: int = 1,
) -> AttackResult:
    """The share of secret bits that are found from counts about random halves of the people.

    `questions` is twice the number of people by default; ``method="linear program"`` bears wild
    answers and takes longer; `releases` repeats everything with other people and other noise.
    """
    rows, releases = whole(rows, "rows", 2), whole(releases, "releases", 1)
    asked = 2 * rows if questions is None else whole(questions, "questions", 1)
    if method not in METHODS:
        raise InvalidParameter(
            "method=",
            f"{shown(method)} is not one of them",
            "bits are solved for from counts",
            f"pass one of {', '.join(METHODS)}",
        )
    outcomes = []
    for publisher in publishers(against):
        right = [
            _found(publisher, rows, asked, method, Stream(f"reconstruction/{seed}/{one}"))
            for one in range(releases)
        ]
        limit = None if publisher.guarantee is None else right_limit(publisher.guarantee)
        outcomes.append(guessed(publisher, publisher.guarantee, limit, right=right, coins=rows))
    about = (
        f"{rows} people with a secret bit each; {asked} counts about random halves of them.",
        f"Solved by {method}{'' if releases == 1 else f'; {releases} times'}.",
    )
    return AttackResult("Reconstruction", "share of bits found", 0.5, tuple(outcomes), about)


def _found(publisher: Publisher, rows: int, questions: int, method: str, stream: Stream) -> int:
    bits = stream.uniforms((rows,), "bits") < 0.5
    groups = stream.uniforms((questions, rows), "groups") < 0.5
    columns = {f"group {number}": group for number, group in enumerate(groups)} | {SECRET: bits}
    filters = [{f"group {number}": True, SECRET: True} for number in range(questions)]
    answers = publisher.publish(Survey(columns, filters), SECRET, stream).values
    known = np.isfinite(answers)
    if not known.any():
        return int(bits.sum())
    solve = _least_squares if method == METHODS[0] else _linear_program
    guesses = solve(groups[known].astype(float), answers[known]) > 0.5
    return int((guesses == bits).sum())


def _least_squares(groups: Array, answers: Array) -> Array:
    """The bits, about a half, that fit the answers best."""
    middle = answers - groups.sum(axis=1) / 2
    gram = groups.T @ groups + RIDGE * np.eye(groups.shape[1])
    return np.asarray(0.5 + np.linalg.solve(gram, groups.T @ middle))


def _linear_program(groups: Array, answers: Array) -> Array:
    """Bits in [0, 1] with the least sum of absolute errors: errors are split into two parts that
    are not negative.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, hstack

    asked, people = groups.shape
    program = linprog(
        np.concatenate([np.zeros(people), np.ones(2 * asked)]),
        A_eq=hstack([csr_array(groups), eye_array(asked), -eye_array(asked)]),
        b_eq=answers,
        bounds=[(0, 1)] * people + [(0, None)] * (2 * asked),
        method="highs",
    )
    return np.asarray(program.x[:people])
