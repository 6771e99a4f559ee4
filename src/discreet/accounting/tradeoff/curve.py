"""f-differential privacy: `TradeOff`, a guarantee that is a whole trade-off curve
(reference.md A5–A7, C4–C6, E8).

    f(α)   the least probability of missing a person, over all tests with false-alarm rate α,
           between two neighbours

M is f-DP if every test of M(x) against M(x′), for neighbours in both orders, misses with
probability ≥ f(α). The curve is convex, falls from 1 or less to 0, lies on or below 1−α, and is
kept as finitely many straight pieces. What is stored never lies above what was proven: every
operation rounds the curve down. Small 1−f (the left end) keeps its relative accuracy, small
f (the right end) is known to about 1e-15: what exchanges the neighbours (`inverse`, `symmetrised`,
`subsampled`) therefore costs a δ of up to about 1e-12; for smaller δ use the PLD accountant.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

from discreet import plain
from discreet.accounting.guarantees import GDP, ApproxDP, PureDP
from discreet.accounting.parameters import not_negative, positive, probability, whole_number
from discreet.accounting.profile import PrivacyProfile
from discreet.accounting.sampling import FixedSizeSampling, Sampling, matched_rate
from discreet.accounting.tradeoff import segments as segments
from discreet.enclosure import enclose, normal_tail, upper_float
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import decimal_text, float_down, float_up, rational, readings
from discreet.neighbors import Neighbors

LARGEST_TIMES = 10**6
LARGEST_GROUP = 10**4
MOST_GIVEN = 1 << 14
USUAL_POINTS = 320  # lines of each sign; with one of slope 1 at most 639 pieces
_SMALLEST_DELTAS = (0.0, 1e-17, 1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5)
_BULK = 1e-4
_WIDEST = 600.0  # ε of the steepest line; e^600 is a float
_ALWAYS = 1500  # no two floats have a larger logarithm of their ratio
_WHY = (
    "the curve is a promise about every test; it must be convex, fall from at most 1 to 0, and lie "
    "on or below 1 − α"
)


@dataclass(frozen=True, slots=True)
class TradeOff(PrivacyProfile):
    """f-DP by a discrete pair: `certain` is 1−f(0), and piece i adds `hits[i]` to the power and
    `alarms[i]` to the false-alarm rate.

    Theorem.  1−f(α) = certain + max{Σ wᵢhitsᵢ : Σ wᵢalarmsᵢ ≤ α, 0 ≤ wᵢ ≤ 1}, at most 1;
              f is a trade-off function.
    Proof.    The maximum fills the steepest pieces first, so it is concave and increasing in α;
              Σ hits + certain ≥ 1 and Σ alarms ≤ 1 (both checked exactly) put f on or below 1−α,
              and then f is the curve of a pair (Dong–Roth–Su 2022, Proposition 2.2). Larger hits or
              smaller alarms lower f: the rounding direction.
    Checked.  tests/accounting/test_tradeoff.py::test_curves_are_convex_and_fall

    Example.
            curve = dp.TradeOff.through([(0, 1), (0.2, 0.4), (0.4, 0.2), (1, 0)])
            print(curve.tradeoff(0.1), curve.delta_at(1.0))
    See also. `dp.GDP`, `dp.PLD`, `dp.explain`.
    """

    certain: float
    hits: tuple[float, ...]
    alarms: tuple[float, ...]
    kind: ClassVar[str] = "tradeoff"

    def __post_init__(self) -> None:
        if (
            not all(isinstance(x, (tuple, list)) for x in (self.hits, self.alarms))
            or len(self.hits) != len(self.alarms)
            or len(self.hits) > MOST_GIVEN
        ):
            raise InvalidParameter(
                "TradeOff",
                f"hits and alarms are not two sequences of one length of at most {MOST_GIVEN}",
                _WHY,
                "use TradeOff.through(points) or tradeoff_of(guarantee)",
            )
        object.__setattr__(
            self,
            "certain",
            float_up(probability(self.certain, "certain"))
            if type(self.certain) is not float
            else self.certain,
        )
        probability(self.certain, "certain")
        pieces = [
            (float(positive(hit, "hits")), float(positive(alarm, "alarms")))
            for hit, alarm in zip(self.hits, self.alarms, strict=True)
        ]
        pieces.sort(key=lambda piece: Fraction(piece[0]) / Fraction(piece[1]), reverse=True)
        power, alarm = (
            sum((Fraction(hit) for hit, _ in pieces), readings(self.certain)[0]),
            sum((Fraction(alarm) for _, alarm in pieces), Fraction(0)),
        )
        if power < 1 or alarm > 1:
            raise InvalidParameter(
                "TradeOff",
                "hits add up to less than 1, or alarms to more",
                _WHY,
                "use TradeOff.through(points), which rounds them",
            )
        object.__setattr__(self, "hits", tuple(hit for hit, _ in pieces))
        object.__setattr__(self, "alarms", tuple(alarm for _, alarm in pieces))

    @classmethod
    def through(cls, points: Iterable[Sequence[float]]) -> TradeOff:
        """The greatest convex curve on or below the points (α, β) and (1, 0), rounded down;
        β must be at most 1−α and not rise.
        """
        corners = [
            (probability(alpha, "alpha"), probability(beta, "beta")) for alpha, beta in points
        ]
        corners.sort()
        if (
            not corners
            or corners[0][0] != 0
            or any(alpha + beta > 1 for alpha, beta in corners)
            or any(d > b for (_, b), (_, d) in pairwise(corners))
        ):
            raise InvalidParameter(
                "points",
                "they do not start at α = 0, rise somewhere, or lie above 1 − α",
                _WHY,
                "pass for example [(0, 1), (0.3, 0.3), (1, 0)]",
            )
        return cls(*segments.through(segments.lower_hull([*corners, (Fraction(1), Fraction(0))])))

    # ── reading it ────────────────────────────────────────────────────────────────────────────────

    @property
    def exact_vertices(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The corners (α, β) of the curve that is stored, exactly, from α = 0 to α = 1."""
        return _geometry(self)[0]

    @property
    def vertices(self) -> tuple[tuple[float, float], ...]:
        """The corners (α, β), both rounded down."""
        return tuple(
            (max(0.0, float_down(alpha)), max(0.0, float_down(beta)))
            for alpha, beta in self.exact_vertices
        )

    def tradeoff(self, alpha: float) -> float:
        """The least probability of missing a person at false-alarm rate α,
        rounded down (reference.md A6).
        """
        probability(alpha, "alpha")
        rate = min(
            Fraction(1), readings(alpha)[1] if type(alpha) is float else rational(alpha, "alpha")
        )
        return max(0.0, float_down(self._height(rate)))

    __call__ = tradeoff

    def _height(self, alpha: Fraction) -> Fraction:
        corners, places, _ = _geometry(self)
        return segments.height(corners, alpha, places=places)

    def delta_at(self, epsilon: float) -> float:
        """δ(ε) = 1 + f*(−e^ε) = certain + Σ(hitᵢ − e^ε·alarmᵢ)₊,
        rounded up (Dong–Roth–Su 2022, Proposition 2.12).
        """
        asked = not_negative(epsilon, "epsilon")
        if asked > _ALWAYS:
            return self.certain
        return min(1.0, float_up(self._delta(enclose(lambda ball: ball(asked).exp())[0])))

    def _delta(self, slope: Fraction) -> Fraction:
        """1 + f*(−slope), exactly: at the corner where the curve becomes flatter than that."""
        corners, _, rising = _geometry(self)
        alpha, beta = corners[bisect_left(rising, -slope)]
        return 1 - beta - slope * alpha

    def epsilon_at(self, delta: float) -> float:
        """The least ε with δ(ε) ≤ δ, rounded up; infinity below `certain`. δ may be 0."""
        allowed = probability(delta, "delta")
        if readings(self.certain)[0] > allowed:
            return math.inf
        slope = max(
            ((1 - beta - allowed) / alpha for alpha, beta in self.exact_vertices if alpha > 0),
            default=Fraction(0),
        )
        return 0.0 if slope <= 1 else upper_float(enclose(lambda ball: ball(slope).log()))

    def gap(self, other: Any) -> float:
        """How far `other`'s curve rises above this one at most (to rounding):
        how much was given away by straight pieces.

        Theorem.  For a convex g the greatest g − f is at a corner of f.
        Proof.    Between two corners f is linear, so g − f is convex there and greatest at an end.
        Checked.  tests/accounting/test_tradeoff.py::test_gaussian_curves_are_certified_and_close
        """
        return max(
            0.0,
            *(
                float_up(Fraction(other.tradeoff(alpha)) - self._height(Fraction(alpha)))
                for alpha in (float(a) for a, _ in self.exact_vertices)
            ),
        )

    def covers(self, other: PrivacyProfile) -> bool:
        """Whether everything that satisfies `other` satisfies this too:
        this curve is nowhere above the other's.

        Theorem.  Let f be convex. (i) For a piecewise-linear g: f ≤ g iff f ≤ g at the corners
                  of g. (ii) For any g with conjugate curve δ_g: a piecewise-linear f ≤ g iff
                  δ_g(ln s) ≤ δ_f(ln s) at every slope s of f.
        Proof.    (i) Between corners of g, f lies below its chord, which lies below g's. (ii) f is
                  the greatest of 0 and its lines 1−δ_f(ln s)−sα; such a line is below g iff it is
                  below the supporting line of g of the same slope. For s < 1 the reverse order
                  gives δ_g(−ε) = 1 − e^−ε(1−δ_g(ε)). (iii) A g that is promised for both orders
                  implies a line as soon as it implies it with the errors exchanged; this is tried
                  where (i) says no. True is proven; between curves that differ by rounding alone it
                  may say no.
        Checked.  tests/accounting/test_tradeoff.py::test_covers_agrees_with_the_curves
        """
        if isinstance(other, TradeOff):
            return all(self._height(alpha) <= beta for alpha, beta in other.exact_vertices) or all(
                _implies(other, slope, beta + slope * alpha) for slope, alpha, beta in self._lines()
            )
        if isinstance(other, (PureDP, ApproxDP)):
            survival, (low, _) = _kink(other)
            return (
                1 - readings(self.certain)[0] <= survival
                and self._height(low) <= low
                and self._height(survival) <= 0
            )
        return self.covers(tradeoff_of(other)) or all(
            _delta_bound(other, slope) <= 1 - beta - slope * alpha
            for slope, alpha, beta in self._lines()
        )

    def _lines(self) -> list[tuple[Fraction, Fraction, Fraction]]:
        return [
            ((b - d) / (c - a), a, b) for (a, b), (c, d) in pairwise(self.exact_vertices) if d < b
        ]

    # ── operations ────────────────────────────────────────────────────────────────────────────────

    @property
    def _segments(self) -> segments.Segments:
        return segments.Segments(self.certain, self.hits, self.alarms)

    def tensor(self, other: TradeOff) -> TradeOff:
        """f ⊗ g, the guarantee of two releases, the second chosen after the first (Dong–Roth–Su
        2022, Theorem 3.2); `segments.product`.
        """
        if not isinstance(other, TradeOff):
            raise InvalidParameter(
                "tensor",
                f"a {type(other).__name__} is not a TradeOff",
                "⊗ is a product of trade-off curves",
                "convert it with tradeoff_of(...) first",
            )
        return TradeOff(*segments.product(self._segments, other._segments))

    def compose(self, *others: PrivacyProfile) -> TradeOff:
        """The guarantee of releasing everything together, adaptively;
        other kinds of guarantee enter by their curves.
        """
        total = self
        for other in others:
            total = total.tensor(tradeoff_of(other))
        return total

    def repeat(self, times: int) -> TradeOff:
        """f^⊗k by squaring: the guarantee of k adaptive releases of this kind, k ≤ 10⁶."""
        count = whole_number(times, "times", most=LARGEST_TIMES)
        power, total = self, None
        while True:
            if count & 1:
                total = power if total is None else total.tensor(power)
            count >>= 1
            if not count:
                return total if total is not None else power
            power = power.tensor(power)

    def inverse(self) -> TradeOff:
        """f⁻¹(β) = inf{α : f(α) ≤ β}: the curve with the two neighbours exchanged (Dong–Roth–Su
        2022, Lemma A.2).
        """
        return TradeOff(*segments.through(_mirrored(self.exact_vertices)))

    def symmetrised(self) -> TradeOff:
        """The greatest convex curve on or below f and f⁻¹.

        Theorem.  If T(M(x), M(x′)) ≥ f is known for one order of each pair of neighbours,
                  M is min{f, f⁻¹}**-DP in both.
        Proof.    The other order has T ≥ f⁻¹ (exchange the errors); both are above the minimum,
                  hence above its greatest convex minorant, which is the lower hull of the corners
                  of both. (This is the Symm of Dong–Roth–Su's C_p.) (Where f is already promised
                  for both orders, f alone holds, and so does max{f, f⁻¹}, which is higher.)
        Checked.
            tests/accounting/test_symmetries.py::test_symmetrised_is_the_greatest_convex_minorant
        """
        return TradeOff(
            *segments.through(
                segments.lower_hull([*self.exact_vertices, *_mirrored(self.exact_vertices)])
            )
        )

    def subsampled(self, rate: float | Fraction) -> TradeOff:
        """C_p(f) = min{f_p, f_p⁻¹}**, f_p = p·f + (1−p)·(1−α): run on a secret sample of fixed
        size, rate p = m/n, under Replace only.

        Theorem.  If M is f-DP under Replace on data sets of m rows, M on m of n rows drawn without
                  replacement is C_{m/n}(f)-DP under Replace (Dong–Roth–Su 2022, Theorem 4.2;
                  reference.md E8). `amplified` checks scheme and relation.
        Proof.    Cited for symmetric f; M is also max{f, f⁻¹}-DP, which is symmetric,
                  and C_p is monotone in f.
        Checked.
            tests/accounting/test_symmetries.py::test_subsampling_is_below_every_true_curve
        """
        share = probability(rate, "rate")
        if share == 0:
            raise InvalidParameter(
                "rate",
                "it is 0",
                "an empty sample answers nothing",
                "pass a rate above 0 and at most 1",
            )
        return TradeOff(
            *segments.through(
                [
                    (alpha, share * beta + (1 - share) * (1 - alpha))
                    for alpha, beta in self.exact_vertices
                ]
            )
        ).symmetrised()

    def amplified(self, sampling: Sampling, neighbors: Neighbors) -> TradeOff:
        """`subsampled` for a FixedSizeSampling under Replace; NoTheorem for any other pairing."""
        rate = matched_rate(sampling, neighbors)
        if not isinstance(sampling, FixedSizeSampling):
            raise NoTheorem(
                "the trade-off curve of Poisson sampling",
                "C_p(f) is for samples of a fixed size under Replace",
                "under AddRemove the two orders have different curves, which compose separately",
                "use the PLD accountant, or amplify(...) for (ε, δ)",
            )
        return self.subsampled(rate)

    def group(self, size: int) -> TradeOff:
        """1 − (1−f)^∘k for groups of k (Dong–Roth–Su 2022, Theorem 2.14; reference.md A3).

        Theorem.  T(P, R) ≥ g(1−f(α)) where T(P, Q) ≥ f and T(Q, R) ≥ g.
        Proof.    A test of level α under P has level ≤ 1−f(α) under Q, hence misses R with
                  probability ≥ g(1−f(α)); g falls.
        Checked.  tests/accounting/test_symmetries.py::test_groups
        """
        count = whole_number(size, "group size", most=LARGEST_GROUP)
        power, total = self, None
        while True:
            if count & 1:
                total = power if total is None else _chained(total, power)
            count >>= 1
            if not count:
                return total if total is not None else power
            power = _chained(power, power)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "certain": self.certain,
            "hits": list(self.hits),
            "alarms": list(self.alarms),
        }

    def __str__(self) -> str:
        return (
            f"f-DP in {len(self.hits)} pieces (at 5 % false alarms at least "
            f"{decimal_text(100 * self.tradeoff(0.05))} % are missed)"
        )


@plain.remembered(64, copied=False)
def _geometry(
    curve: TradeOff,
) -> tuple[tuple[tuple[Fraction, Fraction], ...], tuple[Fraction, ...], tuple[Fraction, ...]]:
    """(corners, their α, the derivative between them, which rises to 0)."""
    corners = tuple(segments.vertices(curve._segments))
    return (
        corners,
        tuple(alpha for alpha, _ in corners),
        tuple((d - b) / (c - a) for (a, b), (c, d) in pairwise(corners)),
    )


def _mirrored(corners: Sequence[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The corners of the inverse: errors exchanged;
    it starts at α = 0 with the least α at which f is 0, and ends in (1, 0).
    """
    points = segments.lower_hull((beta, alpha) for alpha, beta in corners)
    return points if points[-1][0] == 1 else [*points, (Fraction(1), Fraction(0))]


def _chained(first: TradeOff, second: TradeOff) -> TradeOff:
    """α ↦ g(1 − f(α)): first f, then g."""
    corners, _, _ = _geometry(first)
    breaks = {alpha for alpha, _ in corners}
    levels = sorted(alpha for alpha, _ in second.exact_vertices)
    place = 0
    for (a, b), (c, d) in pairwise(corners):  # preimages of g's corners under 1 − f, which rises
        if b == d:
            continue
        while place < len(levels) and levels[place] <= 1 - b:
            place += 1
        while place < len(levels) and levels[place] < 1 - d:
            breaks.add(a + (c - a) * (levels[place] - (1 - b)) / (b - d))
            place += 1
    return TradeOff(
        *segments.through(
            [(alpha, second._height(1 - first._height(alpha))) for alpha in sorted(breaks)]
        )
    )


def _implies(curve: TradeOff, slope: Fraction, level: Fraction) -> bool:
    """Whether a curve for both orders is on or above the line β = level − slope·α,
    or above it with α and β exchanged.
    """
    return curve._delta(slope) <= 1 - level or curve._delta(1 / slope) <= 1 - level / slope


# ── from other guarantees ─────────────────────────────────────────────────────────────────────────


def tradeoff_of(guarantee: PrivacyProfile, *, points: int = USUAL_POINTS) -> TradeOff:
    """The trade-off curve that follows from a guarantee, rounded down.

    Theorem.  (ε, δ) gives max(0, 1−δ−e^ε α, e^−ε(1−δ−α)), exactly (reference.md A5). Any guarantee
              that holds at (ε, δ(ε)) for several ε gives the greatest of these over them; for μ-GDP
              these are supporting lines of G_μ (reference.md A7), at most 1e-4 below it for μ ≤ 3
              (`TradeOff.gap` says).
    Proof.    Each line is a true bound, for both orders of the neighbours;
              so is their maximum, which is convex.
    Checked.  tests/accounting/test_tradeoff.py::test_gaussian_curves_are_certified_and_close
    """
    if isinstance(guarantee, TradeOff):
        return guarantee
    if isinstance(guarantee, (PureDP, ApproxDP)):
        return _of_one_pair(guarantee)
    if not (hasattr(guarantee, "delta_at") and hasattr(guarantee, "epsilon_at")):
        raise NoTheorem(
            f"a trade-off curve from {type(guarantee).__name__}",
            "it has no curve of (ε, δ)",
            "each (ε, δ) is one line below the curve",
            "pass a guarantee such as GDP, ZCDP, RDP, PLD or ApproxDP",
        )
    count = whole_number(points, "points", least=2, most=MOST_GIVEN // 4)
    least, widest = _steepest(guarantee)
    # three quarters of the lines where most of the mass is
    middle, inner = min(widest, guarantee.epsilon_at(_BULK)), max(1, 3 * count // 4)
    outer = count - inner
    grid = (
        [middle * i / inner for i in range(inner)]
        + [middle + (widest - middle) * i / max(1, outer - 1) for i in range(outer - 1)]
        + [widest]
    )
    lines = []
    for epsilon in grid:
        delta = least if epsilon == widest and least is not None else guarantee.delta_at(epsilon)
        slope, survival = (
            _exponential(rational(epsilon, "epsilon")),
            1 - min(Fraction(1), readings(delta)[1]),
        )
        lines += [(survival, slope), (survival / slope, 1 / slope)]
    return TradeOff(*segments.through(segments.upper_envelope(lines)))


def _exponential(epsilon: Fraction) -> Fraction:
    """A float on or above e^ε, as a Fraction: a steeper line is a lower one."""
    return Fraction(upper_float(enclose(lambda ball: ball(epsilon).exp())))


def _of_one_pair(guarantee: PureDP | ApproxDP) -> TradeOff:
    survival, (low, high) = _kink(guarantee)
    return TradeOff(
        *segments.rounded(1 - survival, [(survival - low, low), (high, survival - high)])
    )


def _kink(guarantee: PureDP | ApproxDP) -> tuple[Fraction, tuple[Fraction, Fraction]]:
    """(1−δ, bounds of the α = β = (1−δ)/(1+e^ε) at which f_(ε,δ) bends)."""
    epsilon = rational(guarantee.epsilon, "epsilon")
    survival = 1 - (
        rational(guarantee.delta, "delta") if isinstance(guarantee, ApproxDP) else Fraction(0)
    )
    if epsilon > _ALWAYS:  # below every float: the bend is at 0
        return survival, (Fraction(0), Fraction(1, 2**1074))
    return survival, enclose(lambda ball: ball(survival) / (1 + ball(epsilon).exp()))


def _steepest(guarantee: PrivacyProfile) -> tuple[float | None, float]:
    """(δ, ε) of the steepest line: the least δ of a list at which an ordinary ε holds;
    δ is None where it must be asked.
    """
    for delta in _SMALLEST_DELTAS:
        try:
            epsilon = guarantee.epsilon_at(delta)
        except InvalidParameter:
            continue
        if epsilon <= _WIDEST:
            return delta, max(epsilon, 1e-12)
    return None, _WIDEST


def _delta_bound(guarantee: PrivacyProfile, slope: Fraction) -> Fraction:
    """An upper bound of δ(ln slope) of a guarantee for both orders,
    slope > 0 (below 1 by exchanging the neighbours).
    """
    if isinstance(guarantee, GDP):
        mu = rational(guarantee.mu, "mu")

        def formula(ball: Any) -> Any:
            center, half = ball(slope).log() / ball(mu), ball(mu) / 2
            return normal_tail(ball, center - half) - ball(slope) * normal_tail(ball, center + half)

        return enclose(formula)[1]
    steep = max(slope, 1 / slope)
    epsilon = float_down(enclose(lambda ball: ball(steep).log())[0]) if steep > 1 else 0.0
    delta = min(Fraction(1), readings(guarantee.delta_at(max(0.0, epsilon)))[1])
    return delta if slope >= 1 else 1 - slope * (1 - delta)
