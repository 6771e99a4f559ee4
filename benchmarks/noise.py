"""Noise throughput: ours (secure and exact), numpy's generator (neither) and OpenDP (exact),
in one process on one thread.

    python benchmarks/noise.py [--draws 1000000] [--repeats 15]

Every figure is the best of several runs on vectors of the same length. Ours is `draw` end to end:
AES-CTR bits, fast path, exact path for what it leaves open. OpenDP's is a measurement called on a
vector of that length (its Gaussian on the same grid as ours, which is four times faster than its
default; that one is shown on a tenth of the length). Should one call take longer than --patience
seconds, the next is made on a vector ten times shorter, and the length is printed. The last line
gives throughput ratios, ours / theirs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

import stored
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import GaussianNoise, GeometricNoise, LaplaceNoise
from discreet.trusted.noise.kernels import compiled_kernel
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import secure_source

SPREAD = 100.0
REFINEMENT = 10  # grid of 2**-10: σ is 102 400 steps


def best(work: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of `repeats` runs, after one to warm up."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(draws: int, repeats: int) -> dict[str, float]:
    one, spread, source = Fraction(1), Fraction(SPREAD), secure_source()
    mechanisms = {
        "gaussian": GaussianNoise(L2(one), spread, REFINEMENT),
        "laplace": LaplaceNoise(L1(one), spread, REFINEMENT),
        "geometric": GeometricNoise(L1(one), spread, 0),
    }
    return {
        name: best(lambda m=mechanism: draw(m, draws, source), repeats) / draws
        for name, mechanism in mechanisms.items()
    }


def of_numpy(draws: int, repeats: int) -> dict[str, float]:
    """standard_normal and laplace; a two-sided geometric draw is the difference of two geometric
    ones.
    """
    rng, p = np.random.default_rng(), 1 - np.exp(-1 / SPREAD)
    work = {
        "gaussian": lambda: rng.standard_normal(draws),
        "laplace": lambda: rng.laplace(0.0, SPREAD, draws),
        "geometric": lambda: rng.geometric(p, draws) - rng.geometric(p, draws),
        "geometric, one side": lambda: rng.geometric(p, draws),
    }
    return {name: best(task, repeats) / draws for name, task in work.items()}


def of_opendp(draws: int, patience: float) -> dict[str, tuple[float, int]]:
    """Seconds a draw and the vector length they were measured on;
    its Gaussian on our grid and on its default grid (2**-1074).
    """
    import opendp.prelude as dp

    dp.enable_features("contrib")
    real, whole = dp.atom_domain(T=float, nan=False), dp.atom_domain(T=int)

    def gaussian(length: int) -> Callable[[list[float]], object]:
        return dp.m.make_gaussian(
            dp.vector_domain(real, size=length),
            dp.l2_distance(T=float),
            scale=SPREAD,
            k=-REFINEMENT,
        )

    def gaussian_on_default_grid(length: int) -> Callable[[list[float]], object]:
        return dp.m.make_gaussian(dp.vector_domain(real), dp.l2_distance(T=float), scale=SPREAD)

    def integer_laplace(length: int) -> Callable[[list[float]], object]:
        return dp.m.make_laplace(dp.vector_domain(whole), dp.l1_distance(T=int), scale=SPREAD)

    return {
        "gaussian": timed(gaussian, [0.0], draws, patience),
        "gaussian, default grid": timed(gaussian_on_default_grid, [0.0], draws // 10, patience),
        "integer_laplace": timed(integer_laplace, [0], draws, patience),
    }


def timed(
    make: Callable[[int], Callable[[list[float]], object]],
    zero: list[float],
    length: int,
    patience: float,
) -> tuple[float, int]:
    """Best of two calls on a vector of `length`,
    or of a tenth of it while one call takes longer than `patience` seconds.
    """
    while True:
        measurement, vector, times = make(length), zero * length, []
        for _ in range(2):
            start = time.perf_counter()
            measurement(vector)
            times.append(time.perf_counter() - start)
            if times[0] > patience:
                break
        if times[0] <= patience or length < 1000:
            return min(times) / length, length
        length //= 10


def store(
    mine: dict[str, float], insecure: dict[str, float], peer: dict[str, tuple[float, int]]
) -> None:
    """Millions of draws a second of each law and generator."""
    rows = [("discreet: secure, exact", name, 1e-6 / each) for name, each in mine.items()]
    rows += [("numpy: neither", name, 1e-6 / each) for name, each in insecure.items()]
    rows += [("OpenDP: secure, exact", name, 1e-6 / each) for name, (each, _) in peer.items()]
    stored.table(
        "noise",
        about="speed",
        title="Draws of noise",
        says="Millions of draws a second on one thread, the best of several runs in one process.",
        columns=[
            stored.column("who"),
            stored.column("law"),
            stored.column("draws", "10⁶ draws a second", digits=2),
        ],
        rows=[{"who": who, "law": law, "draws": draws} for who, law, draws in rows],
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--patience", type=float, default=60.0)
    stored.option(parser)
    options = parser.parse_args()
    if compiled_kernel() is None:
        print("numba is not installed: pip install 'discreet[fast]'", file=sys.stderr)
        return 2
    try:
        peer = of_opendp(options.draws, options.patience)
    except ImportError:
        print(
            "OpenDP is not installed, so there is nothing to compare with: pip install -r "
            "benchmarks/peers/noise.txt",
            file=sys.stderr,
        )
        return 2
    mine, insecure = ours(options.draws, options.repeats), of_numpy(options.draws, options.repeats)
    for name, seconds in mine.items():
        print(f"discreet  {name:22s} {1e-6 / seconds:10.3f} M/s  on {options.draws} draws")
    for name, seconds in insecure.items():
        print(f"numpy     {name:22s} {1e-6 / seconds:10.3f} M/s  on {options.draws} draws")
    for name, (seconds, length) in peer.items():
        print(f"opendp    {name:22s} {1e-6 / seconds:10.3f} M/s  on {length} draws")
    ratios = {
        f"{name}_vs_numpy": insecure[name] / mine[name]
        for name in ("gaussian", "laplace", "geometric")
    }
    # the slower of numpy's two ways to a geometric draw would flatter us:
    # compare with the one-sided one
    ratios["geometric_vs_numpy"] = insecure["geometric, one side"] / mine["geometric"]
    ratios["gaussian_vs_opendp"] = peer["gaussian"][0] / mine["gaussian"]
    ratios["integer_laplace_vs_opendp"] = peer["integer_laplace"][0] / mine["geometric"]
    if options.store:
        store(mine, insecure, peer)
    print(" ".join(f"{name}={ratio:.3g}" for name, ratio in ratios.items()))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
