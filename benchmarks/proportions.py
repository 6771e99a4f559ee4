"""One proportion: exact intervals and fiducial draws against scipy and numpy, the peer's interval on the same releases, and randomised reports.

    make bench NAME=proportions [ARGS=repeats]

interval_vs_scipy   a 95 % interval by exact inversion from a noisy count of 1000 rows, over scipy's Clopper–Pearson interval of the plain count.
fiducial_vs_beta    10⁵ fiducial draws (noise taken off, Beta variates, both from a counter) over numpy's draw of the Beta variates alone.
krr_vs_integers     10⁷ K-ary randomised reports encoded over numpy's draw of as many integers; nan where the local package is not there.
Processor time, interleaved, the best of many repeats. The comparison with OpenDP's `BinomialCND.confidence_interval` gives both libraries the same Tulap counts.
"""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from discreet.inference.binomial import NoisyCount
from discreet.inference.fiducial_share import FiducialShare, share_draws
from discreet.inference.most_powerful import rejection
from discreet.inference.tulap import ReleasedNoise, tulap_quantile

REPEATS, ROWS, COUNT, DRAWS, REPORTS = 60, 1000, 412, 100_000, 10_000_000
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
    counts = {name: NoisyCount(float(COUNT) + (0.25 if name == "tulap" else 0.0), ROWS, noise) for name, noise in (("tulap", TULAP), ("geometric", GEOMETRIC))}
    return best_of({
        "scipy exact": lambda: plain.proportion_ci(method="exact"), "exact interval": lambda: counts["tulap"].interval(0.95), "conservative interval": lambda: counts["geometric"].interval(0.95),
        "symmetric interval": lambda: counts["tulap"].symmetric_interval(0.95), "fiducial interval": lambda: FiducialShare(counts["tulap"]).interval(0.95),
        "numpy beta": lambda: rng.beta(shapes + 0.5, ROWS - shapes + 0.5), "fiducial draws": lambda: share_draws(counts["geometric"], DRAWS),
    }, repeats)


def reports_ratio() -> float:
    """K-RR encoding over numpy's integers: `discreet.local.benchmark_reports(values, levels, epsilon)` is called where it exists."""
    try:
        encode = importlib.import_module("discreet.local").benchmark_reports
    except (ImportError, AttributeError):
        return math.nan
    rng = np.random.default_rng(2)
    values = rng.integers(0, 16, REPORTS)
    best = best_of({"integers": lambda: rng.integers(0, 16, REPORTS), "reports": lambda: encode(values, 16, 1.0)}, 3)
    return best["reports"] / best["integers"]


def compare_with_opendp(rows: int = 30, share: float = 0.1, epsilon: float = 1.0, draws: int = 400) -> None:
    """The same Tulap counts to both; our coverage is computed too, from the limits of the interval at this share."""
    try:
        from opendp.extras.numpy.canonical import BinomialCND
    except ImportError:
        print("OpenDP is not installed: no comparison")
        return
    rng = np.random.default_rng(3)
    noise = ReleasedNoise("tulap", 1 / epsilon)
    values = rng.binomial(rows, share, draws) + tulap_quantile(rng.random(draws), noise.b)
    ours = np.array([NoisyCount(float(value), rows, noise).interval(0.95) for value in values])
    theirs = np.full((draws, 2), np.nan)
    for place, value in enumerate(values):
        try:
            theirs[place] = BinomialCND(float(value), 1.0, (epsilon, 0.0), rows).confidence_interval(0.05)
        except Exception:  # it raises where its search finds no sign change
            continue
    both = ~np.isnan(theirs[:, 0])
    hits = (ours[:, 0] <= share) & (share <= ours[:, 1])
    their_hits = (theirs[:, 0] <= share) & (share <= theirs[:, 1])
    width, their_width = float(np.diff(ours[both]).mean()), float(np.diff(theirs[both]).mean())
    print(f"n={rows}, p={share}, ε={epsilon:g}, {draws} releases: OpenDP answers {100 * both.mean():.1f} %, covers {their_hits.mean():.3f} of all and {their_hits[both].mean():.3f} where it answers")
    print(f"ours answers 100.0 %, covers {hits.mean():.4f} (computed: {computed_coverage(rows, share, noise):.9f}); mean width where both answer {width:.4f}, OpenDP {their_width:.4f}")


def computed_coverage(rows: int, share: float, noise: ReleasedNoise) -> float:
    """The probability of the releases whose interval holds the share, found by bisection on the interval itself."""
    def limit(inside: float, outside: float, side: int) -> float:
        for _ in range(60):
            middle = (inside + outside) / 2
            end = NoisyCount(middle, rows, noise).interval(0.95)[side]
            inside, outside = (middle, outside) if (end <= share if side == 0 else end >= share) else (inside, middle)
        return outside

    return 1 - rejection(rows, share, noise, limit(rows * share, -60.0 * noise.spread, 1), limit(rows * share, rows + 60.0 * noise.spread, 0))


def main() -> None:
    best = speed(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS)
    for name, seconds in best.items():
        print(f"{name}: {1e3 * seconds:.3f} ms", flush=True)
    compare_with_opendp()
    interval, fiducial = best["exact interval"] / best["scipy exact"], best["fiducial draws"] / best["numpy beta"]
    print(f"interval_vs_scipy={interval:.2f} fiducial_vs_beta={fiducial:.2f} krr_vs_integers={reports_ratio():.2f}")


if __name__ == "__main__":
    main()
