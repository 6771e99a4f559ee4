"""Mutated questions of a service: nothing breaks, nothing invalid is debited, nothing takes long.

    python benchmarks/curator_fuzz.py                       100 000 questions
    python benchmarks/curator_fuzz.py --questions 5000      a short look

Questions of the library and questions by name are changed in one place or two: huge numbers, deep
nesting, fractions that are none, unknown types, parts of other questions. Then every route of the
OpenAPI document is called with bodies of its shape. `slow` are calls that take the processor for
more than a second, and `memory_mib` is what the process grew by in the second half.

Last line: calls, broken (5xx), paid_for_invalid, slow, memory_mib.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import stored

HERE = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(HERE), str(HERE / "tests" / "server")]

from mutations import Outcome, ask_mutated, call_every_route  # noqa: E402
from test_fuzzed import prepared  # noqa: E402

TURN = 1000


def resident() -> float:
    """MiB of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def measured(questions: int, seconds: float) -> dict[str, float]:
    total, paid, sizes = Outcome(), set[str](), list[float]()
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        here, study, bases = prepared(Path(folder))
        node = here.desk.office.trees.node(study["dataset"], study["seat"]["node"])
        before = {one.key.partition("/")[0] for one in node.entries()}
        for turn in range(-(-questions // TURN)):
            found = ask_mutated(here, study["id"], bases, min(TURN, questions), seed=turn)
            total.statuses += found.statuses
            total.broken += found.broken
            total.slow += found.slow
            paid |= found.paid
            sizes.append(resident())
            if time.monotonic() - begun > seconds:
                break
        debits = {one.key.partition("/")[0] for one in node.entries() if one.kind == "debit"}
        wrong = (debits - before) - paid
        ids = {"dataset": study["dataset"], "study": study["id"], "node": study["seat"]["node"]}
        routes = call_every_route(here, ids, 20)
    for one in [*total.broken, *routes.broken, *total.slow][:10]:
        print("odd:", one)
    print(dict(total.statuses), dict(routes.statuses))
    return {
        "calls": sum(total.statuses.values()) + sum(routes.statuses.values()),
        "broken": len(total.broken) + len(routes.broken),
        "paid_for_invalid": len(wrong),
        "slow": len(total.slow) + len(routes.slow),
        "memory_mib": max(0.0, sizes[-1] - sizes[len(sizes) // 2]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--questions", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most")
    stored.option(parser)
    given = parser.parse_args()
    found = measured(given.questions, given.seconds)
    if given.store:
        limits = {"broken": "0", "paid_for_invalid": "0", "slow": "0"}
        stored.figures(
            "curator_fuzz",
            about="privacy",
            title="Mutated questions of a service",
            says="No answer 5xx, nothing debited for what was refused.",
            found={word: (value, limits.get(word, "")) for word, value in found.items()},
        )
    print(" ".join(f"{name}={value:.0f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
