"""Golden cases of accounting and of power, which read no data."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import golden_asks as asks
import golden_internals as inside
from golden_told import attempt, ledger_told, plain

import discreet as dp

GDP, PURE, APPROX = (asks.SPENDS[name] for name in ("gdp", "pure", "approx"))

GUARANTEES: dict[str, Any] = {
    "pure": dp.PureDP(0.75),
    "approx": dp.ApproxDP(0.9, 1e-6),
    "gdp": dp.GDP(0.6),
    "zcdp": dp.ZCDP(0.17),
    "rdp": dp.RDP((2.0, 4.0, 8.0, 32.0), (0.3, 0.55, 1.1, 4.0)),
    "tradeoff": dp.TradeOff.through([(0, 0.95), (0.1, 0.6), (0.35, 0.3), (0.8, 0.05), (1, 0)]),
}
POISSON, FIXED = inside.PoissonSampling(0.05), inside.FixedSizeSampling(50, 1000)


def _said(guarantee: Any) -> Any:
    """All that a guarantee says of itself."""
    return {
        "text": str(guarantee),
        "record": attempt(guarantee.to_dict) if hasattr(guarantee, "to_dict") else None,
        "epsilon": [attempt(lambda d=d: guarantee.epsilon_at(d)) for d in (1e-2, 1e-5, 1e-9)],
        "delta": [attempt(lambda e=e: guarantee.delta_at(e)) for e in (0.0, 0.5, 2.0)],
        "tradeoff": [attempt(lambda a=a: guarantee.tradeoff(a)) for a in (0.0, 0.01, 0.3, 0.9)],
    }


def _pairs(action: Callable[[Any, Any], Any]) -> Any:
    return {
        f"{one} {other}": attempt(lambda a=one, b=other: action(GUARANTEES[a], GUARANTEES[b]))
        for one, other in itertools.combinations_with_replacement(GUARANTEES, 2)
    }


def _composed(first: Any, second: Any) -> Any:
    both = dp.compose(first, second)
    return [str(both), attempt(lambda: both.epsilon_at(1e-5)), attempt(lambda: both.delta_at(1.0))]


def _pld_said(pld: Any, priced: bool) -> Any:
    deltas = (1e-3, 1e-6) if priced else (1e-2, 1e-3)  # where atoms meet densities, less is slow
    return {
        "epsilon": [pld.epsilon_at(delta) for delta in deltas],
        "bounds": pld.epsilon_bounds(deltas[0]),
        "delta": [pld.delta_at(epsilon) for epsilon in (0.25, 1.0)],
        "tradeoff": pld.tradeoff(0.1),
        "steps": pld.steps,
        "least mu": attempt(lambda: inside.least_mu(pld, 1e-6)) if priced else None,
    }


def _plds() -> dict[str, Callable[[], Any]]:
    gaussian, laplace = inside.gaussian_pld(0.4), inside.laplace_pld(0.5)
    return {
        "gaussian": lambda: gaussian.self_compose(3),
        "laplace": lambda: laplace.self_compose(2),
        "geometric": lambda: inside.geometric_pld(0.3, 2).self_compose(4),
        "randomized response": lambda: inside.randomized_response_pld(0.8, 4),
        "exponential": lambda: inside.exponential_pld(0.7).self_compose(3),
        "approx": lambda: inside.approx_pld(0.4, 1e-7).self_compose(2),
        "poisson": lambda: inside.poisson_subsampled(inside.gaussian_pld(1.0), 0.02).self_compose(
            50
        ),
        "fixed size": lambda: inside.fixed_size_subsampled(inside.gaussian_pld(0.8), 0.1),
        "mixed": lambda: inside.compose_all([(gaussian, 2), (laplace, 3)]),
    }


def accounting() -> dict[str, Callable[[], Any]]:
    """Guarantees, what they compose and convert to, samples, loss distributions, plans, boxes."""
    calls: dict[str, Callable[[], Any]] = {}
    for name, one in GUARANTEES.items():
        calls[f"guarantee/{name}"] = lambda one=one: _said(one)
        calls[f"explain/{name}"] = lambda one=one: [
            attempt(lambda: dp.explain(one)),
            attempt(lambda: dp.explain(one, false_alarm=0.01, prior=0.2, delta=1e-5)),
        ]
        calls[f"group/{name}"] = lambda one=one: [
            attempt(lambda s=s: str(one.group(s))) for s in (2, 5)
        ]
        for sampling, label in ((POISSON, "poisson"), (FIXED, "fixed")):
            for neighbors in (dp.Replace(), dp.AddRemove()):
                words = f"sampled/{name}/{label}/{neighbors.name}"
                calls[words] = lambda one=one, sampling=sampling, neighbors=neighbors: [
                    attempt(lambda: _said(inside.amplify(one, sampling, neighbors))),
                    attempt(
                        lambda: inside.amplify_renyi(
                            one, sampling, neighbors, orders=(2, 5)
                        ).to_dict()
                    ),
                ]
    calls["compose/pairs"] = lambda: _pairs(_composed)
    calls["covers/pairs"] = lambda: _pairs(lambda a, b: [a.covers(b), b.covers(a)])
    for name in ("pure", "approx"):
        one = GUARANTEES[name]
        calls[f"composition/{name}"] = lambda one=one: [
            str(inside.basic(one, times=7)),
            plain(inside.advanced(one, times=40, slack=1e-6).to_dict()),
            plain(inside.advanced_dwork_rothblum_vadhan(one, times=40, slack=1e-6).to_dict()),
            [inside.optimal(one, times=12).delta_at(epsilon) for epsilon in (0.5, 4.0)],
            [inside.optimal(one, times=12).epsilon_at(delta) for delta in (1e-3, 2e-5)],
            str(inside.to_replace(one)),
        ]
    calls["composition/filter"] = lambda: inside.adaptive_filter_epsilon([0.1, 0.2, 0.3], 1e-6)
    calls["renyi/conversions"] = lambda: {
        name: [
            attempt(lambda one=one: inside.rdp_of(one, (2, 3, 7)).to_dict()),
            attempt(lambda one=one: inside.zcdp_of(one).to_dict()),
        ]
        for name, one in GUARANTEES.items()
    }
    calls["renyi/sampled gaussian"] = lambda: _said(
        inside.sampled_gaussian_rdp(
            noise_multiplier=1.1,
            sampling=POISSON,
            neighbors=dp.AddRemove(),
            steps=100,
            orders=(2, 3, 5, 9, 17),
        )
    )
    calls["steps"] = lambda: [
        inside.gaussian_sigma_for_zcdp(sensitivity=2, rho=0.1, steps=4),
        inside.gaussian_sigma_for_approx(sensitivity=2, epsilon=1, delta=1e-6, steps=4),
        inside.laplace_scale_for_steps(
            sensitivity=1, sampling=FIXED, neighbors=dp.Replace(), epsilon=1, steps=10
        ),
        inside.largest_rate_for_pure(epsilon=2, target=0.5),
    ]
    for name, make in _plds().items():
        calls[f"pld/{name}"] = lambda make=make, priced=name != "laplace": _pld_said(make(), priced)
    calls["tradeoff"] = lambda: _tradeoffs(GUARANTEES["tradeoff"])
    calls |= _plans() | _boxes()
    return calls


def _tradeoffs(curve: Any) -> Any:
    return {
        "vertices": curve.vertices,
        "inverse": curve.inverse().vertices,
        "symmetric": curve.symmetrised().vertices,
        "twice": curve.repeat(2).vertices,
        "tensor": curve.tensor(curve.inverse()).vertices,
        "sampled": curve.subsampled(0.25).vertices,
        "amplified": curve.amplified(FIXED, dp.Replace()).vertices,
        "composed": curve.compose(dp.PureDP(0.3)).vertices,
        "gap": curve.gap(dp.GDP(1)),
    }


def _plans() -> dict[str, Callable[[], Any]]:
    asked: dict[str, dict[str, Any]] = {
        "sigma": {"steps": 3},
        "sigma sampled": {"steps": 20, "sampling_rate": 0.05},
        "sigma fixed size": {"steps": 10, "sampling_rate": 0.1, "scheme": "fixed"},
        "steps": {"sigma": 8.0},
        "rate": {"sigma": 2.0, "steps": 30, "sampling_rate": None},
        "laplace": {"sigma": 3.0, "noise": "laplace", "delta": 0.02},
        "renyi": {"steps": 10, "sampling_rate": 0.1, "accountant": "rdp"},
        "nothing missing": {"sigma": 1.0, "steps": 3},
    }

    def made(options: dict[str, Any]) -> Any:
        plan = dp.plan(**({"epsilon": 1.2, "delta": 1e-5} | options))
        return [plain(plan), str(plan), plan.pld.steps]

    calls: dict[str, Callable[[], Any]] = {
        f"plan/{name}": lambda options=options: made(options) for name, options in asked.items()
    }
    calls["rows needed"] = lambda: [
        dp.rows_needed(spend, width=width, standard_deviation=12, low=0, high=100, level=level)
        for spend in asks.SPENDS.values()
        for width in (0.5, 4)
        for level in (0.8, 0.99)
    ]
    return calls


BOXES: dict[str, Callable[[], Any]] = {
    "gdp": lambda: dp.Ledger.open(dp.GDP(2)),
    "pure": lambda: dp.Ledger.open(dp.PureDP(4)),
    "approx": lambda: dp.Ledger.open(dp.ApproxDP(3, 1e-5)),
    "approx split": lambda: dp.Ledger.open(dp.ApproxDP(3, 1e-5), pure=1.5, delta0=2e-6),
    "zcdp": lambda: dp.Ledger.open(dp.ZCDP(2)),
    "zcdp delta": lambda: dp.Ledger.open(dp.ZCDP(2), delta0=1e-6),
}


def _boxes() -> dict[str, Callable[[], Any]]:
    def opened(name: str) -> Any:
        ledger = BOXES[name]()
        return [plain(ledger.box), ledger.guarantee(), str(ledger.budget), ledger_told(ledger)]

    def refused() -> Any:
        wrong: list[Callable[[], Any]] = [
            lambda: dp.Ledger.open(dp.GDP(1), pure=0.5),
            lambda: dp.Ledger.open(dp.ApproxDP(1, 1e-6), pure=1),
            lambda: dp.Ledger.open(dp.ApproxDP(1, 1e-6), delta0=1e-5),
            lambda: dp.Ledger.open(GUARANTEES["rdp"]),
            lambda: dp.Ledger.open(None),
        ]
        return [attempt(call) for call in wrong]

    calls: dict[str, Callable[[], Any]] = {
        f"box/{name}": lambda name=name: opened(name) for name in BOXES
    }
    return calls | {"box/refused": refused}


# ── power ─────────────────────────────────────────────────────────────────────────────────────────


def powers() -> dict[str, Callable[[], Any]]:
    """Power and sample size of every test, for each kind of spend."""
    spread = {"difference": 1.5, "standard_deviation": 9, "low": 0, "high": 40}
    tests: dict[str, tuple[Any, dict[str, Any]]] = {
        "proportion": (dp.proportion_test, {"null": 0.5, "share": 0.6}),
        "compare": (dp.compare, {"baseline": 0.3, "share": 0.42}),
        "mean": (dp.mean_test, spread),
        "paired": (dp.paired_test, spread),
        "means": (dp.compare_means, spread),
        "independence": (dp.independence_test, {"table": [[0.3, 0.2], [0.15, 0.35]]}),
        "fit": (
            dp.goodness_of_fit,
            {"expected": [0.25, 0.25, 0.5], "shares": [0.35, 0.25, 0.4]},
        ),
        "rank": (dp.rank_test, {"table": [[0.2, 0.2, 0.1], [0.1, 0.15, 0.25]]}),
        "parts": (dp.subsample_test, {"effect": 0.35}),
    }

    def planned(test: Any, spend: Any, assumed: dict[str, Any]) -> Any:
        found = [
            dp.power(test, rows=200, spend=spend, **assumed),
            dp.sample_size(test, spend=spend, power=0.7, alpha=0.1, **assumed),
        ]
        return [
            {"rows": one.rows, "power": one.power, "text": str(one.summary()), "say": one.headline}
            for one in found
        ]

    calls: dict[str, Callable[[], Any]] = {}
    for name, (test, assumed) in tests.items():
        for label, spend in asks.SPENDS.items():
            calls[f"{name}/{label}"] = lambda t=test, s=spend, a=assumed: planned(t, s, a)
    calls["proportion/tulap"] = lambda: planned(
        dp.proportion_test, APPROX, {"null": 0.5, "share": 0.6, "noise": "tulap"}
    )
    calls["proportion/one-sided"] = lambda: [
        dp.power(
            dp.proportion_test, rows=90, null=0.3, share=0.4, spend=PURE, alternative=side
        ).power
        for side in ("less", "greater")
    ]
    calls["refused"] = lambda: [
        attempt(lambda: dp.power(dp.mean, rows=10, spend=GDP)),
        attempt(lambda: dp.power(dp.compare, rows=10, spend=GDP, share=0.5)),
    ]
    return calls
