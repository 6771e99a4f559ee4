"""What a regression would give, before anything is spent: the whole procedure on imagined rows, without noise.

The rows are drawn from public facts and the caller's assumptions, never from data: number columns are normal about the middle of their range with a
standard deviation of a quarter of it, levels are equally frequent, columns are independent, and so is the response. Every release is the expected
one of that many rows; standard errors and intervals then come from the same inference as a real fit's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy.special import ndtr, ndtri

from discreet.accounting import Guarantee, guarantee_of, price_of_spend
from discreet.errors import InvalidParameter
from discreet.estimators.cells import Where
from discreet.estimators.forecast import Assumptions, Forecast, Preview, register_procedure
from discreet.inference.laws import Array
from discreet.inference.moments_fit import MomentsResult
from discreet.inference.regression import RegressionResult
from discreet.inference.regression_curvature import normal_draws
from discreet.inference.residuals import ResidualsResult
from discreet.inference.summary import Summary, number_text
from discreet.models import fit as fitting
from discreet.models import moments
from discreet.models.algorithm_a import Steps
from discreet.models.m_estimate import m_estimate, user_model
from discreet.models.regression import logistic, model_of, ols, poisson, robust
from discreet.models.residuals import residuals, residuals_question
from discreet.queries import Sum, may_leave_out
from discreet.queries.families import PSI_BITS, Family, Huber, Poisson, clipped_rest, psi_bound, slope_bound
from discreet.queries.model import LEAN_BITS, WEIGHT_BITS, Model, WeightedGradient, WeightedGram
from discreet.queries.pieces import RESPONSE_BITS, LevelPiece, NumberPiece, Piece, model_matrix
from discreet.queries.tabulated import TabulatedMean
from discreet.release import Question, Release
from discreet.session import PublicFacts, Session

IMAGINED = 4000  # rows
RESIDUAL_SHARE = 1 / 8  # of the response's range: the residuals' standard deviation, unless assumed
COUNT_SHARE = 1 / 10  # of the largest count: the mean, unless assumed


@dataclass(frozen=True, slots=True)
class FitPreview:
    """The forecast of a regression: free, and made without data. `expected` is the fit that imagined rows would give without noise."""

    expected: RegressionResult
    forecasts: tuple[Forecast, ...]
    price: str
    how_many: int
    assumed: str
    level: float

    @property
    def noise_index(self) -> float:
        """The public noise index ν: below 0.1 normal, up to 0.5 noise dominated, beyond not resolvable."""
        return self.expected.facts.noise_index

    @property
    def noise_class(self) -> str:
        return self.expected.noise_class

    @property
    def widths(self) -> Array:
        """Expected widths of the coefficients' intervals."""
        return np.array([item.width for item in self.forecasts])

    def summary(self) -> Summary:
        header = ("coefficient", "noise s.d.", "std. error", f"{100 * self.level:g}% interval width", "noise %")
        rows = tuple((item.quantity, *(number_text(value, value) for value in (item.noise, item.std_error, item.width)), f"{100 * item.noise_share:.0f}") for item in self.forecasts)
        facts = self.expected.facts
        return Summary(f"Preview of {facts.estimator}", header, rows, (
            f"Noise index {self.noise_index:.2g} ({self.noise_class}). {facts.spend} in {len(self.expected.releases)} releases. Price: {self.price}. About {self.how_many} like this fit in what is left.",
            f"Assumed: {self.assumed}. Nothing was spent and no data was read."))

    def __str__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


@dataclass(frozen=True)
class Imagined:
    """Stands where a session would: answers a fit's questions with the expected statistics of imagined rows. It has no data to read."""

    public: PublicFacts
    rows: float
    family: Family
    assume: Assumptions

    def release(self, question: Question, *, key: str, reservation: object) -> Release:
        mechanism: Any = question.mechanism
        statistic = [value << mechanism.refinement for value in self._statistic(question.query)]
        return Release(question.asked, question.query, mechanism, tuple(statistic), self.public.neighbors, question.spend, guarantee_of(mechanism), self.public.count, key, 0, "")

    def _statistic(self, query: Any) -> list[int]:
        if isinstance(query, Sum):
            return [round(self.rows * (query.term[0].encoding.per_unit * (self._mean - query.term[0].encoding.center) if query.term else 1.0))]
        model: Model = query.model
        response = self._response(model)
        matrix = model_matrix(model.columns, self._codes(model, response), IMAGINED).astype(np.float64)
        moved = matrix @ np.array(query.metric.rows, dtype=np.float64).T
        weight = np.minimum(1.0, float(query.metric.bound) ** 2 / np.maximum((moved**2).sum(axis=1), 1e-300))
        grow = self.rows / IMAGINED
        if isinstance(query, WeightedGradient):
            psi, _ = self._psi(query, matrix, response)
            total = (np.floor(weight * psi * 2.0 ** (WEIGHT_BITS - PSI_BITS)) @ matrix) * grow
            return query.assemble((np.array([round(value) for value in total], dtype=object), round(float(psi @ psi) * grow)))
        assert isinstance(query, WeightedGram)
        multiplier = weight
        if query.part != "metric":
            psi, slope = self._psi(query, matrix, response)
            assert query.family is not None
            multiplier = weight * slope / slope_bound(query.family) if query.part == "curvature" else (weight * psi / psi_bound(query.family)) ** 2
        sums = (matrix * np.floor(multiplier * (1 << LEAN_BITS))[:, None]).T @ matrix * grow
        return query.assemble(np.array([[round(value) for value in row] for row in sums], dtype=object))

    def _psi(self, query: Any, matrix: Array, response: Array) -> tuple[Array, Array]:
        """ψ and ψ′ of the imagined rows, in whole units."""
        tables, point = query.family.tables(), query.point
        eta = matrix @ np.array(point.beta, dtype=np.float64)
        argument = np.ldexp(response * 2.0**RESPONSE_BITS, point.eta_bits) - eta if query.family.residual else eta
        place = np.clip(np.floor(argument * point.per_scale + 0.5), -tables.reach, tables.reach).astype(np.int64) + tables.reach
        if query.family.residual:
            return tables.psi[place].astype(float), tables.slope[place].astype(float)
        whole = np.clip(np.floor(response * tables.unit + 0.5), 0, tables.top).astype(np.int64)
        return (tables.shift[place] - clipped_rest(tables, whole, place)).astype(float), tables.slope[place].astype(float)

    def _codes(self, model: Model, response: Array) -> dict[Piece, Any]:
        """Codes of the pieces; one draw a data column, so that a column and its square belong together."""
        codes: dict[Piece, Any] = {}
        for column in model.columns:
            for piece in column.pieces:
                draws = normal_draws(f"preview/{piece.column}", IMAGINED)
                if isinstance(piece, LevelPiece):
                    codes[piece] = np.minimum((ndtr(draws) * len(piece.contrast)).astype(np.int64), len(piece.contrast) - 1)
                    continue
                assert isinstance(piece, NumberPiece)
                grid = piece.factor.encoding
                if column.name == "response" and model.response is not None and piece.column == model.response.column:
                    values = response * model.response.half + model.response.middle
                    draws = ((np.exp(values) if model.response.transform == "log" else values) - grid.center) * grid.per_unit / (grid.high / 2)
                codes[piece] = np.clip(np.floor(draws * grid.high / 2 + 0.5), grid.low, grid.high).astype(np.int64)
        return codes

    def _response(self, model: Model) -> Array:
        """Imagined responses: in half-ranges from the middle (residual families), yes/no, or counts."""
        if model.response is None:
            return np.zeros(IMAGINED)
        draws = normal_draws(f"preview/response/{model.response.column}", IMAGINED)
        if self.family.residual:
            spread = 2 * RESIDUAL_SHARE if self.assume.standard_deviation is None else float(self.assume.standard_deviation) / model.response.half
            middle = 0.0 if self.assume.mean is None else (float(self.assume.mean) - model.response.middle) / model.response.half
            return np.asarray(np.clip(middle + spread * draws, -1, 1))
        if model.response.level is not None:
            return np.asarray((draws < ndtri(self._mean)).astype(float))
        return _poisson_counts(self._mean, ndtr(draws))

    @property
    def _mean(self) -> float:
        """The assumed mean of a yes/no or count response."""
        most = self.family.most if isinstance(self.family, (Poisson, TabulatedMean)) else 1.0
        if most == 1.0:
            return min(max(0.5 if self.assume.share is None else float(self.assume.share), 1e-6), 1 - 1e-6)
        return min(max(COUNT_SHARE * most if self.assume.mean is None else float(self.assume.mean), 1e-3), most)

    def words(self, model: Model) -> str:
        """The assumptions, in words."""
        texts = [f"{self.rows:.0f} rows", "independent columns, numbers with a standard deviation of a quarter of their range, levels equally frequent"]
        if self.family.residual and model.response is not None:
            spread = 2 * RESIDUAL_SHARE * model.response.half if self.assume.standard_deviation is None else float(self.assume.standard_deviation)
            texts.append(f"residuals with a standard deviation of {spread:.4g}")
        else:
            texts.append(f"a mean response of {self._mean:.4g}")
        return ", ".join(texts)


def _poisson_counts(mean: float, uniform: Array) -> Array:
    """Poisson counts by inversion."""
    counts = np.arange(int(mean + 12 * math.sqrt(mean) + 30))
    mass = np.exp(counts * math.log(mean) - mean - np.array([math.lgamma(count + 1) for count in counts]))
    return np.searchsorted(np.cumsum(mass), uniform).astype(float)


def _preview(session: Session, model: Model, family: str | Family, spend: Guarantee, assume: Assumptions, level: float, *, by_moments: bool = False) -> FitPreview:
    public = session.public
    optional = any(may_leave_out(key, public.schema) for key in model.keys)
    rows = assume.rows if assume.rows is not None else None if public.rows is None else public.rows / (2 if optional else 1)
    if rows is None:
        raise InvalidParameter("preview", "the number of rows is private here", "the forecast needs one", "pass assume=dp.Assumptions(rows=…) with your own guess")
    kind = _kind(family, model)
    imagined = Imagined(public, max(1.0, float(rows)), kind, assume)
    mu_squared = fitting._budget(spend, public.neighbors.rows)
    steps = Steps(
        session=cast(Session, imagined), estimator=fitting._estimator(family), where="", model=model, optional=optional, mu_squared=mu_squared, reservation=None, key="preview")
    expected: RegressionResult
    if by_moments:
        facts = moments._asked(steps, spend)
        expected = MomentsResult(tuple(steps.releases), facts)
    else:
        facts = fitting._fit(steps, family, spend)
        expected = RegressionResult(tuple(steps.releases), facts)
    ends = expected.confidence_interval(level)
    columns = (expected.names, expected.privacy_errors, expected.std_errors, ends[:, 1] - ends[:, 0], expected.noise_share)
    forecasts = tuple(Forecast(name, *(float(value) for value in rest)) for name, *rest in zip(*columns, strict=True))
    price = price_of_spend(spend, box=session.ledger.box)
    return FitPreview(expected, forecasts, str(price), session.ledger.how_many(price), imagined.words(model), level)


def _kind(family: str | Family, model: Model) -> Family:
    """A family of the same kind, for imagining its response."""
    return fitting._family(family, 0.0, model)


def _regression(name: str) -> Any:
    def forecast(session: Session, formula: str, *, spend: Guarantee, assume: Assumptions, level: float, where: Where | None = None, **options: Any) -> FitPreview:
        if options.pop("solver", None) is not None:
            raise InvalidParameter("preview", "a solver was named", "the forecast is that of the default procedure", "leave solver= out")
        method, c = options.pop("method", "clipped"), options.pop("c", None)
        if options or (name != "ols" and method != "clipped") or method not in ("clipped", "moments") or (name != "robust" and c is not None):
            raise InvalidParameter("preview", f"dp.{name} does not know {', '.join(options) or 'these options'}", "a forecast is of what would be asked", "pass the same options as to the estimator")
        family: str | Huber = name if c is None else Huber(float(c))
        return _preview(session, model_of(session.public.schema, formula, family, where), family, spend, assume, level, by_moments=method == "moments")

    return forecast


def _m_estimate(session: Session, formula: str, *, spend: Guarantee, assume: Assumptions, level: float, psi: Any = None, mean: Any = None, reach: int | None = None, where: Where | None = None) -> FitPreview:
    model, family = user_model(session.public.schema, formula, psi, mean, reach, where)
    return _preview(session, model, family, spend, assume, level)


def _residuals(session: Session, fit: RegressionResult, *, spend: Guarantee, assume: Assumptions, level: float, bins: Any = 16) -> Preview:
    question = residuals_question(session.public, fit, spend=spend, bins=bins)
    rows = fit.rows if assume.rows is None else float(assume.rows)
    shares = np.diff(ndtr([-np.inf, *question.asked.edges, np.inf]))
    mechanism: Any = question.mechanism
    integers = tuple(round(rows * share) << mechanism.refinement for share in shares)
    release = Release(question.asked, question.query, mechanism, integers, session.public.neighbors, spend, guarantee_of(mechanism), session.public.count, "preview", 0, "")
    forecasts = tuple(
        Forecast(item.name, float(np.sqrt(np.median(item.privacy_variance))), float(np.median(item.std_error)), float(np.median(item.high - item.low)), float(np.median(item.noise_share)))
        for item in ResidualsResult(release).quantities(level))
    price = session.price(question)
    return Preview(question, forecasts, str(price), session.ledger.how_many(price), f"{rows:.0f} rows with normal residuals", level)


for _estimator, _name in ((ols, "ols"), (robust, "robust"), (logistic, "logistic"), (poisson, "poisson")):
    register_procedure(_estimator, _regression(_name))
register_procedure(m_estimate, _m_estimate)
register_procedure(residuals, _residuals)
