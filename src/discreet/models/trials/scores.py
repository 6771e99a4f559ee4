"""How good a fit is on the rows of a session: one noisy sum, in [0, 1] a row, the more the better.

    accuracy        1 where the decision "η > 0" is the yes/no response
    log-loss        1 − log(1 + e^(−margin))/CAP, cut to 0 … 1; the margin is η for yes, −η for no
    squared error   1 − ((y − η)/h)², cut to 0 … 1; h is a quarter of the response's declared range

Right decisions are counted as dp.accuracy counts them; the others are tables of whole numbers
(specs/estimating/scores.py), in LEVELS steps. A score is about the rows that the fit was made from:
it says which settings fit better, and not how well the fit would do on other rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet import plain
from discreet.accounting.calibration.additive import gaussian_noise, geometric_noise
from discreet.accounting.guarantees import Guarantee, PureDP, spend_mu_squared
from discreet.errors import InvalidParameter, shown
from discreet.exact import rational
from discreet.inference.regression.fit import RegressionResult
from discreet.inference.results.decode import additive
from discreet.inference.results.laws import Array
from discreet.models.learners.accuracy import linear_classifier
from discreet.models.points import point_at
from discreet.specs.estimating.families import Huber, Logistic, Poisson
from discreet.specs.estimating.model import Model, Point
from discreet.specs.estimating.networks import Agreement
from discreet.specs.estimating.scores import PredictionScore
from discreet.specs.estimating.tables import GRID
from discreet.specs.estimating.tabulated import TabulatedMean
from discreet.specs.queries.keys import may_leave_out
from discreet.trusted.release import Description, PublicFacts, Question, Release

SCORES = ("accuracy", "log-loss", "squared error")
LEVELS = 256
CAP = 2.0  # of a log-loss: a margin of −1.85 or less counts as nothing
HALF_RANGES = 0.5  # of the response: a residual beyond it counts as nothing
YES_BITS = 50  # 2**50 is beyond every η of a yes/no response
LONGEST_ETA = 2.0**48


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Edges of y·2**e − η and the weight of each cell between them."""

    edges: tuple[int, ...]
    weights: tuple[int, ...]


def require_score(score: object) -> str:
    """The name of a score, as exact text that hidden runs compare; anything else is refused."""
    if isinstance(score, str) and (name := plain.text(score, "score=")) in SCORES:
        return name
    raise InvalidParameter(
        "score=",
        f"{shown(score)} is no score",
        "runs are compared by a sum over rows whose sensitivity is known",
        f"use one of {', '.join(map(repr, SCORES))}",
    )


def require_response(model: Model, score: str) -> None:
    """Refuses a score that the response of a model does not have."""
    yes_no = model.response is not None and model.response.level is not None
    if yes_no == (score == "squared error"):
        raise InvalidParameter(
            "score=",
            f"{score!r} of a response that is " + ("yes/no" if yes_no else "a number"),
            "decisions and their logarithms are of yes/no responses, squares are of numbers",
            "use " + ("'accuracy' or 'log-loss'" if yes_no else "'squared error'"),
        )


def score_question(
    public: PublicFacts, fit: RegressionResult, score: str, spend: Guarantee
) -> Question:
    """The noisy score of a fit, at its released coefficients."""
    model, beta = _predictor(fit)
    require_response(model, score)
    query = score_query(public, model, beta, score)
    l1, l2 = query.sensitivity(public.neighbors)
    mechanism = (
        geometric_noise(l1, rational(spend.epsilon, "epsilon"))
        if isinstance(spend, PureDP)
        else gaussian_noise(l2, spend_mu_squared(spend))
    )
    return Question(Description("score", score), query, mechanism, spend)


def score_query(
    public: PublicFacts, model: Model, beta: Array, score: str
) -> PredictionScore | Agreement:
    """The sum that a score is, for the coefficients of a model's columns."""
    optional = any(may_leave_out(key, public.schema) for key in model.keys)
    if score == "accuracy":
        return Agreement(*linear_classifier(model, beta), optional, both=False)
    if score == "squared error":
        point, table = point_at(beta, HALF_RANGES, Huber(4.0)), _squares()
    else:
        point, unit = _beside_yes(point_at(beta, 1.0, Logistic()))
        table = _logarithms(unit)
    return PredictionScore(model, point, table.edges, table.weights, optional)


def score_of(release: Release, rows: float) -> tuple[float, float]:
    """A released score a row, between 0 and 1 but for its noise, and the standard deviation of
    that noise.
    """
    mechanism = additive(release.mechanism)
    size = (1 if release.description.column == "accuracy" else LEVELS) * max(rows, 1.0)
    noise = math.sqrt(mechanism.variance)
    return float(release.integers[0]) * float(mechanism.step) / size, noise / size


def _predictor(fit: RegressionResult) -> tuple[Model, Array]:
    """The model of a fit as its last release had it, and the coefficients of its columns."""
    if not isinstance(fit, RegressionResult) or isinstance(fit.family, (Poisson, TabulatedMean)):
        raise InvalidParameter(
            "a trial",
            "its fit has no linear predictor of its response",
            "scores compare the response with one",
            "try dp.logistic for yes/no, dp.ols or dp.robust for numbers",
        )
    model: Model = fit._last_gradient.query.model  # type: ignore[attr-defined]
    beta: Array = fit.beta if hasattr(fit, "beta") else fit.fitted.beta  # without a covariance too
    return model, np.append(beta, np.zeros(len(model.columns) - len(beta)))


def _beside_yes(point: Point) -> tuple[Point, float]:
    """Coefficients two bits shorter, so that 2**YES_BITS − η is exact beside η; and what η = 1 is
    then.
    """
    short = tuple((entry + 2) >> 2 for entry in point.beta)
    return Point(short, YES_BITS, 1.0), 2.0 ** (point.eta_bits - 2)


def _logarithms(unit: float) -> ScoreTable:
    """A step for each level that the log-loss can pass: the loss is at most CAP·k/LEVELS where the
    margin is at least −log(e^(CAP·k/LEVELS) − 1), in whole numbers of `unit`.

    Levels that no η of the point can reach have no edge, and count as passed or as never passed.
    """
    margins = -np.log(np.expm1(CAP * np.arange(LEVELS, 0, -1) / LEVELS)) * unit  # rising
    always = int((margins <= -LONGEST_ETA).sum())
    places = [round(margin) for margin in margins if abs(margin) < LONGEST_ETA]
    rising = range(always, always + len(places))
    # the margin is −η for no, and falls where 2**e − η rises for yes
    falling = [(1 << YES_BITS) - place + 1 for place in reversed(places)]
    return ScoreTable((*places, *falling), (*rising, always + len(places), *reversed(rising)))


def _squares() -> ScoreTable:
    """A step for each level that the squared residual can pass, on both sides; HALF_RANGES are
    GRID whole numbers.
    """
    ends = [round(math.sqrt(level / LEVELS) * GRID) for level in range(1, LEVELS + 1)]
    rising = range(LEVELS)
    return ScoreTable(
        (*(1 - end for end in reversed(ends)), *ends), (*rising, LEVELS, *reversed(rising))
    )
