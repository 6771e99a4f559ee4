"""The least noise for a perturbed minimiser that a spend allows (specs/mechanisms/minimiser.py).

One hundredth of the price pays for the noise that covers the solver's tolerance; it is as small
beside the sampling error as public numbers can say, and the tolerance is what it covers.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet import plain
from discreet.accounting.tradeoff.shifted_pair import SMALLEST_MU, shifted_mu
from discreet.errors import InvalidParameter
from discreet.exact import decimal_text, float_down, float_up, sqrt_down
from discreet.sensitivity import RowLoss
from discreet.specs.mechanisms.minimiser import NOISE_BITS, PerturbedMinimiser, told_of_a_row

COVER_SHARE = Fraction(1, 100)
KAPPA = Fraction(2, 5)  # of μ, one row's: what the penalty is by default
PURE_KAPPA = Fraction(1, 5)  # of ε, for Euclidean Laplace noise
# of the default penalty: below it noise grows faster than the penalty falls (by 1.4 up to there)
LEAST_OF_DEFAULT = Fraction(1, 3)
MOST_OF_A_ROW = Fraction(3)  # of a row's μ: what the programme prices closely; more is not used
FINE = 0.05  # of the sampling error: the noise that covers the tolerance
LEAST_STEPS = 1 << 10  # of that noise, for each root of a coefficient
LEAST_GAIN = 0.1  # of the price's logarithm, for that of the spread
# κ over the share of a row, and the spread over that without curvature which is tried first: it is
# enough for shares up to 0.4, where it is 1 % too much at most for κ up to the default one
FIRST_TRIES = (
    (0.25, 0.4, 0.55, 0.7, 0.85, 1.0, 1.2),
    (102, 102.7, 104.5, 107, 112.5, 121.2, 138.2),
)
LARGEST_OF_THESE = 0.4
ELSE_FIRST = ((1.0, 2.0, 3.0), (102, 103, 107))  # by the share of a row


@dataclass(frozen=True, slots=True)
class Room:
    """What a minimiser may cost: μ² of a Gaussian one, or ε of a pure one (the other is 0)."""

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)

    @property
    def law(self) -> str:
        return "laplace" if self.epsilon else "gaussian"

    @property
    def size(self) -> Fraction:
        """μ or ε."""
        return self.epsilon or sqrt_down(self.mu_squared)


def default_penalty(row: RowLoss, room: Room, way: str, rows: float) -> Fraction:
    """The total penalty Λ that is used where none is given, in units of the radius.

    objective   the one with κ = 0.4·μ (one row's μ), or ε/5, at most 1
    output      √(n·s·L/μ): where the penalty's pull and the noise, which it divides, are alike
    """
    if way == "output":
        flat = rows * float(row.curvature * row.steepness * row.moves / room.size)
        return max(Fraction(math.sqrt(flat)), row.curvature)
    kappa = PURE_KAPPA * room.epsilon / row.rows
    if not room.epsilon:
        kappa = KAPPA * room.size / row.moves
    return row.curvature / min(Fraction(1), kappa)


def least_penalty(row: RowLoss, room: Room) -> Fraction:
    """What a smaller penalty of the objective acts as, in units of the radius: a third of the
    default one, or where a row's curvature costs half of ε; never below that curvature.
    """
    if room.epsilon:
        half = math.expm1(float(room.epsilon) / (2 * row.rows))
        return row.curvature / Fraction(min(1.0, half))
    kappa = KAPPA * room.size / row.moves / LEAST_OF_DEFAULT
    return row.curvature / min(Fraction(1), kappa)


def perturbed_minimiser(
    row: RowLoss,
    size: int,
    room: Room,
    *,
    way: str,
    penalty: Fraction | None,
    rows: float,
    most: float = 0.0,
) -> PerturbedMinimiser:
    """The mechanism with the least noise; `rows` is a public or noisy number of rows, `most` the
    public number of those that may be passed over, where it is larger.
    """
    weight = default_penalty(row, room, way, rows) if penalty is None else penalty
    weight = Fraction(float_up(weight))
    fine = FINE * math.sqrt(size / (max(rows, 1.0) * float(row.curvature)))
    if way == "output":
        return _output(row, size, room, weight, max(rows, most))
    mechanism = _covered(row, size, room, weight, max(rows, most), fine)
    if not room.epsilon:
        share = Fraction(float_down(room.size * sqrt_down(1 - COVER_SHARE)))
        share = min(share, row.moves * MOST_OF_A_ROW)
        return replace(mechanism, spread=_gaussian_spread(row, mechanism.kappa, share))
    bent = Fraction(math.log1p(float(mechanism.kappa)) * (1 + 1e-12)) * row.rows
    left = room.epsilon * (1 - COVER_SHARE) - bent
    if left <= 0:
        raise _small(room)
    spread = row.moves * row.steepness / left * (1 + Fraction(1, 1 << 30))
    return replace(mechanism, spread=Fraction(float_up(spread * (1 << NOISE_BITS))))


def require_price(row: RowLoss, room: Room) -> None:
    """Refuses a spend so small that no price is computed for the noise that it asks for."""
    if float(room.size / row.moves) < SMALLEST_MU * FIRST_TRIES[1][-1] / 100:
        raise InvalidParameter(
            "spend=",
            f"one row's part of it is below μ = {SMALLEST_MU:g}",
            "the price of noise in an objective is computed from there on",
            "spend more, or use method='output'",
        )


def require_grid(row: RowLoss, room: Room, *, way: str, penalty: Fraction, rows: float) -> None:
    """Refuses a penalty for which there is no grid of steps or of noise."""
    if way == "output":
        _output(row, 1, room, penalty, rows)
    else:
        _covered(row, 1, room, penalty, rows, FINE / math.sqrt(rows * float(row.curvature)))


@plain.remembered(256)
def _gaussian_spread(row: RowLoss, kappa: Fraction, share: Fraction) -> Fraction:
    """About the least spread of b at which the objective's noise costs no more than `share` of μ:
    what covers the tolerance does not enter, so that one answer serves any number of rows.

    Method.  The price falls more slowly than the spread rises, the more so the further curvature
             weighs: each try goes by what the one before it gained, and does not go too far.
    """
    own = float(share / row.moves)
    usual = own <= LARGEST_OF_THESE
    first = _between(FIRST_TRIES, float(kappa) / own) if usual else _between(ELSE_FIRST, own)
    spread, before = row.moves * row.steepness / share * Fraction(first) / 100, Fraction(0)
    raised = Fraction(1)  # by the try before
    while True:
        tried = Fraction(float_up(spread * (1 << NOISE_BITS)))
        shift = row.steepness * (1 << NOISE_BITS) / tried
        used = row.moves * Fraction(shifted_mu(shift, kappa))
        if used <= share:
            return tried
        over = used / share
        if before:
            gained = math.log(before / used) / math.log(raised)
            over = Fraction(float(over) ** (1 / min(1.0, max(gained, LEAST_GAIN))))
        raised, before = over * (1 + Fraction(1, 10**5)), used
        spread *= raised


def _between(known: tuple[tuple[float, ...], tuple[float, ...]], at: float) -> float:
    """The value at a place, along straight lines between those that are known."""
    places, values = known
    above = min(max(bisect.bisect(places, at), 1), len(places) - 1)
    low, high = places[above - 1 : above + 1]
    share = min(max((at - low) / (high - low), 0.0), 1.0)
    return values[above - 1] + share * (values[above] - values[above - 1])


def _covered(
    row: RowLoss, size: int, room: Room, penalty: Fraction, rows: float, fine: float
) -> PerturbedMinimiser:
    """The certificate: its tolerance, and the noise that covers it for a share of the price."""
    cost = float(room.size) * (float(COVER_SHARE) if room.epsilon else math.sqrt(COVER_SHARE))
    root = math.sqrt(size)
    # never finer than what passes over so many rows can tell
    least = _told(row, rows) + 2.0 ** (3 - NOISE_BITS) * root
    fine = max(fine, 4 * least / (cost * float(penalty)))
    step_bits = math.ceil(math.log2(LEAST_STEPS * root / (min(cost, 1.0) * fine)))
    cover = math.ldexp(fine, step_bits)
    distance = cost * cover / 2 * (1 - 1e-9) - root
    tolerance = float(penalty) * math.ldexp(distance, -step_bits) - 2.0**-NOISE_BITS * root
    return PerturbedMinimiser(
        row,
        "objective",
        room.law,
        size,
        penalty,
        Fraction(1 << NOISE_BITS),
        Fraction(tolerance),
        step_bits,
        Fraction(cover),
    )


def _output(
    row: RowLoss, size: int, room: Room, penalty: Fraction, rows: float
) -> PerturbedMinimiser:
    """All noise on the minimiser; the tolerance is a thousandth of what one row moves it by."""
    moved = row.moves * row.steepness / penalty
    tolerance = max(row.moves * row.steepness / 1000, Fraction(_told(row, rows)))
    fine = float(moved / room.size)
    step_bits = math.ceil(
        math.log2(LEAST_STEPS * math.sqrt(size) / (min(float(room.size), 1.0) * fine))
    )
    mechanism = PerturbedMinimiser(
        row, "output", room.law, size, penalty, Fraction(0), tolerance, step_bits, Fraction(1 << 20)
    )
    reach = row.moves * row.steepness / penalty / mechanism.step + 2 * mechanism.distance
    return replace(mechanism, cover=Fraction(float_up(reach / room.size)))


def _told(row: RowLoss, rows: float) -> float:
    return float(told_of_a_row(row.curvature)) * max(rows, 1.0)


def _small(room: Room) -> InvalidParameter:
    return InvalidParameter(
        "penalty=",
        f"with it one row's curvature alone costs more than {decimal_text(room.size)}",
        "the smaller the penalty, the more a row bends the objective",
        "use a larger penalty, or leave it out",
    )
