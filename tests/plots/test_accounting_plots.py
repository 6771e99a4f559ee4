"""Pictures of guarantees and of a ledger: what is drawn is what was certified."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet as dp
from discreet.accounting.explain import guess_bound, percent_up, power_bound
from discreet.accounting.renyi.rdp import ZCDP
from discreet.accounting.tradeoff.curve import tradeoff_of
from discreet.errors import InvalidParameter
from discreet.plots.accounting import (
    plot_budget,
    plot_epsilon_delta,
    plot_explained,
    plot_ten_fold,
    plot_tradeoff,
    tradeoff_points,
)
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.losses.pricing import Price

PNG = b"\x89PNG\r\n\x1a\n"


def curves(figure):
    """Label → (x, y) of the named lines."""
    (axes,) = figure.axes
    return {
        line.get_label(): line.get_xydata()
        for line in axes.lines
        if not line.get_label().startswith("_") and line.get_label() != "blind guessing"
    }


def is_picture(path):
    return path.read_bytes().startswith(PNG) and path.stat().st_size > 5000


@pytest.mark.slow
def test_trade_off_curves_are_the_certified_ones(tmp_path: Path) -> None:
    guarantees = [
        dp.ApproxDP(1, 0.05),
        dp.GDP(1),
        dp.PureDP(1),
        ZCDP(0.1),
        tradeoff_of(dp.GDP(1)).tensor(tradeoff_of(dp.PureDP(0.3))),
    ]
    figure = plot_tradeoff(*guarantees, path=tmp_path / "a.png")
    assert is_picture(tmp_path / "a.png")
    drawn = curves(figure)
    assert list(drawn) == [str(guarantee) for guarantee in guarantees]
    for guarantee, points in zip(guarantees, drawn.values(), strict=True):
        # its own curve is a slow search; the Gaussian that satisfies it is above both
        if isinstance(guarantee, ZCDP):
            guarantee = dp.GDP(math.sqrt(0.2))
        assert all(
            beta <= guarantee.tradeoff(min(1.0, float(alpha))) + 1e-12
            for alpha, beta in points[::7]
        )
        assert points[0][0] == 0
        assert tuple(points[-1]) == (1, 0)


@pytest.mark.slow
def test_ten_fold_composition_against_the_gaussian(tmp_path: Path) -> None:
    """The lectures' picture: the exact ten-fold curve hugs G_1 (within 0.0123) and basic
    composition is far below.
    """
    drawn = list(curves(plot_ten_fold(tmp_path / "ten.png")).values())
    assert is_picture(tmp_path / "ten.png")
    exact, gaussian, basic = (
        [float(np.interp(alpha, *points.T)) for alpha in (0.05, 0.1, 0.5)] for points in drawn
    )
    assert exact == pytest.approx(
        [0.7504091024765683, 0.6187528018456876, 0.16309165466483275], abs=1e-9
    )
    assert np.abs(np.subtract(exact, gaussian)).max() < 0.0124
    assert all(b < e - 0.1 for b, e in zip(basic, exact, strict=True))


def test_labels() -> None:
    assert list(curves(plot_tradeoff(dp.GDP(1), dp.GDP(2), labels=["one", "two"]))) == [
        "one",
        "two",
    ]
    for call in (plot_tradeoff, plot_epsilon_delta):
        with pytest.raises(InvalidParameter):
            call()
        with pytest.raises(InvalidParameter):
            call(dp.GDP(1), labels=["one", "two"])
    with pytest.raises(InvalidParameter):
        plot_tradeoff(*[dp.GDP(1)] * 99)


def test_points_of_curves_without_corners() -> None:
    alphas, betas = tradeoff_points(dp.GDP(1))
    assert np.all(np.diff(alphas) > 0)
    assert np.all(np.diff(betas) <= 0)


@pytest.mark.slow
def test_epsilon_delta_curves(tmp_path: Path) -> None:
    guarantees = [dp.GDP(1), dp.ApproxDP(1, 1e-5), dp.PureDP(2), ZCDP(0.5)]
    drawn = curves(plot_epsilon_delta(*guarantees, path=tmp_path / "a.png", points=12))
    assert is_picture(tmp_path / "a.png")
    for guarantee, points in zip(guarantees, drawn.values(), strict=True):
        for delta, epsilon in points:
            truth = guarantee.epsilon_at(float(delta))
            assert (math.isnan(epsilon) and truth == math.inf) or epsilon == truth
    for bad in ({"smallest": 0.0}, {"smallest": 0.5, "largest": 0.1}, {"points": 1}):
        with pytest.raises(InvalidParameter):
            plot_epsilon_delta(dp.GDP(1), **bad)


def spending() -> Ledger:
    ledger = Ledger.open(dp.ApproxDP(1, 1e-5), pure=0.3)
    for i in range(12):
        ledger.debit(
            key=str(i),
            request={"question": i},
            price=Price(epsilon=Fraction(i % 3, 100), mu_squared=ledger.box.mu_squared / (15 + i)),
        )
    return ledger


@pytest.mark.slow
@pytest.mark.parametrize("over", ["entries", "time"])
def test_budget_ends_at_what_is_spent(tmp_path: Path, over: str) -> None:
    ledger = spending()
    drawn = curves(plot_budget(ledger, tmp_path / "b.png", over=over))
    assert is_picture(tmp_path / "b.png")
    spent, box = ledger.spent().exact(), ledger.box
    assert len(drawn) == 3
    for (label, points), (name, field) in zip(
        drawn.items(), (("ε", "epsilon"), ("μ²", "mu_squared"), ("δ₀", "delta")), strict=True
    ):
        assert label.startswith(name)
        assert len(points) == 13
        assert points[-1][1] == pytest.approx(
            100 * float(getattr(spent, field) / getattr(box, field)), rel=1e-9
        )
        assert np.all(np.diff(points[:, 1].astype(float)) >= 0)


def test_an_unspent_budget_is_drawn() -> None:
    assert len(curves(plot_budget(Ledger.open(dp.GDP(1))))) == 1
    plot_budget(Ledger.open(dp.PureDP(1)), over="time")
    with pytest.raises(InvalidParameter):
        plot_budget(Ledger.open(dp.GDP(1)), over="money")


@pytest.mark.slow
def test_pyplot_is_never_loaded() -> None:
    code = """
import sys
import discreet as dp
import discreet.plots.accounting as pictures
assert "matplotlib" not in sys.modules
pictures.plot_tradeoff(dp.GDP(1))
assert "matplotlib.pyplot" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_explained_bars_are_the_limits_that_explain_says():
    guarantees = (dp.PureDP(1), dp.ApproxDP(1, 1e-6), dp.GDP(0.2))
    axes = plot_explained(*guarantees, false_alarm=0.1).axes[0]
    coins, detected = ([bar.get_width() for bar in container] for container in axes.containers[:2])
    for guarantee, coin, power in zip(guarantees, coins, detected, strict=True):
        assert coin == pytest.approx(100 * guess_bound(guarantee, 0.5))
        assert power == pytest.approx(100 * power_bound(guarantee, 0.1))
    texts = [text.get_text() for text in axes.texts]
    assert percent_up(guess_bound(dp.PureDP(1), 0.5)) in texts
