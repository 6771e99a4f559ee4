"""The experiment of Dwork et al. (Science 2015): 10 000 rows of 10 000 columns without signal.

An analyst picks the k columns whose correlation with the label is strongest on training rows, of
those that the holdout confirms, and reports the accuracy on the holdout of the classifier that
they make. Asked plainly, the holdout is fitted too, and reports what is not there (`standard`).
Asked through `dp.holdout`, it reports about one half (`reusable`), as fresh rows do (`fresh`).

python benchmarks/holdout.py [--rows 10000] [--columns 10000] [--k 500] [--store]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import discreet as dp
import stored

THRESHOLD, ANSWERS, SPEND = 0.02, 1000, dp.GDP(2)  # of a range of 2: 0.04 of a correlation


def rows_of(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Columns of ±1 and a label of ±1, all independent."""
    signs = rng.integers(0, 2, (columns, rows), dtype=np.int8)
    return 2 * signs - 1, 2 * rng.integers(0, 2, rows, dtype=np.int8) - 1


def correlations(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mean of y·x for each column."""
    return np.array([np.dot(column.astype(np.float32), y) for column in x]) / len(y)


def votes(x: np.ndarray, chosen: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The sum of the chosen columns, each with its sign."""
    return signs.astype(np.float32) @ x[chosen].astype(np.float32)


def best(training: np.ndarray, confirmed: np.ndarray, k: int, rows: int) -> np.ndarray:
    """The k columns of the strongest training correlation, among those that are at least one
    standard error away from 0 on both, on the same side.
    """
    least = 1 / np.sqrt(rows)
    fits = (np.abs(training) >= least) & (training * confirmed > 0) & (np.abs(confirmed) >= least)
    candidates = np.flatnonzero(fits)
    return candidates[np.argsort(-np.abs(training[candidates]))][:k]


def right(votes_of_rows: np.ndarray, y: np.ndarray) -> float:
    """The share of rows whose label the votes have; a tie is half right."""
    return float(np.mean(np.where(votes_of_rows == 0, 0.5, np.sign(votes_of_rows) == y)))


def experiment(rows: int, columns: int, k: int, seed: int) -> dict[str, float]:
    """The three accuracies."""
    rng = np.random.default_rng(seed)
    x, y = rows_of(rng, rows, columns)
    training = correlations(x, y)
    train_x, train_y = x, y
    x, y = rows_of(rng, rows, columns)
    own = correlations(x, y)
    chosen = best(training, own, k, rows)
    standard = right(votes(x, chosen, np.sign(training[chosen])), y)

    names = [f"x{place}" for place in range(columns)]
    declared = dict.fromkeys([*names, "y"], dp.Integer(-1, 1, missing=0))
    data = dp.from_arrays(
        {**dict(zip(names, x, strict=True)), "y": y}, schema=declared, neighbors=dp.Replace()
    )
    holdout = dp.holdout(data.open(budget=SPEND), threshold=THRESHOLD, answers=ANSWERS, spend=SPEND)
    told = np.array(
        [
            holdout.mean([name, "y"], training=float(claim)).value
            for name, claim in zip(names, training, strict=True)
        ]
    )
    chosen = best(training, told, k, rows)
    signs = tuple(int(sign) for sign in np.sign(training[chosen]))
    kept = tuple(names[place] for place in chosen)
    claimed = right(votes(train_x, chosen, np.array(signs)), train_y)

    def decides(row):
        score = 0
        for name, sign in zip(kept, signs, strict=True):
            score = score + sign * row[name]
        return 0.5 if score == 0 else (score > 0) == (row["y"] > 0)

    reusable = holdout.mean(decides, training=claimed, columns=[*kept, "y"]).value
    x, y = rows_of(rng, rows, columns)
    fresh = right(votes(x, chosen, np.array(signs)), y)
    surprises = len(holdout.history.surprises)
    print(f"{rows} rows, {columns} columns, k = {k}: training {claimed:.3f}; {surprises} surprises")
    print(f"the holdout, {holdout.facts.guarantee}: {holdout!r}")
    return {"standard": standard, "reusable": reusable, "fresh": fresh}


def store(found: dict[str, float], given: argparse.Namespace) -> None:
    """The figures as a table."""
    error = 0.5 / given.rows**0.5
    shown = {
        "standard": ("the same holdout, asked plainly", "about 0.63"),
        "reusable": ("through dp.holdout", "about 0.51"),
        "fresh": ("fresh rows", "0.50"),
    }
    stored.table(
        "holdout",
        about="accuracy",
        title="A holdout asked adaptively",
        says=f"The accuracy that is reported for a classifier of {given.k} of {given.columns} "
        f"columns without signal, {given.rows} rows: the truth is one half.",
        columns=[
            stored.column("how", "measured on"),
            stored.column("accuracy", digits=3),
            stored.column("wanted"),
        ],
        rows=[
            {"how": words, "accuracy": stored.measured(found[name], error), "wanted": wanted}
            for name, (words, wanted) in shown.items()
        ],
        runs=1,
        error="the sampling error of a share of the rows",
        notes=[f"{found['seconds']:.0f} CPU seconds in all (wanted: under 90)."],
    )


def main() -> None:
    """The experiment, with the figures in the last line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=10_000)
    parser.add_argument("--k", type=int, default=500)
    stored.option(parser)
    given = parser.parse_args()
    start = time.process_time()
    found = experiment(given.rows, given.columns, given.k, seed=2015)
    found["seconds"] = time.process_time() - start
    if given.store:
        store(found, given)
    print(" ".join(f"{name}={value:.3f}" for name, value in found.items()))


if __name__ == "__main__":
    main()
