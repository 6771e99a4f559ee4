"""Gaussian DP from its definition: integrals over normal densities, inverted by halving."""

from __future__ import annotations

from mpmath import cosh, erfc, exp, inf, log, mpf, ncdf, npdf, quad, sqrt, tanh

from tests.reference.stored import crossing, stored
from tests.reference.values import ANALYTIC_SIGMA, GDP_DELTA, GDP_EPSILON, TRADE_OFF

HERE = "tests/reference/values.py"
APPROXIMATIONS = "tests/accounting/test_approximations.py"
TRADE_OFFS = "tests/accounting/test_tradeoff.py"
MNIST = "0.004266666666666667"  # 256 rows of 60 000
LEVELS = ("0.01", "0.05", "0.1", "0.5")


def normal_probability(z: str) -> mpf:
    """Φ(z) = ∫ φ from −∞ to z."""
    return quad(npdf, [-inf, -4, mpf(z)])


def normal_quantile(probability: str | mpf) -> mpf:
    """The z with Φ(z) = probability."""
    return crossing(lambda z: mpf(probability) - ncdf(z), -40, 40)


def gdp_delta(mu: str | mpf, epsilon: str | mpf) -> mpf:
    """δ_μ(ε) = ∫ (φ(x − μ) − e^ε φ(x))₊ dx, which is positive from x = ε/μ + μ/2 on
    (reference.md A1, A7).
    """
    shift, growth = mpf(mu), exp(mpf(epsilon))
    start = mpf(epsilon) / shift + shift / 2
    ends = [start, *(start + mpf(k) / (1 + start) for k in (1, 3, 8, 20)), inf]
    size = npdf(start - shift)  # quad stops at an absolute error
    return size * quad(lambda x: (npdf(x - shift) - growth * npdf(x)) / size, ends)


def gdp_delta_closed(mu: str | mpf, epsilon: str | mpf) -> mpf:
    """δ_μ(ε) = Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2) (reference.md A7), to be inverted."""
    m, e = mpf(mu), mpf(epsilon)
    return (erfc((e / m - m / 2) / sqrt(2)) - exp(e) * erfc((e / m + m / 2) / sqrt(2))) / 2


def gdp_epsilon(mu: str | mpf, delta: str) -> mpf:
    """The least ε with δ_μ(ε) ≤ δ (reference.md A7)."""
    return crossing(lambda e: gdp_delta_closed(mu, e) - mpf(delta), 0, 100)


def analytic_sigma(epsilon: str, delta: str) -> mpf:
    """The least σ for sensitivity 1 with δ_(1/σ)(ε) ≤ δ (reference.md B5)."""
    return crossing(lambda s: gdp_delta_closed(1 / s, epsilon) - mpf(delta), 0.01, 100)


def classical_sigma(epsilon: str, delta: str) -> mpf:
    """√(2 ln(1.25/δ))/ε (reference.md B4)."""
    return sqrt(2 * log(mpf("1.25") / mpf(delta))) / mpf(epsilon)


def gdp_trade_off(mu: str, alpha: str) -> mpf:
    """G_μ(α): the threshold t with P(N(0, 1) > t) = α is missed with probability P(N(μ, 1) ≤ t)
    (reference.md A6).
    """
    threshold = -normal_quantile(alpha)
    return ncdf(threshold - mpf(mu))


def mu_of_pure(epsilon: str) -> mpf:
    """The μ whose curve meets the diagonal where that of ε-DP does, at 1/(1 + e^ε)
    (reference.md A6).
    """
    return -2 * normal_quantile(1 / (1 + exp(mpf(epsilon))))


def limit_mu_of_pure(epsilon: mpf, parts: int) -> mpf:
    """2Σkl/√(Σκ₂ − Σkl²), with kl = ε·tanh(ε/2) and κ₂ − kl² = ε²/cosh²(ε/2) (reference.md C6)."""
    kl, variance = epsilon * tanh(epsilon / 2), (epsilon / cosh(epsilon / 2)) ** 2
    return 2 * parts * kl / sqrt(parts * variance)


def limit_mu_of_poisson(sigma: str, rate: str, steps: int) -> mpf:
    """γ√(T(e^(1/σ²) − 1)) (reference.md E8)."""
    return mpf(rate) * sqrt(steps * (exp(1 / mpf(sigma) ** 2) - 1))


def ten_limit_mu() -> mpf:
    """The limit of ten (1/√10)-DP releases."""
    return limit_mu_of_pure(1 / sqrt(10), 10)


def limit_epsilon(sigma: str, rate: str, steps: int, delta: str) -> mpf:
    """ε at δ of the Gaussian limit of Poisson-sampled steps (reference.md E8)."""
    return gdp_epsilon(limit_mu_of_poisson(sigma, rate, steps), delta)


def sigma_of_steps(epsilon: str, delta: str, steps: int, sensitivity: str) -> mpf:
    """σ for T Gaussian answers, Δ₂√T times that of one (reference.md B5)."""
    return mpf(sensitivity) * sqrt(steps) * analytic_sigma(epsilon, delta)


def upper_quartile() -> mpf:
    """Φ⁻¹(3/4)."""
    return normal_quantile("0.75")


VALUES = [
    *(stored(delta, HERE, gdp_delta, mu, epsilon) for mu, epsilon, delta in GDP_DELTA),
    *(stored(epsilon, HERE, gdp_epsilon, mu, delta) for mu, delta, epsilon in GDP_EPSILON),
    *(stored(sigma, HERE, analytic_sigma, epsilon, d) for epsilon, d, sigma in ANALYTIC_SIGMA),
    *(
        stored(value, f"{HERE} {TRADE_OFFS}", gdp_trade_off, str(mu), alpha)
        for mu, values in TRADE_OFF.items()
        for alpha, value in zip(LEVELS, values, strict=True)
    ),
    stored(0.6830439672274812, APPROXIMATIONS, analytic_sigma, "10", "1e-10"),
    stored(0.8738651018065697, "tests/accounting/test_explain.py", gdp_trade_off, "0.5", "0.05"),
    stored(
        37.306316348159414, "tests/accounting/test_plan.py", sigma_of_steps, "1", "1e-5", 100, "1"
    ),
    stored(
        0.003730631634815942,
        "tests/accounting/test_subsampling.py",
        sigma_of_steps,
        "1",
        "1e-5",
        100,
        "1e-4",
    ),
    stored(4.377178095681227, "tests/accounting/test_pld_exact.py", gdp_epsilon, "1", "1e-5"),
    stored(0.6238925920985082, "tests/accounting/test_guarantees.py", mu_of_pure, "0.5"),
    stored(0.0068295949831145755, "tests/reference/test_quantile_values.py", gdp_delta, "0.5", "1"),
    stored(48.448052626053894, APPROXIMATIONS, classical_sigma, "0.1", "1e-5"),
    stored(4.844805262605389, APPROXIMATIONS, classical_sigma, "1", "1e-5"),
    stored(3.0531806608245913, APPROXIMATIONS, classical_sigma, "2", "1e-8"),
    stored(0.6818943390475487, APPROXIMATIONS, classical_sigma, "10", "1e-10"),
    stored(0.22728628834317083, APPROXIMATIONS, limit_mu_of_poisson, "1.3", MNIST, 3516),
    stored(1.1339391882883285, APPROXIMATIONS, limit_mu_of_poisson, "0.7", MNIST, 10547),
    stored(0.834511645328404, APPROXIMATIONS, limit_epsilon, "1.3", MNIST, 3516, "1e-5"),
    stored(5.066191005220677, APPROXIMATIONS, limit_epsilon, "0.7", MNIST, 10547, "1e-5"),
    stored(1.0041718781012752, f"{APPROXIMATIONS} {TRADE_OFFS}", ten_limit_mu),
    stored(0.15865525393145707, APPROXIMATIONS, normal_probability, "-1"),
    stored(0.9331927987311419, APPROXIMATIONS, normal_probability, "1.5"),
    stored(0.3085375387259869, APPROXIMATIONS, normal_probability, "-0.5"),
    stored(
        0.6744897501960817,
        "tests/estimators/test_quantiles.py tests/local/test_local_means.py",
        upper_quartile,
    ),
]
