"""Audits of other people's mechanisms, and another people's audit of nothing.

    make bench NAME=audit_peers          (diffprivlib, OpenDP and jax_privacy, in a venv of its own)

`diffprivlib_low_bits` is the ε that the low bits of its Laplace noise alone prove, at confidence
1 − 10⁻⁹, where 1 is claimed; `dp_audit_low_bits` the same by `dp.audit`, which is told nothing of
low bits. `opendp_laplace` is the share of its claim that is measured of OpenDP's Laplace
measurement (a bound above 1 would refute it). `jax_privacy_null` is the median ε at δ = 10⁻⁵ that
the Gaussian audit of jax_privacy 2.0.0 reports of 1 000 + 1 000 scores that are nothing but noise,
where 0 is true; `ours_null` is our median lower bound on μ of the same noise.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import discreet as dp
import stored
from discreet.testing.reachable import epsilon_seen_in_low_bits

NULLS, SCORES, DELTA = 21, 1000, 1e-5
RUNS, LOW_BITS = 20_000, 60_000


def low_bits() -> tuple[float, float, float]:
    """(ε from low bits, seconds, ε by dp.audit) of diffprivlib's Laplace noise with ε = 1."""
    from diffprivlib.mechanisms import Laplace

    noisy = Laplace(epsilon=1, delta=0.0, sensitivity=1, random_state=1)

    def release(value: float, count: int) -> Any:
        return np.array([noisy.randomise(value) for _ in range(count)])

    began = time.process_time()
    seen = epsilon_seen_in_low_bits(release, 0.0, 1.0, LOW_BITS)
    took = time.process_time() - began
    ours = dp.audit(noisy.randomise, pair=(0.0, 1.0), claim=dp.PureDP(1), runs=4000)
    print(ours)
    return seen, took, ours.lower


def opendp_laplace() -> Any:
    """Its Laplace measurement of a float with sensitivity 1 and scale 1."""
    import opendp.prelude as odp

    odp.enable_features("contrib")
    domain = odp.atom_domain(T=float, nan=False)
    measurement = odp.m.make_laplace(domain, odp.absolute_distance(T=float), scale=1.0)
    claimed = float(measurement.map(1.0))
    found = dp.audit(measurement, pair=(0.0, 1.0), claim=dp.PureDP(claimed), runs=RUNS)
    print(found)
    return found


def jax_privacy_null() -> float:
    """The median of its Gaussian audit on noise that knows nothing of anybody."""
    from jax_privacy.auditing import CanaryScoreAuditor

    found = []
    for seed in range(NULLS):
        scores = np.random.default_rng(seed).standard_normal((2, SCORES))
        auditor = CanaryScoreAuditor(scores[0], scores[1])
        found.append(float(auditor.epsilon_from_gdp(significance=0.05, delta=DELTA)))
    return float(np.median(found))


def ours_null() -> tuple[float, float]:
    """(median lower bound on μ, largest) on the same noise, with as many runs."""
    found = []
    for seed in range(NULLS):
        noise = iter(np.random.default_rng(seed).standard_normal(4 * SCORES).tolist())
        found.append(
            dp.audit(
                lambda value, noise=noise: next(noise),
                pair=(0, 1),
                claim=dp.GDP(1),
                runs=2 * SCORES,
                seed=seed,
            ).lower
        )
    return float(np.median(found)), max(found)


def main() -> None:
    parser = argparse.ArgumentParser()
    stored.option(parser)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seen, took, ours = low_bits()
    measured = opendp_laplace()
    theirs, (null, largest) = jax_privacy_null(), ours_null()
    print(f"low bits took {took:.2f} CPU s; our largest bound on noise: μ = {largest:.3f}")
    figures = {
        "diffprivlib_low_bits": seen,
        "dp_audit_low_bits": ours,
        "opendp_laplace": measured.share,
        "opendp_violated": float(measured.violated),
        "jax_privacy_null": theirs,
        "ours_null": null,
    }
    if options.store:
        says = {
            "diffprivlib_low_bits": ("diffprivlib 0.6.6: ε seen in low bits of its Laplace", "1"),
            "dp_audit_low_bits": ("the same by dp.audit", "1"),
            "opendp_laplace": ("OpenDP 0.16.0 Laplace: measured share of its claim", "at most 1"),
            "opendp_violated": ("OpenDP 0.16.0 Laplace: refuted (1) or not (0)", "0"),
            "jax_privacy_null": ("jax_privacy 2.0.0: median ε of its Gaussian audit, noise", "0"),
            "ours_null": ("dp.audit: median lower bound on μ, the same noise", "0"),
        }
        stored.table(
            "audit_peers",
            about="privacy",
            title="Other people's mechanisms and audits",
            says="Lower bounds on what is told, beside what is claimed or true.",
            columns=[
                stored.column("figure"),
                stored.column("claimed", "claimed or true"),
                stored.column("measured", digits=3),
            ],
            rows=[
                {"figure": says[name][0], "claimed": says[name][1], "measured": value}
                for name, value in figures.items()
            ],
        )
    print(*(f"{name}={value:.3f}" for name, value in figures.items()))


if __name__ == "__main__":
    main()
