"""Answers of the quantile mechanisms to a histogram (specs/mechanisms/quantiles.py)."""

from __future__ import annotations

from discreet.specs.mechanisms.quantiles import ProposeTestRelease, QuantileChoice, SmoothNoise
from discreet.specs.statistics import Histogram
from discreet.trusted.extensions.data_dependent.order_statistics import (
    ends,
    rank_losses,
    smooth_sensitivity,
    stability_distance,
)
from discreet.trusted.extensions.data_dependent.smooth import drawn
from discreet.trusted.noise.choice import choose
from discreet.trusted.noise.sampling import draw
from discreet.trusted.noise.source import Source


def choose_cell(choice: QuantileChoice, histogram: Histogram, source: Source) -> tuple[int, ...]:
    """(cell,): the run of equal losses first, then a cell in it."""
    runs = rank_losses(choice, histogram)
    run, offset = choose(runs.losses, runs.sizes, choice.rate, source)
    return (int(runs.starts[run]) + offset,)


def add_smooth_noise(noise: SmoothNoise, histogram: Histogram, source: Source) -> tuple[int, ...]:
    """(steps,): the quantile and its noise, in steps of 2**−refinement of a cell."""
    around = ends(histogram, noise.a, noise.b)
    return (
        (around.value << noise.refinement)
        + drawn(noise, smooth_sensitivity(around, noise.beta), source),
    )


def propose_test_release(
    proposal: ProposeTestRelease, histogram: Histogram, source: Source
) -> tuple[int, ...]:
    """(1, value) or (0, 0); all noise is drawn in either case.

    A proposal as wide as the grid is right for all data: it needs no test.
    """
    around = ends(histogram, proposal.a, proposal.b)
    distance = stability_distance(around, proposal.eta) + int(draw(proposal.test(), 1, source)[0])
    noise = int(draw(proposal.noise(), 1, source)[0]) if proposal.eta else 0
    passed = distance >= proposal.threshold or proposal.eta >= histogram.cells - 1
    return (1, (around.value << proposal.refinement) + noise) if passed else (0, 0)
