"""Golden cases beside single questions: answers of results, accounting, local privacy, ledgers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import golden_asks as asks
import golden_internals as inside
import numpy as np
from golden_accounting import BOXES, accounting, powers
from golden_data import RELATIONS, SCHEMA, Sources, write_csv, write_parquet
from golden_local import local_calls
from golden_told import attempt, ledger_told, plain, refusal, settled, told

import discreet as dp
from discreet.testing import seeded_session

Case = Callable[[Sources], Any]
BUDGET = dp.ApproxDP(900, 0.5)
GDP, PURE, APPROX, ZCDP = (asks.SPENDS[name] for name in ("gdp", "pure", "approx", "zcdp"))


def cases() -> Iterator[tuple[str, Case]]:
    """All of them, by name."""
    yield from method_cases()
    yield from residual_cases()
    yield from watch_cases()
    yield from call_cases("accounting", accounting())
    yield from call_cases("power", powers())
    yield from call_cases("local", local_calls())
    yield from ledger_cases()
    yield from refusal_cases()
    yield from cell_cases()
    yield from file_cases()
    yield from sklearn_cases()
    yield "simulation/clamped mean/replace/arrays", simulation
    yield "commands/account/-/-", commands


def call_cases(group: str, calls: dict[str, Callable[[], Any]]) -> Iterator[tuple[str, Case]]:
    """Cases that read no data."""
    for name, call in calls.items():
        yield f"{group}/{name}", lambda sources, call=call: attempt(call)


# ── what results answer beside their summary ──────────────────────────────────────────────────────


def _all_tests(result: Any) -> Any:
    sides = ("two-sided", "less", "greater")
    return [plain(result.test(alternative=side)) for side in sides]


METHODS: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
    "standard deviation": ("variance", "gdp", lambda r: r.standard_deviation(0.9)),
    "proportion tests": (
        "proportion",
        "gdp",
        lambda r: [
            attempt(lambda s=side, m=method: told(r.test(0.4, alternative=s, method=m)))
            for side in ("two-sided", "less", "greater")
            for method in (None, "conservative")
        ],
    ),
    "proportion tests of tulap": (
        "proportion tulap",
        "pure",
        lambda r: [attempt(lambda m=m: r.test(0.35, method=m)) for m in TEST_METHODS],
    ),
    "proportion tests of a pure count": (
        "proportion",
        "pure",
        lambda r: [attempt(lambda m=m: r.test(0.35, method=m)) for m in TEST_METHODS],
    ),
    "proportion intervals": (
        "proportion",
        "gdp",
        lambda r: [attempt(lambda m=m: r.confidence_interval(0.9, method=m)) for m in INTERVALS],
    ),
    "proportion intervals of tulap": (
        "proportion tulap",
        "approx",
        lambda r: [attempt(lambda m=m: r.confidence_interval(0.9, method=m)) for m in INTERVALS],
    ),
    "ecdf": (
        "ecdf",
        "gdp",
        lambda r: {
            "band": r.band(0.9),
            "pointwise band": r.band(0.9, kind="pointwise", target="data"),
            "cdf": r.cdf([0, 33.3, 50, 90]),
            "consistent cdf": r.cdf([0, 33.3, 50, 90], consistent=True),
            "interval": r.cdf_interval([20, 55], 0.9),
            "counts": r.counts(),
            "consistent counts": r.counts(consistent=True),
            "quantiles": r.quantiles([0.1, 0.5, 0.8], 0.9),
        },
    ),
    "density": (
        "density",
        "gdp",
        lambda r: {
            "band": r.band(0.9),
            "shares": r.shares(consistent=True),
            "pdf": r.pdf([10, 45, 99], consistent=True),
        },
    ),
    "covariance": (
        "covariance",
        "gdp",
        lambda r: [r.matrix, r.between("income", "age", 0.9), r.positive_definite()],
    ),
    "correlation": (
        "correlation",
        "gdp",
        lambda r: [r.matrix, r.between("income", "after"), r.positive_definite()],
    ),
    "comparison": (
        "compare",
        "gdp",
        lambda r: {
            "share": r.share(0.9),
            "contrast": r.contrast("b", baseline="a", level=0.9),
            "contrast of the data": r.contrast("c", baseline="b", target="data"),
            "test": r.test(few=199, many=399),
            "pair": r.test(group="b", baseline="c", alternative="less", few=199, many=399),
        },
    ),
    "means": (
        "compare means",
        "gdp",
        lambda r: {
            "means": r.means(0.9),
            "test": r.test(few=199, many=399),
            "pair": r.test(group="b", baseline="a", alternative="greater", few=199, many=399),
        },
    ),
    "mean test": ("mean test", "gdp", _all_tests),
    "mean test of a pure spend": ("mean test", "pure", _all_tests),
    "paired test": ("paired test", "gdp", _all_tests),
    "fit": ("goodness of fit", "gdp", lambda r: [r.test(few=199, many=399), r.expected]),
    "simultaneous": ("independence", "gdp", lambda r: r.simultaneous_intervals(0.9)),
    "rank test": (
        "rank test",
        "gdp",
        lambda r: r.test(group="b", baseline="a", alternative="less", few=199, many=399),
    ),
    "open table": ("open table", "approx", lambda r: [r.show_probability(n) for n in (1, 9, 40)]),
    "score gap": ("select", "gdp", lambda r: [r.score_gap(0.9), r.statement(0.9)]),
    "score gap of top": ("top", "pure", lambda r: [r.score_gap(0.9), r.statement(0.9)]),
    "threshold": ("above threshold", "gdp", lambda r: [r.score_gap(0.9), r.statement(0.9)]),
    "unbounded mean": ("unbounded mean", "gdp", lambda r: [r.clipped(0.9), r.worst_case(0.9)]),
    "location": ("location", "gdp", lambda r: [r.inside(), r.half_width]),
    "regression": (
        "ols",
        "gdp",
        lambda r: {
            "interval": r.confidence_interval(0.9),
            "of the data": attempt(lambda: r.confidence_interval(0.9, target="data")),
            "test": r.test([[0, 1, 0, 0], [0, 0, 1, 0]], [0.5, 0]),
            "ellipse": r.ellipse("after", r.names[-1], 0.9, points=8),
            "predict": r.predict([[1, 40, 0, 0], [1, 60, 0, 1]], 0.9),
        },
    ),
    "regression by gradients": (
        "ols gradient",
        "gdp",
        lambda r: [r.lecture_interval(0.9), r.confidence_interval(0.9)],
    ),
    "regression by moments": (
        "ols moments",
        "gdp",
        lambda r: [r.confidence_interval(0.9), r.test([[0, 1, 0, 0]])],
    ),
    "logistic": (
        "logistic",
        "gdp",
        lambda r: [r.predict([[1, 30], [1, 60]], 0.9), r.test([[0, 1]])],
    ),
}
TEST_METHODS = (None, "umpu", "conservative", "fiducial", "exact", "score")
INTERVALS = (None, "exact", "conservative", "fiducial", "score", "wald", "wilson")


def method_cases() -> Iterator[tuple[str, Case]]:
    """Tests, bands, contrasts and predictions of one result of each kind."""
    every = asks.ASKS | asks.SEARCHES | asks.FITS

    def case(name: str, relation: str) -> Case:
        question, spend, method = METHODS[name]

        def run(sources: Sources) -> Any:
            box = dp.Ledger.open(BUDGET, pure=100)
            session = seeded_session(sources.data("arrays", relation), box, name)
            try:
                result = every[question](session, asks.SPENDS[spend], key="golden")
            except dp.DiscreetError as error:
                return refusal(error)
            return attempt(lambda: method(settled(result)))

        return run

    for name in METHODS:
        group = "fits-methods" if METHODS[name][0] in asks.FITS | asks.SEARCHES else "methods"
        for relation in ("replace", "addremove"):
            yield f"{group}/{name}/{relation}/arrays", case(name, relation)


def residual_cases() -> Iterator[tuple[str, Case]]:
    """Residuals of fits of every kind that has them."""

    def case(name: str, relation: str, spend: str) -> Case:
        def run(sources: Sources) -> Any:
            data, box = sources.data("parquet", relation), dp.Ledger.open(BUDGET, pure=100)
            session = seeded_session(data, box, name)
            fit = asks.FITS[name](session, dp.GDP(3), key="fit")
            bins = 8 if spend == "gdp" else [-2, -1, 0, 1, 2]

            def ask() -> Any:
                spent = asks.SPENDS[spend]
                return told(dp.residuals(session, fit, spend=spent, bins=bins, key="golden"))

            return attempt(ask)

        return run

    for name in ("ols", "ols where", "ols moments", "robust", "own psi", "logistic"):
        for relation in ("replace", "addremove-unit"):
            for spend in ("gdp", "pure"):
                yield f"residuals/{name}/{relation}/{spend}", case(name, relation, spend)


def watch_cases() -> Iterator[tuple[str, Case]]:
    """A noisy threshold that stays open, asked one count after another."""
    filters = [
        {"region": "W"},
        {"region": "E"},
        {"age": (18, 60)},
        {"member": True},
        {"arm": "a"},
        {"arm": "b"},
    ]

    def case(relation: str, spend: str) -> Case:
        def run(sources: Sources) -> Any:
            box = dp.Ledger.open(BUDGET, pure=100)
            session = seeded_session(sources.data("csv", relation), box, f"watch {spend}")
            watch = dp.watch(session, 80, spend=asks.SPENDS[spend], positives=2)
            answers = [attempt(lambda w=where: watch.above(w)) for where in filters]
            return {"answers": answers, "left": watch.left, "ledger": ledger_told(session.ledger)}

        return run

    for relation in RELATIONS:
        for spend in asks.SPENDS:
            yield f"watch/80/{relation}/{spend}", case(relation, spend)


# ── ledgers, refusals, cells ──────────────────────────────────────────────────────────────────────


def ledger_cases() -> Iterator[tuple[str, Case]]:
    """Reservations, keys asked again and budgets that end, in every box."""

    def case(name: str) -> Case:
        def run(sources: Sources) -> Any:
            ledger = BOXES[name]()
            session = seeded_session(sources.data("arrays", "replace"), ledger, name)
            small: dict[str, Any] = {
                "gdp": dp.GDP(0.3),
                "pure": dp.PureDP(0.2),
                "approx": dp.ApproxDP(0.5, 1e-6),
                "zcdp": dp.ZCDP(0.02),
            }
            found: list[Any] = []
            for label, spend in small.items():
                found.append(attempt(lambda s=spend, k=label: _open_reservation(session, s, k)))
                found.append(
                    attempt(lambda s=spend, k=label: told(asks.ASKS["mean"](session, s, key=k)))
                )
                found.append(attempt(lambda s=spend, k=label: _again(session, s, k)))
            found.append(attempt(lambda: told(asks.FITS["ols"](session, dp.GDP(0.5), key="fit"))))
            found.append(attempt(lambda: plain(ledger.close_reservation("set aside pure").exact())))
            found.append(attempt(lambda: dp.mean(session, "age", spend=dp.GDP(50))))
            found.append(attempt(lambda: plain(ledger.spent_guarantee(1e-5).to_dict())))
            found += [_replayed(ledger, accountant) for accountant in ACCOUNTANTS]
            return {"found": found, "ledger": ledger_told(ledger)}

        return run

    for name in BOXES:
        yield f"fits-ledger/{name}/replace/arrays", case(name)


ACCOUNTANTS = ("pld", "rdp", "gdp", "zcdp")


def _open_reservation(session: Any, spend: Any, label: str) -> Any:
    session.reserve(spend, key=f"set aside {label}", delta=Fraction(0))
    return plain(session.ledger.left_in(f"set aside {label}").exact())


def _again(session: Any, spend: Any, key: str) -> Any:
    before = session.ledger.head
    again = asks.ASKS["mean"](session, spend, key=key)
    other = attempt(lambda: asks.ASKS["sum"](session, spend, key=key))
    return [str(again.release.integers), session.ledger.head == before, other]


def _replayed(ledger: Any, accountant: str) -> Any:
    def told_replay() -> Any:
        found = ledger.replay(accountant, delta=1e-5)
        return [plain(found), str(found)]

    return attempt(told_replay)


def refusal_cases() -> Iterator[tuple[str, Case]]:
    """What is refused before anything is spent, in words."""
    wrong: dict[str, Callable[[Any], Any]] = {
        "undeclared column": lambda s: dp.mean(s, "incone", spend=GDP),
        "wrong kind": lambda s: dp.mean(s, "region", spend=GDP),
        "no spend": lambda s: dp.mean(s, "income", spend=0.5),  # type: ignore[arg-type]
        "unknown level": lambda s: dp.count(s, spend=GDP, where={"region": "Q"}),
        "bad filter": lambda s: dp.count(s, spend=GDP, where={"age": (30, 20)}),
        "open column": lambda s: dp.count(s, spend=GDP, where={"town": "x"}),
        "bad bins": lambda s: dp.histogram(s, "income", bins=[5, 1], spend=GDP),
        "bad quantile": lambda s: dp.quantile(s, "income", 1.5, spend=GDP),
        "bad method": lambda s: dp.quantile(s, "income", 0.5, method="best", spend=GDP),
        "bad formula": lambda s: dp.ols(s, "income ~ nothing", spend=GDP),
        "bad solver": lambda s: dp.ols(s, "income ~ after", solver="fast", spend=GDP),
        "bad psi": lambda s: dp.m_estimate(s, "income ~ after", spend=GDP),
        "falling psi": lambda s: dp.m_estimate(s, "income ~ after", psi=lambda r: -r, spend=GDP),
        "bad response": lambda s: dp.logistic(s, "income ~ after", spend=GDP),
        "no candidates": lambda s: dp.select(s, {}, spend=GDP),
        "too many": lambda s: dp.top(s, "arm", 9, spend=GDP),
        "same column": lambda s: dp.independence_test(s, "arm", "arm", spend=GDP),
        "bad shares": lambda s: dp.goodness_of_fit(s, "arm", [0.5, 0.5], spend=GDP),
        "bad key": lambda s: dp.mean(s, "income", spend=GDP, key=""),
        "over budget": lambda s: dp.mean(s, "income", spend=dp.GDP(100)),
        "no delta": lambda s: dp.table(s, by="town", spend=GDP),
        "bad json": lambda s: dp.from_json("{}"),
        "not a session": lambda s: dp.mean(None, "income", spend=GDP),  # type: ignore[arg-type]
        "no relation": lambda s: dp.from_arrays({"x": [1.0]}, schema={"x": dp.Real(0, 1)}),
        "no column": lambda s: dp.from_arrays(
            {"x": [1.0]}, schema={"z": dp.Real(0, 1)}, neighbors=dp.Replace()
        ),
        "bad bounds": lambda s: dp.Real(1, 0),
        "bad levels": lambda s: dp.Category(["a", "a"]),
        "bad guarantee": lambda s: dp.GDP(-1),
        "bad delta": lambda s: dp.ApproxDP(1, 2),
    }

    def case(name: str, relation: str) -> Case:
        def run(sources: Sources) -> Any:
            ledger = dp.Ledger.open(dp.GDP(2))
            session = seeded_session(sources.data("arrays", relation), ledger, name)
            head = ledger.head
            found = attempt(lambda: wrong[name](session))
            return {"found": found, "spent nothing": ledger.head == head}

        return run

    for name in wrong:
        for relation in ("replace", "addremove-unit"):
            yield f"refusals/{name}/{relation}/arrays", case(name, relation)


def cell_cases() -> Iterator[tuple[str, Case]]:
    """Cells of every kind that does not fit its column."""
    odd: list[Any] = [1.5, None, math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324, "2.5", " 3"]
    odd += ["1e1", "x", "", True, False, 10**30, -(10**30), "true", "FALSE", 7, -7, [1], b"4", "A"]
    schema = {
        "real": dp.Real(-4, 6, missing=1),
        "fine": dp.Real(-4, 6, bits=32),
        "whole": dp.Integer(-5, 8),
        "yes": dp.Boolean(missing=True),
        "level": dp.Category(["A", "x", "7", "true"]),
        "open": dp.Open(),
    }

    def case(neighbors: Any) -> Case:
        def run(sources: Sources) -> Any:
            columns = {name: list(odd) for name in schema} | {"person": [9, *odd[1:]]}
            data = dp.from_arrays(columns, schema=schema, neighbors=neighbors)
            session = seeded_session(data, dp.Ledger.open(BUDGET, pure=100), "cells")
            found = {
                name: attempt(
                    lambda n=name: told(dp.mean(session, n, spend=PURE, key=n), full=False)
                )
                for name in ("real", "fine", "whole", "yes")
            }
            for name in ("level", "open"):
                spend, options = (APPROX, {"delta": 1e-5}) if name == "open" else (PURE, {})
                found[name] = attempt(
                    lambda n=name, s=spend, o=options: told(
                        dp.table(session, by=n, spend=s, key=n, **o), full=False
                    )
                )
            return found

        return run

    for name, neighbors in RELATIONS.items():
        yield f"cells/odd/{name}/arrays", case(neighbors)


def file_cases() -> Iterator[tuple[str, Case]]:
    """The survey in several files, read as one table."""

    def case(format: str, relation: str) -> Case:
        write = write_csv if format == "csv" else write_parquet

        def run(sources: Sources) -> Any:
            paths = [sources.folder / f"part-{place}.{format}" for place in range(3)]
            for place, path in enumerate(paths):
                if not path.exists():
                    part = slice(100 * place, 100 * place + 100)
                    write({name: cells[part] for name, cells in sources.table.items()}, path)
            read = dp.read_csv if format == "csv" else dp.read_parquet
            data = read(paths, schema=SCHEMA, neighbors=RELATIONS[relation])
            session = seeded_session(data, dp.Ledger.open(BUDGET, pure=100), "files")
            names = ("mean", "table of counts", "median", "covariance", "open table", "select")
            return {
                name: attempt(lambda n=name: told(asks.ASKS[n](session, GDP, key=n), full=False))
                for name in names
            }

        return run

    for format in ("csv", "parquet"):
        for relation in RELATIONS:
            yield f"files/three/{relation}/{format}", case(format, relation)


def sklearn_cases() -> Iterator[tuple[str, Case]]:
    """The scikit-learn wrappers, on an open session."""

    def case(name: str) -> Case:
        def run(sources: Sources) -> Any:
            from discreet import sklearn

            models: dict[str, tuple[Any, str, list[list[float]]]] = {
                "linear": (
                    sklearn.PrivateLinearRegression(GDP, neighbors=dp.Replace()),
                    "income ~ after + score",
                    [[40.0, 0.5], [60.0, -1.0]],
                ),
                "huber": (
                    sklearn.PrivateHuberRegressor(GDP, neighbors=dp.Replace()),
                    "income ~ after + score",
                    [[40.0, 0.5], [60.0, -1.0]],
                ),
                "logistic": (
                    sklearn.PrivateLogisticRegression(GDP, neighbors=dp.Replace()),
                    "member ~ income",
                    [[40.0], [60.0]],
                ),
            }
            model, formula, rows = models[name]
            session = seeded_session(sources.data("arrays", "replace"), dp.GDP(5), name)
            model.fit(session, formula)
            found = [plain(model.coef_), plain(model.intercept_), told(model.result_, full=False)]
            return [*found, attempt(lambda: model.predict(np.array(rows)))]

        return run

    for name in ("linear", "huber", "logistic"):
        yield f"sklearn/{name}/replace/arrays", case(name)


def simulation(sources: Sources) -> Any:
    """Inference by simulation from a released mean."""
    session = seeded_session(sources.data("arrays", "replace"), dp.GDP(5), "simulation")
    released = inside.released_moments(settled(dp.mean(session, "income", spend=GDP, key="golden")))

    def total(theta: Any, uniform: Any) -> Any:
        spread = 40 * (uniform - 0.5)
        return released.of(theta[:, None] + spread)[:, 0]

    options: dict[str, Any] = {"size": released.rows, "seed": "golden"}
    value, noise = released.values[0], released.noises[0]
    one = inside.matched_draws(value, total, noise, low=0, high=100, draws=60, **options)
    rows = released.rows
    boot = inside.parametric_bootstrap(
        value, total, noise, lambda release: release / rows, draws=60, **options
    )
    kept = inside.reproduced_set(
        released.values[:1], total, (noise,), np.linspace(40, 60, 11), draws=39, **options
    )
    teaching = inside.output_perturbation(
        [[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 3.0]],
        [1.0, 0.0, 3.5, 4.0],
        [0.1, -0.2],
        epsilon=1.0,
        delta=1e-5,
    )
    return {
        "released": plain([released.values, rows, released.low, released.high]),
        "matched": plain([one.interval(0.9), one.covering_interval(0.8), one.p_value(50)]),
        "bootstrap": plain([boot.std_error, boot.bias, boot.interval(0.9)]),
        "kept": plain([kept.accepted(0.9), kept.interval(level=0.9)]),
        "teaching": plain(teaching),
    }


def commands(sources: Sources) -> Any:
    """The tables of the command line."""
    from typer.testing import CliRunner

    asked = [
        ["account", "--sigma", "2", "--delta", "1e-5", "--steps", "3"],
        [
            "account",
            "--sigma",
            "1.5",
            "--delta",
            "1e-5",
            "--steps",
            "20",
            "--sampling-rate",
            "0.05",
        ],
    ]
    results = [CliRunner().invoke(inside.command_line, words) for words in asked]
    return [{"code": one.exit_code, "text": one.output} for one in results]
