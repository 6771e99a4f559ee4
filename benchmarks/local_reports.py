"""Local reports: 10⁷ answers of K-ary randomised response, encoded exactly and decoded in one pass,
against numpy drawing 10⁷ uniform integers.

    python benchmarks/local_reports.py [--reports 10000000] [--levels 10] [--repeats 7]

Both run in one process on one thread, in turn; every figure is the best of several runs in
processor time. Ours is `client.reports` end to end: values read by the total rule, AES-CTR bits,
exact coins and uniform levels. numpy's generator is neither secret nor has it anything to decide.
The last line is the ratio, ours / numpy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import stored
from discreet import client, local


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def krr_times(reports: int = 10**7, levels: int = 10, repeats: int = 7) -> dict[str, float]:
    """Processor seconds of encoding, of decoding and of numpy's `integers`,
    best of several runs in turn.
    """
    rng = np.random.default_rng(1)
    spec, values = (
        client.RandomizedResponse(client.Integer(0, levels - 1), 1),
        rng.integers(0, levels, reports),
    )
    answers = client.reports(spec, values)
    work: dict[str, Callable[[], object]] = {
        "encode": lambda: client.reports(spec, values),
        "decode": lambda: local.shares(spec, answers).params,
        "integers": lambda: rng.integers(0, levels, reports),
    }
    best = dict.fromkeys(work, float("inf"))
    for _ in range(repeats):
        for name, task in work.items():
            best[name] = min(best[name], seconds(task))
    return best


def krr_vs_integers(reports: int = 10**7, levels: int = 10, repeats: int = 7) -> float:
    """Time to encode reports of randomised response / time of numpy's `integers`."""
    best = krr_times(reports, levels, repeats)
    return best["encode"] / best["integers"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("reports", 10**7), ("levels", 10), ("repeats", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    stored.option(parser)
    asked = parser.parse_args()
    best = krr_times(asked.reports, asked.levels, asked.repeats)
    for name, time_taken in best.items():
        print(f"{name:9} {1e9 * time_taken / asked.reports:6.2f} ns a report")
    if asked.store:
        stored.figures(
            "local_reports",
            about="speed",
            title="Randomised reports",
            says="Nanoseconds a report of K-ary randomised response, beside numpy drawing as many "
            "uniform whole numbers.",
            found={name: 1e9 * taken / asked.reports for name, taken in best.items()},
        )
    print(f"krr_vs_integers={best['encode'] / best['integers']:.2f}")


if __name__ == "__main__":
    main()
