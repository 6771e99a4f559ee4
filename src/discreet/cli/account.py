"""What (sampled) Gaussian steps cost, by every accountant that applies,
as a table and a picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from discreet.accounting.approximations import clt_mu_subsampled_approximation
from discreet.accounting.guarantees import GDP
from discreet.accounting.plan import steps_pld
from discreet.accounting.renyi.mechanisms import sampled_gaussian_rdp
from discreet.accounting.sampling import PoissonSampling
from discreet.exact import decimal_text
from discreet.neighbors import AddRemove


def account_rows(
    *, sigma: float, delta: float, steps: int, sampling_rate: float, scheme: str
) -> list[tuple[str, str, str]]:
    """(accountant, ε, what it is): certified ones first, the approximation last and named so."""
    low, high = steps_pld(sigma, steps, sampling_rate, scheme).epsilon_bounds(delta)
    rows = [
        ("loss distribution (PLD)", decimal_text(high, 6), "certified"),
        ("its lower bound", decimal_text(low, 6), "no accountant can do better"),
    ]
    if sampling_rate < 1 and scheme == "poisson":
        sampling = PoissonSampling(sampling_rate)
        curve = sampled_gaussian_rdp(
            noise_multiplier=sigma, sampling=sampling, neighbors=AddRemove(), steps=steps
        )
        rows.append(("Rényi (RDP)", decimal_text(curve.epsilon_at(delta), 6), "certified"))
        limit = GDP(
            clt_mu_subsampled_approximation(
                noise_multiplier=sigma, sampling=sampling, steps=steps
            ).value
        )
        rows.append(
            (
                "central limit (CLT)",
                decimal_text(limit.epsilon_at(delta), 6),
                "an approximation: no guarantee, nothing can charge it",
            )
        )
    return rows


def account_table(
    *, sigma: float, delta: float, steps: int, sampling_rate: float, scheme: str
) -> Any:
    from rich import box
    from rich.table import Table

    sample = (
        "" if sampling_rate == 1 else f", {scheme} samples of rate {decimal_text(sampling_rate)}"
    )
    table = Table(
        title=f"{steps} Gaussian steps, σ = {decimal_text(sigma)}{sample}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("accountant", f"ε at δ = {decimal_text(delta)}", ""):
        table.add_column(name, justify="right" if name.startswith("ε") else "left")
    for row in account_rows(
        sigma=sigma, delta=delta, steps=steps, sampling_rate=sampling_rate, scheme=scheme
    ):
        table.add_row(*row)
    return table


def plot_account(
    path: Path, *, sigma: float, steps: int, sampling_rate: float, scheme: str
) -> None:
    """A picture of ε(δ) of the steps."""
    from discreet.plots.accounting import plot_epsilon_delta

    plot_epsilon_delta(
        steps_pld(sigma, steps, sampling_rate, scheme),
        labels=[f"{steps} steps, σ = {decimal_text(sigma)}"],
        path=path,
        points=24,
    )
