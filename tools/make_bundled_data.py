"""Makes the tables in src/discreet/bundled: people and hospital visits that nobody ever made.

    python tools/make_bundled_data.py

Both are simulated from a fixed seed, so that they have no licence but this library's, and their
truth is known: the formulas below. Bytes are the same on every run with the same numpy.
"""

from __future__ import annotations

import csv
import gzip
import io
from datetime import date, timedelta
from pathlib import Path

import numpy as np

SEED = 20_240_517
TARGET = Path(__file__).parent.parent / "src" / "discreet" / "bundled"
REGIONS, REGION_SHARES = ["E", "N", "S", "W"], [0.31, 0.18, 0.27, 0.24]
REGION_PAY = {"E": 0.0, "N": -0.08, "S": 0.05, "W": 0.12}
EDUCATION, EDUCATION_SHARES = ["school", "vocational", "degree"], [0.34, 0.38, 0.28]
EDUCATION_PAY = {"school": 0.0, "vocational": 0.16, "degree": 0.47}
WARDS, WARD_SHARES = (
    ["children", "emergency", "maternity", "medicine", "surgery"],
    [
        0.12,
        0.34,
        0.09,
        0.27,
        0.18,
    ],
)
WARD_HOURS = {"children": 20, "emergency": 6, "maternity": 55, "medicine": 70, "surgery": 48}

Table = dict[str, list[object]]


def census(rng: np.random.Generator, people: int = 8000) -> Table:
    """Log income is 9.45 + 0.032·age − 0.00026·age² + pay of education and region + 0.014·hours
    − 0.09 for women + noise; who works few hours is likelier to leave income out.
    """
    age = np.clip(np.round(rng.gamma(7, 5.6, people) + 12), 18, 90).astype(int)
    sex = rng.choice(["female", "male"], people, p=[0.51, 0.49])
    education = rng.choice(EDUCATION, people, p=EDUCATION_SHARES)
    region = rng.choice(REGIONS, people, p=REGION_SHARES)
    hours = np.clip(np.round(rng.normal(np.where(sex == "male", 38, 33), 9)), 0, 80).astype(int)
    log_income = (
        9.45
        + 0.032 * age
        - 0.00026 * age**2
        + np.array([EDUCATION_PAY[one] for one in education])
        + np.array([REGION_PAY[one] for one in region])
        + 0.014 * hours
        - 0.09 * (sex == "female")
        + rng.normal(0, 0.38, people)
    )
    income = np.round(np.exp(log_income), -1).astype(int)
    silent = rng.random(people) < np.where(hours < 20, 0.12, 0.05)
    unsaid = rng.random(people) < 0.03
    return {
        "income": _with_gaps(income, silent),
        "age": age.tolist(),
        "sex": sex.tolist(),
        "education": education.tolist(),
        "region": region.tolist(),
        "hours": _with_gaps(hours, unsaid),
    }


def visits(rng: np.random.Generator, people: int = 2600) -> Table:
    """Each person has 1 + Poisson(1.4) visits, at most 9; the hours of one person's visits share a
    factor, so that they are alike.
    """
    number = np.minimum(1 + rng.poisson(1.4, people), 9)
    person = np.repeat(np.arange(1001, 1001 + people), number)
    rows = len(person)
    ward = rng.choice(WARDS, rows, p=WARD_SHARES)
    alike = np.repeat(rng.normal(0, 0.45, people), number)
    usual = np.array([WARD_HOURS[one] for one in ward])
    hours = np.round(usual * np.exp(alike + rng.normal(0, 0.5, rows) - 0.23), 1)
    days = np.sort(rng.integers(0, 366, rows))
    order = np.argsort(rng.random(rows))  # people do not stand beside themselves
    return {
        "person": person[order].tolist(),
        "date": [(date(2024, 1, 1) + timedelta(days=int(day))).isoformat() for day in days],
        "ward": ward[order].tolist(),
        "urgent": ["yes" if yes else "no" for yes in rng.random(rows) < 0.41],
        "hours": _with_gaps(hours[order], rng.random(rows) < 0.02),
    }


def _with_gaps(values: np.ndarray, gaps: np.ndarray) -> list[object]:
    return ["" if gap else value for value, gap in zip(values.tolist(), gaps, strict=True)]


def write(name: str, table: Table) -> None:
    """One compressed CSV file, without a time in it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    path = TARGET / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(text.getvalue().encode("utf-8"), 9, mtime=0))
    print(path.name, len(next(iter(table.values()))), "rows,", path.stat().st_size, "bytes")


if __name__ == "__main__":
    write("census", census(np.random.default_rng([SEED, 1])))
    write("visits", visits(np.random.default_rng([SEED, 2])))
