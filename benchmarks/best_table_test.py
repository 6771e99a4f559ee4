"""How close the test of a 2 × 2 table with a public total comes to the best of all tests,
where noise rules.

    python benchmarks/best_table_test.py [--strength 3.43] [--repetitions 4000]

The limit of much noise: the contrasts A (rows), B (columns) and D (interaction) of a table with
known total are normal with variance 1, and the null is D = A·B/S, |A|, |B| ≤ S, where S is half the
total over the noise's standard deviation (200 rows at ε = 0.1: 3.43). On a grid of cells of
(A, B, D) the test of largest power at one alternative among all that reject at most 5 % at every
null point is a linear program, solved with HiGHS; tests are the same for swapped and mirrored
tables, as the alternatives are. Beside it: a test that is told the margins, the library's own, and
the normal approximation with its sizes at two nulls. Last line: name=value pairs.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.stats import norm

import stored
from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.tables.association import association
from discreet.inference.tables.comparisons import normal_p_value
from tests_size import MANY, table_rejected

ALPHA, STEP, MARGIN, NULLS = 0.05, 0.4, 3.2, 9
SPREAD = 1e4  # the noise's standard deviation: counts have no sampling error beside it


class Grid:
    """Cells of (A, B, D), merged over the symmetries of 2 × 2 tables."""

    def __init__(self, strength: float) -> None:
        inner = np.arange(-(strength + MARGIN), strength + MARGIN + STEP / 2, STEP)[1:-1]
        self.edges = np.concatenate([[-np.inf], inner, [np.inf]])
        number = len(self.edges) - 1
        places = np.arange(number**3).reshape(number, number, number)
        mirrored = [
            places,
            np.flip(places, (0, 2)),
            np.flip(places, (1, 2)),
            np.flip(places, (0, 1)),
        ]
        least = np.minimum.reduce([*mirrored, *(each.transpose(1, 0, 2) for each in mirrored)])
        self.kinds, self.kind_of = (
            np.asarray(part) for part in np.unique(least.ravel(), return_inverse=True)
        )

    def law(self, point: Any) -> Any:
        """Probabilities of the kinds of cells when (A, B, D) has this mean."""
        each = [np.diff(norm.cdf(self.edges - mean)) for mean in point]
        return np.bincount(
            self.kind_of, weights=np.einsum("i,j,k->ijk", *each).ravel(), minlength=len(self.kinds)
        )


def best_power(grid: Grid, alternative: Any, nulls: list[Any]) -> float:
    answer = linprog(
        -grid.law(alternative),
        A_ub=np.array([grid.law(null) for null in nulls]),
        b_ub=np.full(len(nulls), ALPHA),
        bounds=(0, 1),
        method="highs",
    )
    return float(-answer.fun)


def contrasts(shares: Any, strength: float) -> Any:
    whole = 2 * strength * np.asarray(shares)
    return (
        np.array(
            [
                whole[0].sum() - whole[1].sum(),
                whole[:, 0].sum() - whole[:, 1].sum(),
                whole[0, 0] + whole[1, 1] - whole[0, 1] - whole[1, 0],
            ]
        )
        / 2
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--strength", type=float, default=3.43)
    parser.add_argument(
        "--change",
        type=float,
        default=0.623,
        help="difference of the two shares; the smaller one is 0.3",
    )
    parser.add_argument("--repetitions", type=int, default=4000)
    stored.option(parser)
    options = parser.parse_args()
    strength, grid = options.strength, Grid(options.strength)
    shares = np.array([[0.3 + options.change, 0.7 - options.change], [0.3, 0.7]]) / 2
    alternative = contrasts(shares, strength)
    points = np.linspace(0, strength, NULLS)
    best = best_power(
        grid, alternative, [(a, b, a * b / strength) for a in points for b in points if b <= a]
    )
    told = best_power(grid, alternative, [(0.0, alternative[1], 0.0)])
    rng, noise, rows = (
        np.random.default_rng(1),
        ReleasedNoise("gaussian", SPREAD),
        round(2 * strength * SPREAD),
    )

    def drawn(table: Any, number: int) -> Any:
        return rows * np.asarray(table) + SPREAD * rng.normal(size=(number, 2, 2))

    seen = drawn(shares, options.repetitions)
    ours = float(np.mean(table_rejected(rng, seen, noise, association, rows, MANY)))
    plain = float(np.mean(normal_p_value(seen, noise.variance) <= ALPHA))
    for share in (0.3, 0.02):
        null = drawn(np.outer([0.5, 0.5], [share, 1 - share]), options.repetitions)
        size = float(np.mean(table_rejected(rng, null, noise, association, rows, MANY)))
        many = drawn(np.outer([0.5, 0.5], [share, 1 - share]), 100_000)
        approximate = np.mean(normal_p_value(many, noise.variance) <= ALPHA)
        print(f"null, shares of {share}: ours {size:.4f}, normal approximation {approximate:.4f}")
    if options.store:
        stored.figures(
            "best_table_test",
            about="power",
            title="A 2 × 2 table beside the best of all tests",
            says="Power at one alternative where noise rules: the linear program over all tests "
            "that keep 5 % everywhere is the limit.",
            found={
                "a test that is told the margins": told,
                "the best of all tests": best,
                "dp.compare": stored.share(ours * options.repetitions, options.repetitions),
                "the normal approximation": stored.share(
                    plain * options.repetitions, options.repetitions
                ),
            },
            runs=options.repetitions,
            error="the standard error of a share of the runs",
            notes=["The normal approximation does not keep 5 %."],
        )
    print(f"told_margins={told:.4f} best_of_all={best:.4f} ours={ours:.4f} normal={plain:.4f}")


if __name__ == "__main__":
    main()
