"""Claim: the noise in a release is the noise that was charged,
       and an audit of many releases finds no more than was promised.

The expected spreads are written down here from the theorems (sensitivity over spend), not read from
the mechanism. Each test that accepts the true law is shown to reject it at 0.8 and 1.25 times its
spread; the noise of both is seeded, for 4096 draws of Laplace's law would be mistaken for wider or
narrower ones once in 2·10⁷ runs.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

import discreet as dp
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.estimators.questions import count_question
from discreet.sensitivity import L1, L2
from discreet.specs.mechanisms.additive import GaussianNoise
from discreet.testing import seeded_session
from discreet.trusted.release import Question
from discreet.trusted.session import Session

ALPHA = 1e-10  # of one test below; all of them together stay below 1e-8
# in spreads; each is tested at ALPHA / 8, both tails and the signs too
THRESHOLDS = (0.5, 1.2, 2.5)


def below(law, threshold, spread):
    """P(|noise| < threshold), threshold and spread in grid steps: the laws of
    specs/mechanisms/additive.py, rounded to a grid.
    """
    edge = math.ceil(threshold) - 0.5
    if law == "gaussian":
        return 1 - 2 * stats.norm.sf(edge / spread)
    if law == "laplace":
        return -math.expm1(-edge / spread)
    # geometric
    return 1 - 2 * math.exp(-math.ceil(threshold) / spread) / (1 + math.exp(-1 / spread))


def fits(noise, law, spread):
    """Exact binomial tests of P(|noise| < t) at several t, and of the sign;
    `noise` in grid steps.
    """
    level = ALPHA / 8
    checks = [
        (
            np.count_nonzero(np.abs(noise) < share * spread),
            len(noise),
            below(law, share * spread, spread),
        )
        for share in THRESHOLDS
    ]
    checks.append((np.count_nonzero(noise > 0), np.count_nonzero(noise), 0.5))
    return all(
        stats.binom.cdf(seen, trials, chance) > level
        and stats.binom.sf(seen - 1, trials, chance) > level
        for seen, trials, chance in checks
    )


def gaussian_mu(epsilon, delta):
    """The μ with δ_μ(ε) = δ, in plain floats."""

    def excess(mu):
        return (
            stats.norm.cdf(-epsilon / mu + mu / 2)
            - math.exp(epsilon) * stats.norm.cdf(-epsilon / mu - mu / 2)
            - delta
        )

    return optimize.brentq(excess, 1e-3, 10)


SPENDS = {
    dp.GDP(0.25): 1 / 0.25,
    dp.PureDP(0.25): 1 / 0.25,
    dp.ApproxDP(0.5, 1e-5): 1 / gaussian_mu(0.5, 1e-5),
}
RELATIONS = [
    dp.Replace(),
    dp.AddRemove(),
    dp.Replace(unit="id", max_rows=4),
    dp.AddRemove(unit="id", max_rows=4),
]


def factor(neighbors, spend):
    """How far one unit moves a histogram: 2k or √2·k under Replace, k under AddRemove."""
    rows = neighbors.max_rows or 1
    return rows * (
        (2 if isinstance(spend, dp.PureDP) else math.sqrt(2))
        if isinstance(neighbors, dp.Replace)
        else 1
    )


def open_session(columns, schema, neighbors):
    """A session whose noise is a function of the relation."""
    ledger = dp.Ledger.open(dp.ApproxDP(epsilon=1000, delta=0.1), pure=500)
    return seeded_session(
        dp.from_arrays(columns, schema=schema, neighbors=neighbors), ledger, str(neighbors)
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
@pytest.mark.parametrize("spend", SPENDS, ids=str)
def test_histogram_noise_is_what_was_charged(neighbors, spend):
    schema = {"x": dp.Real(0, 4096, missing=2048)}
    session = open_session({"x": [0.5, 0.5, 4095.5], "id": ["u", "v", "w"]}, schema, neighbors)
    release = dp.histogram(session, "x", bins=4096, spend=spend).release
    step = 1 << release.mechanism.refinement
    law = "geometric" if isinstance(spend, dp.PureDP) else "gaussian"
    rows = neighbors.max_rows or 1
    # of units, the spread of their counts beside (specs/queries/unit_sums.py): A·k a row
    worth, coordinates = (5 * rows, 3) if rows > 1 and law == "gaussian" else (1, 1)
    statistic = np.zeros((coordinates, 4096), dtype=np.int64)
    statistic[0, 0], statistic[0, -1] = 2 * worth, worth
    if coordinates > 1:
        statistic[1, 0], statistic[1, -1] = 7 * 2 * (rows - 1), 7 * (rows - 1)
    noise = np.array(release.integers, dtype=np.int64) - statistic.reshape(-1) * step
    spread = factor(neighbors, spend) * SPENDS[spend] * step * worth
    assert fits(noise, law, spread)
    assert not fits(noise, law, 0.8 * spread)
    assert not fits(noise, law, 1.25 * spread)
    spent = session.ledger.spent().exact()
    charged = spent.epsilon if law == "geometric" else spent.mu_squared
    exact = Fraction(repr(1 / SPENDS[spend])) ** (1 if law == "geometric" else 2)
    assert float(charged) == pytest.approx(float(exact), rel=1e-6, abs=1e-12)
    if not isinstance(spend, dp.ApproxDP):
        # a debit rounds up to 1e-12, a spread up to a float
        assert 0 <= exact - charged + Fraction(2, 10**12) <= Fraction(3, 10**12)


@pytest.mark.parametrize(
    ("neighbors", "spend", "reach"),
    [
        (dp.Replace(), dp.PureDP(0.5), 28),
        (dp.AddRemove(), dp.PureDP(0.5), 14),
        (dp.Replace(), dp.GDP(0.5), 2),
        (dp.AddRemove(), dp.GDP(0.5), math.sqrt(5)),
        (dp.Replace(unit="id", max_rows=3), dp.PureDP(0.5), 84),
        # units: six coordinates, times k²
        (dp.AddRemove(unit="id", max_rows=3), dp.GDP(0.5), 9 * math.sqrt(45)),
    ],
    ids=str,
)
def test_noise_of_a_table_of_means_is_what_was_charged(neighbors, spend, reach):
    """No rows at all: the release is noise alone, in all coordinates of 1365 cells (reach:
    specs/queries/moments.py or unit_sums.py, times h²).
    """
    schema = {"x": dp.Real(-1, 1), "g": dp.Category(list(range(1365)))}
    session = open_session({"x": [], "g": [], "id": []}, schema, neighbors)
    release = dp.table(session, "x", by="g", spend=spend).release
    noise = np.array(release.integers, dtype=np.int64)
    law = "gaussian" if isinstance(spend, dp.GDP) else "laplace"
    spread = reach * 32767**2 / 0.5 * (1 << release.mechanism.refinement)
    for coordinate in np.split(noise, len(noise) // 1365):
        assert fits(coordinate, law, spread)
    assert not fits(noise, law, 0.8 * spread)
    assert not fits(noise, law, 1.25 * spread)


def test_two_sessions_and_two_releases_never_share_noise():
    schema = {"x": dp.Real(0, 4096, missing=2048)}
    sessions = [
        dp.from_arrays({"x": []}, schema=schema, neighbors=dp.AddRemove()).open(budget=dp.GDP(1))
        for _ in range(2)
    ]
    releases = [
        dp.histogram(session, "x", bins=4096, spend=dp.GDP(0.01)).release.integers
        for session in sessions * 2
    ]
    for place, one in enumerate(releases):
        for other in releases[place + 1 :]:
            assert np.count_nonzero(np.equal(one, other)) < 40  # chance alone gives about 1
            # 7 standard deviations of independent noise
            assert abs(np.corrcoef(one, other)[0, 1]) < 0.11


# -- audit -----------------------------------------------------------------------------------------

TRIALS = 2500
CONFIDENCE = 1e-9


def answers(rows, question):
    """Many independent releases of one count, through one session."""
    data = dp.from_arrays(
        {"x": [1.0] * rows}, schema={"x": dp.Real(0, 1)}, neighbors=dp.AddRemove()
    )
    session = data.open(budget=dp.ApproxDP(epsilon=1e6, delta=0.5), pure=5e5)
    asked = question(session.public)
    return np.array([session.release(asked).integers[0] for _ in range(TRIALS)]) / (
        1 << asked.mechanism.refinement
    )


def separation(question, middle=10.5):
    """Clopper–Pearson limits of P(answer > middle) with 11 rows (lower) and with 10 (upper)."""
    many, few = (int(np.count_nonzero(answers(rows, question) > middle)) for rows in (11, 10))
    return stats.beta.ppf(CONFIDENCE / 2, many, TRIALS - many + 1), stats.beta.isf(
        CONFIDENCE / 2, few + 1, TRIALS - few
    )


def epsilon_seen(question):
    lower, upper = separation(question)
    return math.log(lower / upper)


def mu_seen(question):
    lower, upper = separation(question)
    return stats.norm.ppf(lower) - stats.norm.ppf(upper)


def halved(public, spend):
    """A count whose mechanism believes in half its sensitivity."""
    right = count_question(public, spend=spend)
    noise = (
        gaussian_noise(L2(Fraction(1, 4)), Fraction(spend.mu) ** 2)
        if isinstance(right.mechanism, GaussianNoise)
        else geometric_noise(L1(Fraction(1, 2)), Fraction(spend.epsilon))
    )
    return Question(right.description, right.query, noise, spend)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spend", "promised", "seen"),
    [(dp.PureDP(1.5), 1.5, epsilon_seen), (dp.GDP(1.5), 1.5, mu_seen)],
    ids=["pure", "gaussian"],
)
def test_an_audit_finds_no_more_than_promised_and_catches_half_a_sensitivity(
    spend, promised, seen, monkeypatch
):
    found = seen(lambda public: count_question(public, spend=spend))
    assert 0.6 * promised < found <= promised  # the audit is sharp, and finds nothing
    # which refuses the broken mechanism
    monkeypatch.setattr(Session, "_checked", lambda self, question: question)
    assert seen(lambda public: halved(public, spend)) > promised
