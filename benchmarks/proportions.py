"""One proportion: exact intervals and fiducial draws against scipy and numpy, the peer's interval
on the same releases, and randomised reports.

    make bench NAME=proportions [ARGS=repeats]

interval_vs_scipy   a 95 % interval by exact inversion from a noisy count of 1000 rows, over scipy's
                    Clopper–Pearson interval of the plain count.
fiducial_vs_beta    10⁵ fiducial draws (noise taken off, Beta variates, both from a counter) over
                    numpy's draw of the Beta variates alone.
krr_vs_integers     10⁷ K-ary randomised reports encoded over numpy's draw of as many integers
                    (benchmarks/local_reports.py).
Processor time, interleaved, the best of many repeats.

The comparison with OpenDP's `BinomialCND.confidence_interval` (left out where OpenDP is not
installed) draws nothing: both libraries answer the same fine grid of Tulap counts, each weighted
with its probability. It ends with a proof, computed, that no interval which covers can be as narrow
as OpenDP's wherever that answers.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats
from scipy.optimize import brentq

import stored
from discreet.inference.counts.binomial import NoisyCount
from discreet.inference.counts.fiducial_share import FiducialShare, share_draws
from discreet.inference.counts.most_powerful import rejection
from discreet.inference.counts.tulap import ReleasedNoise
from local_reports import krr_vs_integers

REPEATS, ROWS, COUNT, DRAWS = 60, 1000, 412, 100_000
PARTS = 16  # of a whole count
TULAP, GEOMETRIC = ReleasedNoise("tulap", 1.0), ReleasedNoise("geometric", 1.0)


def best_of(works: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The least processor time of each, measured in turn."""
    best = dict.fromkeys(works, math.inf)
    for _ in range(repeats):
        for name, work in works.items():
            start = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - start)
    return best


def speed(repeats: int) -> dict[str, float]:
    plain = stats.binomtest(COUNT, ROWS)
    rng = np.random.default_rng(1)
    shapes = np.clip(COUNT - GEOMETRIC.quantile(rng.random(DRAWS)), 0, ROWS)
    counts = {
        name: NoisyCount(float(COUNT) + (0.25 if name == "tulap" else 0.0), ROWS, noise)
        for name, noise in (("tulap", TULAP), ("geometric", GEOMETRIC))
    }
    return best_of(
        {
            "scipy exact": lambda: plain.proportion_ci(method="exact"),
            "exact interval": lambda: counts["tulap"].interval(0.95),
            "conservative interval": lambda: counts["geometric"].interval(0.95),
            "symmetric interval": lambda: counts["tulap"].symmetric_interval(0.95),
            "fiducial interval": lambda: FiducialShare(counts["tulap"]).interval(0.95),
            "numpy beta": lambda: rng.beta(shapes + 0.5, ROWS - shapes + 0.5),
            "fiducial draws": lambda: share_draws(counts["geometric"], DRAWS),
        },
        repeats,
    )


def compare_with_opendp(rows: int = 30, share: float = 0.1, epsilon: float = 1.0) -> None:
    """Both intervals of every Tulap count on a grid of 16ths, weighted with the count's probability
    at this share: computed, not simulated.
    """
    try:
        from opendp.extras.numpy.canonical import BinomialCND
    except ImportError:
        print("OpenDP is not installed: no comparison")
        return
    noise = ReleasedNoise("tulap", 1 / epsilon)
    values = np.arange(-14 * PARTS, (rows + 14) * PARTS) / PARTS + 0.5 / PARTS
    mass = np.array(
        [
            rejection(rows, share, noise, -math.inf, value - 0.5 / PARTS)
            - rejection(rows, share, noise, -math.inf, value + 0.5 / PARTS)
            for value in values
        ]
    )
    ours = np.array([NoisyCount(float(value), rows, noise).interval(0.95) for value in values])
    theirs = np.full(ours.shape, np.nan)
    for place, value in enumerate(values):
        try:
            theirs[place] = BinomialCND(
                float(value), 1.0, (epsilon, 0.0), rows
            ).confidence_interval(0.05)
        except Exception:  # it raises where its search finds no sign change
            continue
    both = ~np.isnan(theirs[:, 0])
    given, width, their_width = (
        mass[both] / mass[both].sum(),
        np.diff(ours[both])[:, 0],
        np.diff(theirs[both])[:, 0],
    )
    hits = (theirs[both, 0] <= share) & (share <= theirs[both, 1])
    wider = width > their_width
    print(
        f"n={rows}, p={share}, ε={epsilon:g}, computed: OpenDP answers "
        f"{100 * mass[both].sum():.1f} % of releases, and covers in {given @ hits:.3f} of these; "
        f"ours answers all and covers in {computed_coverage(rows, share, noise):.9f}"
    )
    print(
        f"where both answer: mean width {given @ width:.4f}, OpenDP {given @ their_width:.4f} "
        f"(ratio {given @ width / (given @ their_width):.3f}); ours is wider in "
        f"{given @ wider:.3f} of these, and OpenDP's holds p in {given @ (wider & hits):.3f}"
    )
    if np.any(wider & (mass[both] > 1e-12)):
        at = values[both][wider & (mass[both] > 1e-12)]
        print(
            f"those are releases from {at.min():.2f} to {at[at < rows / 2].max():.2f} and their "
            f"mirror images, {their_width[wider].max():.4f} wide at most in OpenDP, whatever the "
            "release"
        )
    print(least_miss(rows, share, noise, float(their_width[values[both] <= 0].max())))


def least_miss(rows: int, share: float, noise: ReleasedNoise, width: float) -> str:
    """How often an interval must miss `share` if it holds 0 with probability 0.95 there and is at
    most `width` < share wide at every release ≤ 0.

    Proof. Such an interval holds 0 or `share`, not both. Where it holds `share` it misses 0,
           so these releases weigh at most 0.05 at share 0. Among all such sets the one that weighs
           most at `share` is {c < Y ≤ 0} (Neyman and Pearson: the likelihood ratio rises with Y).
           What is left, {Y ≤ c}, misses `share`.
    """
    if width >= share:
        return f"no bound: an interval of {width:.4f} can hold both 0 and {share:g}"
    edge = float(
        brentq(
            lambda c: (
                rejection(rows, 0.0, noise, 0.0, math.inf)
                - rejection(rows, 0.0, noise, c, math.inf)
                - 0.05
            ),
            -30.0 * noise.spread,
            0.0,
        )
    )
    return (
        f"an interval no wider than {width:.4f} at every release ≤ 0 that covers 0 with "
        f"probability 0.95 misses {share:g} with probability ≥ "
        f"{rejection(rows, share, noise, edge, math.inf):.4f} > 0.05 (Neyman–Pearson)"
    )


def computed_coverage(rows: int, share: float, noise: ReleasedNoise) -> float:
    """The probability of the releases whose interval holds the share,
    found by bisection on the interval itself.
    """

    def limit(inside: float, outside: float, side: int) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            end = NoisyCount(middle, rows, noise).interval(0.95)[side]
            inside, outside = (
                (middle, outside)
                if (end <= share if side == 0 else end >= share)
                else (inside, middle)
            )
        return outside

    return 1 - rejection(
        rows,
        share,
        noise,
        limit(rows * share, -60.0 * noise.spread, 1),
        limit(rows * share, rows + 60.0 * noise.spread, 0),
    )


def main() -> None:
    asked = stored.wanted()
    best = speed(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
    for name, seconds in best.items():
        print(f"{name}: {1e3 * seconds:.3f} ms", flush=True)
    if asked:
        stored.figures(
            "proportions",
            about="speed",
            title="One proportion",
            says="Milliseconds of processor time: intervals of a noisy count of 1000 rows and 10⁵ "
            "draws, here and without privacy.",
            found={name: 1e3 * seconds for name, seconds in best.items()},
        )
    compare_with_opendp()
    interval, fiducial = (
        best["exact interval"] / best["scipy exact"],
        best["fiducial draws"] / best["numpy beta"],
    )
    print(
        f"interval_vs_scipy={interval:.2f} fiducial_vs_beta={fiducial:.2f} "
        f"krr_vs_integers={krr_vs_integers():.2f}"
    )


if __name__ == "__main__":
    main()
