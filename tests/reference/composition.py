"""Composition of (ε, δ) guarantees and local reports, by enumeration of all outcomes."""

from __future__ import annotations

from mpmath import binomial, exp, log, mpf, sqrt

from tests.reference.stored import crossing, stored

HERE = "tests/accounting/test_composition.py"
PLD = "tests/accounting/test_pld_exact.py"
TRADE_OFFS = "tests/accounting/test_tradeoff.py"
LOCAL = "tests/claims/test_local_reports.py"
TEN_FOLD = f"{HERE} {PLD} {TRADE_OFFS} {LOCAL} tests/plots/test_accounting_plots.py"

Pair = list[tuple[mpf, mpf]]  # the outcomes' probabilities under both laws


def responses(epsilon: mpf, times: int) -> Pair:
    """k of `times` randomised responses say yes, where the truth is yes and where it is no: the
    worst pair of as many ε-DP releases (reference.md A5, C2).
    """
    truth = exp(epsilon) / (1 + exp(epsilon))

    def law(yes: mpf, k: int) -> mpf:
        return binomial(times, k) * yes**k * (1 - yes) ** (times - k)

    return [(law(truth, k), law(1 - truth, k)) for k in range(times + 1)]


def approximate(epsilon: mpf, delta: mpf) -> Pair:
    """The worst (ε, δ)-DP pair: tells all with probability δ, else responds (reference.md A5)."""
    high, low = exp(epsilon) / (1 + exp(epsilon)), 1 / (1 + exp(epsilon))
    rest = 1 - delta
    return [(delta, mpf(0)), (rest * high, rest * low), (rest * low, rest * high), (mpf(0), delta)]


def least_delta(pair: Pair, epsilon: mpf) -> mpf:
    """Σ (p − e^ε q)₊ (reference.md A1)."""
    return sum((max(mpf(0), p - exp(epsilon) * q) for p, q in pair), mpf(0))


def least_miss(pair: Pair, alpha: mpf) -> mpf:
    """Neyman and Pearson: outcomes are called q's, in the order of q/p, until the false alarms
    under p are used up; what is left of q is missed (reference.md A6).
    """
    left, missed = alpha, mpf(0)
    for p, q in sorted(pair, key=lambda one: one[0] / one[1] if one[1] else mpf("inf")):
        part = min(mpf(1), left / p) if p else mpf(1)
        left, missed = left - part * p, missed + (1 - part) * q
    return missed


def response_delta(epsilon0: str, times: int, epsilon: str) -> mpf:
    """δ(ε) of so many ε₀-DP releases (reference.md C2)."""
    return least_delta(responses(mpf(epsilon0), times), mpf(epsilon))


def response_epsilon(epsilon0: str, times: int, delta: str) -> mpf:
    """The least ε with δ(ε) ≤ δ of so many ε₀-DP releases (reference.md C2)."""
    pair = responses(mpf(epsilon0), times)
    return crossing(lambda e: least_delta(pair, e) - mpf(delta), 0, times * float(epsilon0))


def ten_responses_miss(alpha: str) -> mpf:
    """The trade-off curve of ten (1/√10)-DP releases at α."""
    return least_miss(responses(1 / sqrt(10), 10), mpf(alpha))


def approximate_miss(epsilon: str, delta: str, alpha: str) -> mpf:
    """f_(ε,δ)(α) (reference.md A5)."""
    return least_miss(approximate(mpf(epsilon), mpf(delta)), mpf(alpha))


def older_advanced(epsilon: mpf, times: int, slack: mpf) -> mpf:
    """kε(e^ε − 1) + ε√(2k ln(1/δ′)) (reference.md C2)."""
    return times * epsilon * (exp(epsilon) - 1) + epsilon * sqrt(2 * times * log(1 / slack))


def lifetime() -> mpf:
    """10⁴ releases at 1/801, δ′ = e^(−32) (reference.md C3)."""
    return older_advanced(mpf(1) / 801, 10**4, exp(mpf(-32)))


def filter_epsilon() -> mpf:
    """Twenty releases at 0.1 and forty at 0.05: each is ε²/2-zCDP (reference.md D5), the ρ add
    (reference.md C7), and ρ + 2√(ρL) converts (reference.md D2).
    """
    rho = (20 * mpf("0.1") ** 2 + 40 * mpf("0.05") ** 2) / 2
    return rho + 2 * sqrt(rho * log(mpf(10) ** 6))


def replaced_delta(epsilon: str, delta: str) -> mpf:
    """(1 + e^ε)δ (reference.md A2)."""
    return (1 + exp(mpf(epsilon))) * mpf(delta)


def two_coins_epsilon() -> mpf:
    """Heads: truth; tails: a second coin answers. The ratio is (¾)/(¼) (reference.md L1)."""
    half = mpf(1) / 2
    return log((half + half * half) / (half * half))


def one_of(answers: int, epsilon: str, true: bool) -> mpf:
    """Weights e^ε for the truth and 1 for each other answer (reference.md L2)."""
    weights = [exp(mpf(epsilon)), *[mpf(1)] * (answers - 1)]
    return (weights[0] if true else weights[1]) / sum(weights)


VALUES = [
    stored(0.009929626917388853, f"{HERE} {PLD}", response_delta, "0.1", 10, "0.5"),
    stored(0.0013613986948316375, f"{HERE} {PLD}", response_delta, "0.1", 100, "3"),
    stored(0.9993709057217587, f"{HERE} {PLD}", response_epsilon, "0.1", 10, "1e-6"),
    stored(0.7504091024765683, TEN_FOLD, ten_responses_miss, "0.05"),
    stored(0.6187528018456876, TEN_FOLD, ten_responses_miss, "0.1"),
    stored(0.16309165466483275, TEN_FOLD, ten_responses_miss, "0.5"),
    stored(0.8540859085770477, f"{HERE} {TRADE_OFFS}", approximate_miss, "1", "0.01", "0.05"),
    stored(1.0143473043148823, HERE, lifetime),
    stored(3.029115547312849, HERE, filter_epsilon),
    stored(3.718281828459045e-06, HERE, replaced_delta, "1", "1e-6"),
    stored(1.0986122886681098, LOCAL, two_coins_epsilon),
    stored(0.40460967519168967, LOCAL, one_of, 5, "1", True),
    stored(0.14884758120207758, LOCAL, one_of, 5, "1", False),
]
