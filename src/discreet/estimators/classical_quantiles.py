"""Questions about one quantile, by the classical mechanisms that look at the data before they
choose the noise.

    METHODS[name](public, column, q, spend=…, delta=…, where=…, …) → Question

    exponential  every relation, filters; no δ                     rank loss on the grid
                                                                   (reference.md B6)
    inverse      row-level Replace without a filter; no δ          path length (B10)
    smooth       the same; δ only for law="gaussian" or "laplace"  noise in proportion to the smooth
                                                                   sensitivity (B7, B8)
    ptr          the same; needs δ; may answer ⊥                   propose-test-release with the
                                                                   corrected distance (B9)

Constants are the best that the theorems of trusted/extensions/data_dependent/loss.py allow for the
spend: shares of it are chosen so that normal values with a standard deviation of an eighth of the
declared range would get the least expected error. That is a public choice, and the data need not be
like that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from discreet.accounting.calibration.additive import bounded_range_within, pure_within
from discreet.accounting.calibration.thresholds import proposal_threshold
from discreet.accounting.gaussian import mu_for_approx
from discreet.accounting.guarantees import ApproxDP, Guarantee, PureDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.asking.cells import Where, origin_of, rows_asked
from discreet.asking.noise_choice import require_spend
from discreet.errors import InvalidParameter, NoTheorem, shown
from discreet.exact import decimal_text, float_up, rational
from discreet.inference.quantiles.classical_quantiles import NormalValues, expected_error
from discreet.sensitivity import Rows
from discreet.specs.mechanisms.additive import SMALLEST_STEPS
from discreet.specs.mechanisms.mechanism import Mechanism
from discreet.specs.mechanisms.quantiles import (
    LARGEST_DENOMINATOR,
    ProposeTestRelease,
    QuantileChoice,
    SmoothNoise,
)
from discreet.specs.queries.histograms import GridCounts
from discreet.specs.queries.keys import filtered
from discreet.specs.queries.sums import number_factor
from discreet.trusted.extensions.data_dependent.loss import cauchy_slopes, student_slopes
from discreet.trusted.losses.pricing import spend_box, within_spend
from discreet.trusted.release import Description, PublicFacts, Question

ASSUMED_SPREAD = Fraction(1, 8)  # of the declared range: what the default constants are best for
DEFAULT_DEGREES = (1, 2, 3)
# P(⊥) that the default η aims at, for values spread evenly over the declared range
BOTTOM_SHARE = 0.01
_SHARES = tuple(part / 16 for part in range(1, 16))
_SIGMAS = tuple(Fraction(part, 8) for part in range(1, 9))


def exponential_question(
    public: PublicFacts,
    column: str,
    q: Fraction,
    *,
    spend: Guarantee,
    where: Where | None = None,
    delta: object = None,
) -> Question:
    """The exponential mechanism; it needs no δ,
    and an (ε, δ) spend keeps all of its δ for the price.
    """
    asked, query, a, b = _asked(public, column, q, where)
    rows = query.sensitivity(public.neighbors)
    epsilon = bounded_range_within(require_spend(spend))
    return Question(
        asked,
        query,
        QuantileChoice(
            rows,
            a,
            b,
            epsilon / (2 * QuantileChoice(rows, a, b, Fraction(1), "exponential").largest_change),
            "exponential",
        ),
        spend,
    )


def inverse_question(
    public: PublicFacts,
    column: str,
    q: Fraction,
    *,
    spend: Guarantee,
    where: Where | None = None,
    delta: object = None,
) -> Question:
    """The inverse sensitivity mechanism."""
    asked, query, a, b = _asked(public, column, q, where)
    rows = _replaced(query, public, "inverse")
    return Question(
        asked,
        query,
        QuantileChoice(rows, a, b, bounded_range_within(require_spend(spend)) / 2, "inverse"),
        spend,
    )


def smooth_question(
    public: PublicFacts,
    column: str,
    q: Fraction,
    *,
    spend: Guarantee,
    delta: object = None,
    where: Where | None = None,
    law: str | None = None,
    shape: object = None,
) -> Question:
    """Noise in proportion to the smooth sensitivity.

    `law` is "student" (`shape` degrees of freedom, 1 … 9), "cauchy" (`shape` 2 or 4), "lln"
    (`shape` σ), "laplace" or "gaussian". By default it is whichever of Student's laws with 1, 2 or
    3 degrees and, where the spend is not pure, lln, has the least expected error for the assumed
    values.
    """
    asked, query, a, b = _asked(public, column, q, where)
    rows = _replaced(query, public, "smooth")
    require_spend(spend)
    if law is not None and (not isinstance(law, str) or law not in _CANDIDATES):
        raise InvalidParameter(
            "law=",
            f"{shown(law)} is not known",
            "the law of the noise decides what is promised",
            f"pass one of {', '.join(_CANDIDATES)}, or leave it out",
        )
    failure = (
        needed_delta(spend, delta, f'law="{law}"')
        if law in ("laplace", "gaussian")
        else Fraction(0)
    )
    if law is None:
        wanted: list[tuple[str, object]] = [("student", degrees) for degrees in DEFAULT_DEGREES] + (
            [] if isinstance(spend, PureDP) else [("lln", None)]
        )
    else:
        wanted = [(law, shape)]
    model, choices = default_model(public, query), []
    for name, given in wanted:
        for form, charged, beta, multiplier in _CANDIDATES[name](spend, failure, given):
            if beta > 2.0**-30 and 0 < multiplier < 2.0**39:
                choices.append(
                    SmoothNoise(
                        rows, a, b, name, form, charged, Fraction(beta), Fraction(multiplier)
                    )
                )
    if not choices:
        raise InvalidParameter(
            "spend=",
            "it is too small for smooth sensitivity",
            "the noise would be 2**40 times the sensitivity",
            "spend more, or use the exponential method",
        )
    best = min(choices, key=lambda noise: expected_error(noise, model))
    return Question(asked, query, _within(best, spend, failure), spend, failure)


def ptr_question(
    public: PublicFacts,
    column: str,
    q: Fraction,
    *,
    spend: Guarantee,
    delta: object = None,
    where: Where | None = None,
    eta: object = None,
) -> Question:
    """Propose-test-release.

    `eta`, in the units of the column, is how far one row is proposed to move the quantile at most.

    By default it is the least for which values spread evenly over the declared range pass the test
    but for one time in a hundred: for all that are denser than that about the quantile the test is
    easier still. ε is split evenly, as the error goes like 1/(ε₁·ε₂); with eta=0 the quantile
    itself is released if it is stable, and all of ε goes to the test.
    """
    asked, query, a, b = _asked(public, column, q, where)
    rows = _replaced(query, public, "ptr")
    failure = needed_delta(require_spend(spend), delta, "propose-test-release")
    given = None if eta is None else _eta_cells(eta, query)
    epsilon = pure_within(spend, failure, times=1 if given == 0 else 2)
    spread = Fraction(float_up(1 / epsilon))
    threshold = proposal_threshold(1 / spread, failure)
    cells = default_eta(query, public, epsilon, threshold) if given is None else given
    noise = Fraction(float_up(cells / epsilon))
    refinement = (
        max(0, math.ceil(math.log2(SMALLEST_STEPS / noise))) if 0 < noise < SMALLEST_STEPS else 0
    )
    return Question(
        asked,
        query,
        ProposeTestRelease(rows, a, b, cells, spread, threshold, noise, refinement),
        spend,
        failure,
    )


METHODS: dict[str, Callable[..., Question]] = {
    "exponential": exponential_question,
    "inverse": inverse_question,
    "smooth": smooth_question,
    "ptr": ptr_question,
}


def needed_delta(spend: Guarantee, delta: object, what: str) -> Fraction:
    """The δ₀ of a mechanism that fails with a small probability:
    given, or a tenth of the δ of an (ε, δ) spend.
    """
    if delta is None:
        if isinstance(spend, ApproxDP):
            return rational(spend.delta, "delta") / 10
        raise InvalidParameter(
            "delta=",
            f"{what} needs one, and {spend} has none",
            "it fails to protect with this probability",
            "pass for example delta=1e-6, far below one over the number of rows",
        )
    number = rational(delta, "delta=")
    if not 0 < number < 1:
        raise InvalidParameter(
            "delta=",
            f"{decimal_text(number)} is not between 0 and 1",
            "it is a probability of failure",
            "pass for example delta=1e-6",
        )
    return number


def quantile_parts(q: object) -> tuple[int, int]:
    """(a, b) of q = a/b in lowest terms, 0 ≤ q ≤ 1."""
    share = rational(q, "q")
    if not 0 <= share <= 1 or share.denominator > LARGEST_DENOMINATOR:
        raise InvalidParameter(
            "q",
            f"{decimal_text(share)} is no quantile",
            "it is the share of rows at or below the answer, as a fraction with a denominator up "
            "to 10**6",
            "pass a number between 0 and 1, such as 0.5 or Fraction(1, 3)",
        )
    return share.numerator, share.denominator


def default_model(public: PublicFacts, query: GridCounts) -> NormalValues:
    """What the default constants are best for: as many rows as the data have,
    and an eighth of the range as standard deviation.
    """
    return NormalValues(
        float(max(public.rows or 0, 1)), max(float(ASSUMED_SPREAD * query.size), 1.0), query.size
    )


def compared(questions: dict[str, Question], model: NormalValues) -> dict[str, float]:
    """Expected absolute errors of several questions for normal values, in the units of the column;
    what `preview` compares.
    """
    found = {}
    for name, question in questions.items():
        step = question.query.step  # type: ignore[attr-defined]
        found[name] = expected_error(question.mechanism, model) * step
    return found


def default_eta(query: GridCounts, public: PublicFacts, epsilon: Fraction, threshold: int) -> int:
    """The η of `ptr_question` in cells: γ is about λ ± √λ for evenly spread values, λ of them
    within η; the test's noise may take ln(½/0.005)/ε₁ away.
    """
    needed = threshold + math.log(1 / BOTTOM_SHARE) / float(epsilon)
    values = ((3 + math.sqrt(9 + 4 * needed)) / 2) ** 2
    return min(query.size - 1, math.ceil(values * query.size / max(public.rows or 0, 1)))


def _asked(
    public: PublicFacts, column: str, q: Fraction, where: Where | None
) -> tuple[Description, GridCounts, int, int]:
    a, b = quantile_parts(q)
    cells = rows_asked(public.schema, where, column)
    query = GridCounts(
        cells.keys, number_factor(public.schema, column, "a quantile"), cells.optional
    )
    return (
        Description(
            "median" if (a, b) == (1, 2) else "quantile",
            column,
            where=cells.where,
            origin=origin_of(public.schema, column),
        ),
        query,
        a,
        b,
    )


def _left_out(query: GridCounts) -> str:
    if not query.optional:
        return ""
    return ", with where=" if filtered(query.keys) else ", rows without a value are left out"


def _replaced(query: GridCounts, public: PublicFacts, method: str) -> Rows:
    rows = query.sensitivity(public.neighbors)
    if rows.change != "replaced":
        raise NoTheorem(
            f'method="{method}"',
            f"the number of rows that count is private ({public.neighbors}{_left_out(query)})",
            "its proof follows the order statistics of a fixed number of rows",
            'use method="exponential", which works for every relation and filter, or declare '
            "missing= for the column where rows without a value are the reason",
        )
    return rows


def _eta_cells(eta: object, query: GridCounts) -> int:
    size = rational(eta, "eta=")
    if size < 0:
        raise InvalidParameter(
            "eta=",
            f"{decimal_text(size)} is negative",
            "it bounds how far one row may move the quantile",
            "pass a number from 0 on, in the units of the column",
        )
    return min(query.size - 1, math.floor(size / Fraction(query.step)))


Candidate = tuple[Fraction, str, float, float]  # shape, charged, β, multiplier


def _tailed(
    slopes: Callable[[int], tuple[Fraction, Fraction]], default: int, allowed: tuple[int, ...]
) -> Callable[[Guarantee, Fraction, object], list[Candidate]]:
    """Cauchy and Student: shares of a pure ε."""

    def candidates(spend: Guarantee, _: Fraction, shape: object) -> list[Candidate]:
        power = rational(default if shape is None else shape, "shape=")
        if power not in allowed:
            raise InvalidParameter(
                "shape=",
                f"{decimal_text(power)} is not one of {', '.join(map(str, allowed))}",
                "the theorem is for these",
                f"leave it out for {default}",
            )
        epsilon, (stretch, shift) = (
            float(pure_within(spend)),
            (float(slope) for slope in slopes(int(power))),
        )
        return [
            (power, "pure", share * epsilon / stretch, shift / ((1 - share) * epsilon))
            for share in _SHARES
        ]

    return candidates


def _laplace(spend: Guarantee, delta: Fraction, _: object) -> list[Candidate]:
    epsilon = pure_within(spend, delta)
    betas = [
        (
            share,
            _greatest(
                lambda beta, stretch=share * float(epsilon): (  # type: ignore[misc]
                    math.log(-math.expm1(-beta)) - (stretch + beta) / math.expm1(beta)
                    <= math.log(delta)
                    and beta <= stretch
                )
            ),
        )
        for share in _SHARES
    ]
    return [(epsilon, "approx", beta, 1 / ((1 - share) * float(epsilon))) for share, beta in betas]


def _gaussian(spend: Guarantee, delta: Fraction, _: object) -> list[Candidate]:
    epsilon = pure_within(spend, delta)
    found: list[Candidate] = []
    for share in _SHARES:
        stretch = share * float(epsilon)
        beta = _greatest(
            lambda beta, stretch=stretch: (  # type: ignore[misc]
                math.erfc(math.sqrt((stretch + beta) / math.expm1(2 * beta))) <= 0.5 * float(delta)
                and beta <= stretch
            )
        )
        found.append(
            (
                epsilon,
                "approx",
                beta,
                1
                / mu_for_approx(
                    (1 - Fraction(share)) * epsilon,
                    Fraction(0.499 * float(delta) * math.exp(-stretch)),
                ),
            )
        )
    return found


def _lln(spend: Guarantee, _: Fraction, shape: object) -> list[Candidate]:
    if isinstance(spend, PureDP):
        raise NoTheorem(
            'law="lln"',
            f"{spend} is pure",
            "Laplace log-normal noise has no pure guarantee",
            "leave law out, or spend dp.GDP(mu), dp.ZCDP(rho) or dp.ApproxDP(epsilon, delta)",
        )
    zcdp = isinstance(spend, ZCDP)
    box = spend_box(spend)
    whole = math.sqrt(float(2 * box.rho if zcdp else box.mu_squared))
    sigmas = _SIGMAS if shape is None else (rational(shape, "shape="),)
    if not all(0 < sigma <= 4 for sigma in sigmas):
        raise InvalidParameter(
            "shape=",
            "σ of the log-normal part lies outside (0, 4]",
            "the noise has no useful constants there",
            "leave it out for the best one",
        )
    found: list[Candidate] = []
    for sigma in sigmas:
        for share in _SHARES:
            rest = (1 - share) * whole
            pure = rest if zcdp else math.log(math.erfc(-rest / 8**0.5) / math.erfc(rest / 8**0.5))
            found.append(
                (
                    sigma,
                    "zcdp" if zcdp else "gdp",
                    share * whole * float(sigma),
                    math.exp(1.5 * float(sigma) ** 2) / pure,
                )
            )
    return found


_CANDIDATES: dict[str, Callable[[Guarantee, Fraction, object], list[Candidate]]] = {
    "student": _tailed(student_slopes, 2, tuple(range(1, 10))),
    "cauchy": _tailed(cauchy_slopes, 2, (2, 4)),
    "lln": _lln,
    "laplace": _laplace,
    "gaussian": _gaussian,
}


def _greatest(holds: Callable[[float], bool]) -> float:
    """The greatest β ≤ 64, to nine digits, at which a condition holds that fails from some β on;
    0 where it never does.
    """
    low, high = 0.0, 64.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle > 0 and holds(middle) else (low, middle)
    return low


def _within(noise: SmoothNoise, spend: Guarantee, delta: Fraction) -> Mechanism:
    """The same noise with constants a little on the safe side,
    so that it fits its spend exactly.
    """
    for slack in (1e-11, 1e-9, 1e-7, 1e-5):
        safe = SmoothNoise(
            noise.sensitivity,
            noise.a,
            noise.b,
            noise.law,
            noise.shape,
            noise.charged,
            Fraction(float(noise.beta) * (1 - slack)),
            Fraction(float(noise.multiplier) * (1 + slack)),
        )
        if within_spend(safe, spend, delta):
            return safe
    raise InvalidParameter(
        "spend=",
        "it is too small for smooth sensitivity with this law",
        "its constants cannot be rounded to a safe side",
        "spend more, or use the exponential method",
    )


__all__ = [
    "METHODS",
    "compared",
    "default_eta",
    "default_model",
    "exponential_question",
    "inverse_question",
    "needed_delta",
    "ptr_question",
    "quantile_parts",
    "smooth_question",
]
