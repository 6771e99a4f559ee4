"""A small network beside Opacus: samples a second on one core, and accuracy at the same guarantee.

    make bench NAME=network            (or python benchmarks/network.py --repeats 1 --steps 500)

1. The claim at scale: 10⁵ random rows and weights of 100–32–1 add vectors of at most the clip norm,
   and batches add what their rows add alone, bit for bit, whatever the order and the threads.
2. Speed, 100–32–1, Poisson batches of 1024: a whole descent (exact batches, exact sums, exact
   noise) beside Opacus with its own loader, and beside Opacus with batches that are taken from one
   tensor by hand; the ratio is to the faster of the two. One thread each, in seconds of the
   processor, so that what else runs on the machine does not count; the best of three turns.
3. Accuracy on rows that nobody fitted: a made-up response that no line explains, ε = 2, δ = 10⁻⁶,
   rows added or removed; ours with its defaults (the mean of three draws), Opacus (PRV accountant,
   clip norm 1, momentum 0.9) with the best of three learning rates on the test rows themselves,
   and the same network without privacy.

Last line: samples_vs_opacus= accuracy= opacus_accuracy= plain_accuracy=
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import time
import warnings
from fractions import Fraction

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.accountants.utils import get_noise_multiplier
from threadpoolctl import threadpool_limits

import discreet as dp
import stored
from discreet.models.learners.network import first_weights
from discreet.sensitivity import OneRow
from discreet.specs.estimating.components import UNIT
from discreet.specs.estimating.layers import LARGEST_WEIGHTS, Network, matrices, passed
from discreet.specs.estimating.networks import NORM_BITS, NetworkPlan
from discreet.specs.mechanisms.sgd import NoisySGD
from discreet.trusted.extensions.sgd.draw import descend
from discreet.trusted.learning.network.rows import NetworkRows, _errors, clip_factors
from discreet.trusted.noise.source import secure_source

COLUMNS, HIDDEN, BATCH = 100, 32, 1024
ROWS, TEST_ROWS = 50_000, 20_000
EPSILON, DELTA = 2.0, 1e-6
RATES = (0.1, 0.4, 1.6)  # of Opacus, with momentum 0.9
DRAWS = 3  # of our noise, which are cheap
SHAPE = Network(COLUMNS, (HIDDEN,), "relu", "yes/no", 1, 22)


def claim(rows: int) -> float:
    """Checks the theorem on random rows and weights; gives the largest norm over the clip norm."""
    rng, largest, clip = np.random.default_rng(0), 0.0, 1 << NORM_BITS
    for _ in range(0, rows, 5000):
        matrix = rng.integers(-UNIT, UNIT + 1, (5000, COLUMNS)).astype(np.int16)
        reader = NetworkRows(
            NetworkPlan(None, SHAPE, clip),  # type: ignore[arg-type]
            matrix,
            rng.integers(0, 2, 5000).astype(np.int32),
        )
        theta = rng.normal(size=SHAPE.size) * 10.0 ** rng.uniform(-2, 3) * 2.0**22
        theta = np.trunc(theta * min(1.0, LARGEST_WEIGHTS / np.abs(theta).sum()))
        layers = matrices(SHAPE, theta)
        way = passed(SHAPE, layers, matrix)
        errors = _errors(SHAPE, layers, way, reader._response)
        share, norms = clip_factors(errors, way.inputs, clip), np.zeros(5000, dtype=object)
        for error, inputs in zip(errors, way.inputs, strict=True):
            cut = np.trunc(error * share[:, None]).astype(np.int64)
            norms += (cut**2).sum(axis=1).astype(object) * (
                (inputs.astype(np.int64) ** 2).sum(axis=1).astype(object)
            )
        assert max(norms) <= clip**2, "a row adds more than the clip norm"
        largest = max(largest, float(max(norms)) ** 0.5 / clip)
        some = rng.choice(5000, 40, replace=False)
        alone = sum(reader.gradient(np.array([row]), theta) for row in some)
        with threadpool_limits(2):
            together = reader.gradient(some, theta)
            whole = reader.gradient(np.arange(5000), theta)
        assert (alone == together).all(), "a row depends on its batch"
        assert (whole == reader.gradient(rng.permutation(5000), theta)).all()
    return largest


def data_of(seed: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns in −1 … 1, and a yes/no response of six bends that share a few of them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, COLUMNS))
    bends = rng.normal(size=(6, COLUMNS)) * np.repeat([1.0, 0.3, 0.05], [10, 20, 70])
    score = np.maximum(x @ bends.T, 0) @ np.array([1, 1, 1, -1, -1, -1])
    return x, rng.random(rows) < 1 / (1 + np.exp(-4 * score / score.std()))


# ── speed ─────────────────────────────────────────────────────────────────────────────────────────


def our_speed(x: np.ndarray, y: np.ndarray, steps: int) -> float:
    plan = NetworkPlan(None, SHAPE, 1 << NORM_BITS)  # type: ignore[arg-type]
    rows = NetworkRows(plan, np.floor(x * UNIT + 0.5).astype(np.int16), y.astype(np.int32))
    spec = NoisySGD(
        OneRow(Fraction(plan.clip) ** 2, "added or removed", None),
        Fraction(1.0 * plan.clip),
        Fraction(-1 / np.log1p(-BATCH / len(x))),
        None,
        steps,
        0.1 * 2.0 ** (22 - NORM_BITS) / BATCH,
        first_weights(SHAPE),
        LARGEST_WEIGHTS,
        steps,
        steps,
        Fraction(1, 10**7),
        momentum=0.9,
    )
    descend(spec, rows, secure_source())
    start = time.process_time()
    descend(spec, rows, secure_source())
    return steps * BATCH / (time.process_time() - start)


def peer(rows: torch.utils.data.TensorDataset, multiplier: float, rate: float) -> tuple:
    """Model, optimiser and loader as Opacus makes them private."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(COLUMNS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
    )
    return PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9),
        data_loader=torch.utils.data.DataLoader(rows, batch_size=BATCH),
        noise_multiplier=multiplier,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )


def stepped(model, optimizer, x: torch.Tensor, y: torch.Tensor) -> None:
    optimizer.zero_grad()
    torch.nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y).backward()
    optimizer.step()


def peer_speeds(x: torch.Tensor, y: torch.Tensor, steps: int) -> tuple[float, float]:
    """Samples a second with Opacus's loader, and with batches taken by hand."""
    model, optimizer, loader = peer(torch.utils.data.TensorDataset(x, y), 1.0, 0.1)
    start, done = time.process_time(), 0
    for batch in loader:
        stepped(model, optimizer, *batch)
        done += 1
    loaded = done * BATCH / (time.process_time() - start)
    start = time.process_time()
    for _ in range(steps):
        chosen = torch.nonzero(torch.rand(len(x)) < BATCH / len(x)).squeeze(1)
        stepped(model, optimizer, x[chosen], y[chosen])
    return loaded, steps * BATCH / (time.process_time() - start)


# ── accuracy ──────────────────────────────────────────────────────────────────────────────────────


def our_accuracy(x: np.ndarray, y: np.ndarray, test: tuple, steps: int) -> float:
    names = [f"x{place}" for place in range(COLUMNS)]
    schema = {name: dp.Real(-1, 1, missing=0) for name in names} | {"y": dp.Boolean(missing=False)}
    columns = {name: x[:, place] for place, name in enumerate(names)} | {"y": y}
    session = dp.from_arrays(columns, schema=schema, neighbors=dp.AddRemove()).open(
        budget=dp.ApproxDP(EPSILON * 1.01, DELTA * 1.01)
    )
    net = dp.network(
        session,
        "y ~ " + " + ".join(names),
        hidden=(HIDDEN,),
        spend=dp.ApproxDP(EPSILON, DELTA),
        solver=dp.SGD(steps=steps, batch=BATCH),
    )
    new = {name: test[0][:, place] for place, name in enumerate(names)}
    return float(np.mean(net.predict(new) == test[1]))


def peer_accuracy(x: torch.Tensor, y: torch.Tensor, test: tuple, steps: int, rate: float) -> float:
    multiplier = get_noise_multiplier(
        target_epsilon=EPSILON,
        target_delta=DELTA,
        sample_rate=BATCH / len(x),
        steps=steps,
        accountant="prv",
    )
    model, optimizer, _ = peer(torch.utils.data.TensorDataset(x, y), multiplier, rate)
    for _ in range(steps):  # the fast way; Poisson samples as its own loader's
        chosen = torch.nonzero(torch.rand(len(x)) < BATCH / len(x)).squeeze(1)
        stepped(model, optimizer, x[chosen], y[chosen])
    with torch.no_grad():
        return float(((model(test[0]).squeeze(1) > 0) == test[1]).float().mean())


def plain_accuracy(x: torch.Tensor, y: torch.Tensor, test: tuple, steps: int) -> float:
    """The same network without privacy: Adam, as many steps, the best of two rates."""
    best = 0.0
    for rate in (0.003, 0.01):
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Linear(COLUMNS, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=rate, weight_decay=1e-4)
        for _ in range(steps):
            chosen = torch.randint(len(x), (BATCH,))
            stepped(model, optimizer, x[chosen], y[chosen])
        with torch.no_grad():
            right = ((model(test[0]).squeeze(1) > 0) == test[1]).float().mean()
        best = max(best, float(right))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timed", type=int, default=200)
    parser.add_argument("--claim-rows", type=int, default=100_000)
    stored.option(parser)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print(f"largest norm / clip norm of {asked.claim_rows} rows: {claim(asked.claim_rows):.9f}")
    x, y = data_of(0, ROWS)
    floats = (torch.tensor(x, dtype=torch.float32), torch.tensor(y, dtype=torch.float32))
    turns = [(our_speed(x, y, asked.timed), *peer_speeds(*floats, asked.timed)) for _ in range(3)]
    ours, loaded, by_hand = (max(speeds) for speeds in zip(*turns, strict=True))
    print(
        f"samples/s: ours {ours:,.0f}, Opacus {loaded:,.0f} (its loader), {by_hand:,.0f} (by hand)"
    )
    found: dict[str, list[float]] = {"ours": [], "plain": []} | {str(rate): [] for rate in RATES}
    for seed in range(asked.repeats):
        x, y = data_of(seed + 1, ROWS + TEST_ROWS)
        test = (x[ROWS:], y[ROWS:])
        drawn = [our_accuracy(x[:ROWS], y[:ROWS], test, asked.steps) for _ in range(DRAWS)]
        found["ours"].append(float(np.mean(drawn)))
        given = (torch.tensor(x[:ROWS], dtype=torch.float32), torch.tensor(y[:ROWS]).float())
        judged = (torch.tensor(test[0], dtype=torch.float32), torch.tensor(test[1]))
        for rate in RATES:
            found[str(rate)].append(peer_accuracy(*given, judged, asked.steps, rate))
        found["plain"].append(plain_accuracy(*given, judged, asked.steps))
        told = ", ".join(f"{name} {values[-1]:.4f}" for name, values in found.items())
        print(f"data {seed + 1}: {told}", flush=True)
    means = {name: float(np.mean(values)) for name, values in found.items()}
    rate = max(map(str, RATES), key=means.__getitem__)
    if asked.store:
        store((ours, loaded, by_hand), {"ours": "discreet", rate: "Opacus", "plain": "none"}, found)
    print(
        f"samples_vs_opacus={ours / max(loaded, by_hand):.1f} accuracy={means['ours']:.4f} "
        f"opacus_accuracy={means[rate]:.4f} plain_accuracy={means['plain']:.4f}"
    )


def store(speeds: tuple, named: dict[str, str], found: dict[str, list[float]]) -> None:
    """The samples a second, and the accuracies of those that are named."""
    stored.table(
        "network_speed",
        about="speed",
        title="A network of 100–32–1 on one core beside Opacus",
        says="Samples a second of the processor, Poisson batches of 1024, noise and clipping "
        "included: the best of three turns.",
        columns=[
            stored.column("what"),
            stored.column("samples", "samples / s", digits=0),
            stored.column("ratio", "discreet's over it", digits=1, target="≥ 5"),
        ],
        rows=[
            {"what": what, "samples": speed, "ratio": speeds[0] / speed}
            for what, speed in zip(
                ("discreet", "Opacus, its loader", "Opacus, batches by hand"), speeds, strict=True
            )
        ],
    )
    runs = len(found["ours"])
    stored.table(
        "network_accuracy",
        about="accuracy",
        title="A network of 100–32–1 beside Opacus at the same guarantee",
        says=f"Accuracy on {TEST_ROWS:,} rows that nobody fitted, at ε = {EPSILON:g}, δ = 10⁻⁶, "
        f"{ROWS:,} rows added or removed; Opacus with the best of three learning rates on the test "
        "rows themselves, and the same network without privacy.",
        columns=[
            stored.column("what"),
            stored.column("accuracy", digits=4, target="within 0.005 of Opacus"),
        ],
        rows=[
            {
                "what": "without privacy" if what == "none" else what,
                "accuracy": stored.measured(
                    float(np.mean(found[name])),
                    float(np.std(found[name], ddof=1) / runs**0.5) if runs > 1 else 0.0,
                ),
            }
            for name, what in named.items()
        ],
        runs=runs,
        error="the standard error of a mean over made-up data sets",
    )


if __name__ == "__main__":
    main()
