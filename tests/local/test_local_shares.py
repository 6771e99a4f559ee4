"""Shares from reports: unbiased, with both parts of the variance, intervals that cover (computed),
and total rules for bad reports.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet import client, local
from discreet.errors import InvalidParameter, NoTheorem
from discreet.local.binomials import LinkedCounts
from discreet.local.shares import SignedRows, on_simplex, statistics_of, walsh_hadamard
from discreet.testing import seeded_reports

ABCD = client.Category(list("abcd"))
TRUE = np.array([0.6, 0.25, 0.15, 0.0])
SPECS: dict[str, Any] = {
    "answers": client.RandomizedResponse(ABCD, 1),
    "unary": client.UnaryResponse(ABCD, 1),
    "one block": client.HadamardResponse(ABCD, 1, 1),
    "two blocks": client.HadamardResponse(ABCD, 2, 2),
    "four blocks": client.HadamardResponse(ABCD, 3, 4),
}
N = 40_000
VALUES = np.repeat(list("abcd"), (TRUE * N).astype(int))


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    return {
        name: local.shares(spec, seeded_reports(spec, VALUES, name)) for name, spec in SPECS.items()
    }


@pytest.mark.parametrize("name", SPECS)
def test_estimates_are_unbiased_in_exact_expectation(name: str) -> None:
    """Expected counts go in, true shares come out."""
    spec = SPECS[name]
    scale = 10**9
    if name == "unary":
        counts = sum(
            share * np.array([float(chance) for chance in spec.bit_law(code)])
            for code, share in enumerate(TRUE)
        )
    else:
        counts = sum(
            share * np.array([float(chance) for chance in spec.law(code)])
            for code, share in enumerate(TRUE)
        )
    made = local.Collected(spec, tuple(np.rint(counts * scale).astype(int).tolist()), scale)
    assert local.shares(spec, made).unbiased == pytest.approx(TRUE, abs=1e-7)


@pytest.mark.parametrize("name", SPECS)
def test_estimates_lie_near_the_truth_and_know_how_near(fitted: dict[str, Any], name: str) -> None:
    fit = fitted[name]
    assert fit.labels == list("abcd")
    assert np.all(np.abs(fit.unbiased - TRUE) < 6.5 * fit.std_errors)
    assert np.all((fit.params >= 0) & (fit.params <= 1))
    assert fit.on_simplex.sum() == pytest.approx(1)
    intervals = fit.confidence_interval(1 - 1e-9)
    assert np.all((intervals[:, 0] <= TRUE) & (intervals[:, 1] >= TRUE))
    inner, outer, wide = (
        fit.confidence_interval(0.95, target="data"),
        fit.confidence_interval(0.95),
        fit.confidence_interval(0.95, simultaneous=True),
    )
    assert np.all((outer >= 0) & (outer <= 1))
    assert np.all(np.diff(inner, axis=1) <= np.diff(outer, axis=1) + 1e-4)
    assert np.all(wide[:, 0] <= outer[:, 0])
    assert np.all(wide[:, 1] >= outer[:, 1])
    assert np.all((fit.noise_share > 0.3) & (fit.noise_share <= 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_standard_errors_are_those_of_many_repetitions(name: str) -> None:
    spec, reps, n = SPECS[name], 300, 500
    values = np.repeat(list("abcd"), (TRUE * n).astype(int))
    raw = np.array(
        [
            local.shares(spec, seeded_reports(spec, values, f"{name}{i}")).unbiased
            for i in range(reps)
        ]
    )
    expected = local.shares(spec, seeded_reports(spec, np.tile(values, 40), name)).quantity(
        target="data"
    ).std_error * np.sqrt(40)
    # 6 standard errors of a standard deviation from 300 repetitions
    assert raw.std(axis=0) == pytest.approx(expected, rel=0.25)
    assert raw.mean(axis=0) == pytest.approx(TRUE, abs=float(6.5 * expected.max() / np.sqrt(reps)))


def test_reference_estimator() -> None:
    """rr_estimator, and L3's two variances for n = 1000, δ₀ = ¼."""
    base, gain = 0.25, 0.5
    counts = LinkedCounts(np.array([100 * (base + gain * 0.3)]), 100, base, gain)
    sampling, privacy = counts.variances()
    assert counts.estimate[0] == pytest.approx(0.3)
    assert (sampling + privacy)[0] == pytest.approx(0.0096, abs=1e-12)
    thousand = LinkedCounts(np.array([1000 * 0.5]), 1000, base, gain)
    assert np.sqrt(thousand.variances()[1][0]) == pytest.approx(0.02739, abs=5e-6)
    assert counts.unbiased[0] == pytest.approx(2 * (0.4 - 0.25))


def test_the_biased_estimator_is_caught() -> None:
    """Positive control (reference.md L3): the share of ones in the reports is no estimate of the
    share.
    """
    spec = client.TwoCoinResponse(client.Boolean())
    answers = seeded_reports(spec, np.arange(20_000) < 2000, 3)
    fit = local.shares(spec, answers)
    assert abs(fit.unbiased[1] - 0.1) < 6 * fit.std_errors[1]
    assert abs(answers.mean() - 0.1) > 20 * fit.std_errors[1]
    assert answers.mean() == pytest.approx(0.25 + 0.1 / 2, abs=0.02)


@pytest.mark.parametrize("n", [1, 5, 30, 100])
@pytest.mark.parametrize(
    "spec",
    [
        client.RandomizedResponse(client.Boolean(), 0.5),
        client.RandomizedResponse(client.Integer(0, 9), 1),
        client.RandomizedResponse(client.Boolean(), 5),
        client.UnaryResponse(ABCD, 1),
        client.HadamardResponse(ABCD, 1, 1),
        client.TwoCoinResponse(client.Boolean()),
    ],
    ids=lambda spec: spec.kind,
)
def test_exact_intervals_cover_at_every_share(spec: Any, n: int) -> None:
    """Computed, not simulated: the binomial probability of the counts whose interval contains the
    share.
    """
    link = statistics_of(local.Collected(spec, (0,) * getattr(spec, "outputs", spec.size), 0))
    assert isinstance(link, LinkedCounts)
    x = np.arange(n + 1)
    counts = LinkedCounts(x.astype(float), n, link.base, link.gain)
    for level in (0.9, 0.95, 0.99):
        low, high = counts.exact_interval(level)
        assert np.all((low >= 0) & (low <= high) & (high <= 1))
        for share in (0.0, 1e-4, 0.01, 0.1, 0.37, 0.5, 0.9, 0.99, 1.0):
            law = binom.pmf(x, n, link.base + link.gain * share)
            assert law[(low <= share) & (share <= high)].sum() >= level - 1e-9
            p = counts.p_values(share, "two-sided")
            assert law[p <= 1 - level].sum() <= 1 - level + 1e-9
            assert np.all(
                (p > 1 - level + 1e-9) <= ((low <= share + 1e-9) & (share - 1e-9 <= high))
            )
    for side in ("greater", "less"):
        assert (
            binom.pmf(x, n, link.base + link.gain * 0.4)[counts.p_values(0.4, side) <= 0.05].sum()
            <= 0.05 + 1e-9
        )


def test_score_and_data_intervals_cover_nearly() -> None:
    n, x = 400, np.arange(401)
    for spec in (
        client.RandomizedResponse(client.Boolean(), 1),
        client.RandomizedResponse(client.Integer(0, 4), 2),
    ):
        p, q = float(spec.own), float(spec.other)
        counts = LinkedCounts(x.astype(float), n, q, p - q)
        score, data = counts.score_interval(0.95), counts.data_interval(0.95)
        for share in (0.0, 0.1, 0.3, 0.5, 0.9):
            law = binom.pmf(x, n, q + (p - q) * share)
            assert law[(score[0] <= share) & (share <= score[1])].sum() > 0.935
            own = round(share * n)
            given = np.convolve(
                binom.pmf(np.arange(own + 1), own, p), binom.pmf(np.arange(n - own + 1), n - own, q)
            )
            assert given[(data[0] <= share) & (share <= data[1])].sum() > 0.945


def test_intervals_of_several_blocks_cover() -> None:
    """Simulated from the law of signs: 4000 repetitions, limits five standard errors away."""
    rng = np.random.default_rng(5)
    spec = client.HadamardResponse(client.Integer(1, 60), 3)
    assert spec.blocks > 1
    kept, n = float(spec.kept), 2000
    for share, of_block in ((0.0, 0.0), (0.002, 0.05), (0.05, 0.1), (0.5, 0.6)):
        outside = (1 - kept) / spec.blocks
        inside = outside + kept * of_block
        counts = rng.multinomial(
            n, [(inside + kept * share) / 2, (inside - kept * share) / 2, 1 - inside], 4000
        )
        rows = SignedRows(
            (counts[:, 0] - counts[:, 1]).astype(float),
            (counts[:, 0] + counts[:, 1]).astype(float),
            n,
            kept,
            outside,
        )
        low, high = rows.interval(0.95, "population")
        assert np.mean((low <= share) & (share <= high)) > 0.95 - 5 * np.sqrt(0.95 * 0.05 / 4000)


@pytest.mark.slow
def test_goodness_of_fit_has_its_size_and_sees_a_difference() -> None:
    for spec in (SPECS["answers"], SPECS["unary"]):
        values = np.random.default_rng(8).choice(list("abcd"), (400, 1000), p=TRUE)
        fits = [
            local.shares(spec, seeded_reports(spec, row, f"fit{i}")) for i, row in enumerate(values)
        ]
        p = np.array([fit.goodness_of_fit(TRUE).p_value for fit in fits])
        assert abs(np.mean(p <= 0.1) - 0.1) < 5 * np.sqrt(0.09 / 400)
        together = sum((fit.collected for fit in fits[1:]), fits[0].collected)
        assert (
            local.shares(spec, together)
            .goodness_of_fit({"a": 0.55, "b": 0.25, "c": 0.15, "d": 0.05})
            .p_value
            < 1e-6
        )
    with pytest.raises(NoTheorem):
        local.shares(SPECS["one block"], []).goodness_of_fit(TRUE)
    with pytest.raises(InvalidParameter):
        fits[0].goodness_of_fit([0.5, 0.5])


def test_tests_by_label(fitted: dict[str, Any]) -> None:
    fit = fitted["answers"]
    assert fit.test(0.6, label="a").p_value > 1e-9
    assert fit.test(0.3, label="a").p_value < 1e-9
    assert fit.test(0.3, label="a", alternative="less").p_value > 0.99
    assert fit.p_values(0.1).shape == (4,)
    assert "share of a" in str(fit.test(0.6, label="a"))
    assert fit.test(0.3, label="a").rejects(0.01)
    yes = client.TwoCoinResponse(client.Boolean())
    assert (
        local.shares(yes, seeded_reports(yes, [True] * 300, 1)).test(0.2).parameter
        == "share of true"
    )
    for wrong in (
        lambda: fit.test(2, label="a"),
        lambda: fit.test(0.1, label="z"),
        lambda: fit.test(0.1),
        lambda: fit.p_values(0.1, alternative="both"),
        lambda: fit.confidence_interval(method="wald"),
        lambda: fit.p_values("0.1"),
    ):
        with pytest.raises(InvalidParameter):
            wrong()


FORGED: list[Any] = [
    "",
    "{}",
    "null",
    "[]",
    "not json",
    "{" * 100_000,
    '{"discreet":"report/1"}',
    b"\xff\xfe",
    7,
    None,
    object(),
    '{"discreet":"report/1","spec":"SPEC","answer":-1}',
    '{"discreet":"report/1","spec":"SPEC","answer":4}',
    '{"discreet":"report/1","spec":"SPEC","answer":1.0}',
    '{"discreet":"report/1","spec":"SPEC","answer":true}',
    '{"discreet":"report/1","spec":"SPEC","answer":"1"}',
    '{"discreet":"report/1","spec":"SPEC","answer":1e400}',
    '{"discreet":"report/1","spec":"SPEC","answer":' + "9" * 5000 + "}",
    '{"discreet":"report/2","spec":"SPEC","answer":1}',
    '{"discreet":"report/1","spec":"0000000000000000","answer":1}',
    '{"discreet":"report/1","spec":"SPEC","answer":1,"more":1}',
    '{"discreet":"report/1","spec":["SPEC"],"answer":1}',
]


def test_forged_reports_are_counted_and_left_out() -> None:
    for spec, good in (
        (SPECS["answers"], 1),
        (SPECS["unary"], "80"),
        (client.OneBitResponse(client.Real(0, 1), 1), 1),
        (client.LaplaceResponse(client.Real(0, 1), 1), 5),
    ):
        honest = json.dumps({"discreet": "report/1", "spec": spec.id, "answer": good})
        forged = [
            text.replace("SPEC", spec.id) if isinstance(text, str) else text for text in FORGED
        ]
        if isinstance(spec, client.LaplaceResponse):
            forged = [
                text
                for text in forged
                if not (isinstance(text, str) and text.endswith((":-1}", ":4}")))
            ]
        made = local.collect(spec, [honest, *forged, honest])
        assert (made.reports, made.invalid) == (2, len(forged))
        assert local.collect(spec, honest).reports == 1
    odd = [
        json.dumps({"discreet": "report/1", "spec": SPECS["unary"].id, "answer": answer})
        for answer in ("81", "8", "80 ", "8G", "８0", "F0", ["80"])
    ]
    assert local.collect(SPECS["unary"], odd).invalid == len(odd)


def test_forged_arrays_are_counted_and_left_out() -> None:
    made = local.collect(SPECS["answers"], np.array([0, 1, 3, 4, -1, 2**40]))
    assert (made.counts, made.reports, made.invalid) == ((1, 1, 0, 1), 3, 3)
    assert local.collect(SPECS["answers"], np.zeros((3, 2), dtype=int)).invalid == 3
    assert local.collect(SPECS["unary"], np.zeros(5, dtype=np.int64)).invalid == 5
    assert local.collect(SPECS["unary"], np.array([[0x80], [0x81]], dtype=np.uint8)).invalid == 1
    noisy = client.GaussianResponse(client.Real(0, 1), mu=1)
    assert local.collect(noisy, np.array([0, 2**62, -(2**62)])).invalid == 2


@pytest.mark.parametrize("name", SPECS)
def test_no_reports_and_one(name: str) -> None:
    spec = SPECS[name]
    empty = local.shares(spec, [])
    assert np.all(np.isnan(empty.params))
    assert empty.confidence_interval().tolist() == [[0.0, 1.0]] * 4
    assert empty.on_simplex == pytest.approx([0.25] * 4)
    assert empty.p_values(0.3).tolist() == [1.0] * 4
    assert "0 reports" in str(empty.summary())
    one = local.shares(spec, [client.report(spec, "a")])
    assert np.all(np.isfinite(one.params))
    assert np.all(np.isfinite(one.confidence_interval()))


def test_one_level_has_the_share_one() -> None:
    for kind in (client.RandomizedResponse, client.UnaryResponse, client.HadamardResponse):
        spec = kind(client.Category(["only"]), 1)
        for reports in ([], seeded_reports(spec, ["only"] * 20, 1)):
            fit = local.shares(spec, reports)
            assert (
                fit.params.tolist(),
                fit.confidence_interval().tolist(),
                fit.on_simplex.tolist(),
            ) == ([1.0], [[1.0, 1.0]], [1.0])
            assert fit.test(1, label="only").p_value == 1
            assert fit.test(0.5, label="only").p_value == 0


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 50, 1e6])
def test_extreme_epsilons(epsilon: float) -> None:
    for kind in (client.RandomizedResponse, client.UnaryResponse, client.HadamardResponse):
        spec = kind(ABCD, epsilon)
        fit = local.shares(spec, seeded_reports(spec, VALUES[::40], 4))
        found = fit.confidence_interval(1 - 1e-9)
        assert np.all((found[:, 0] <= TRUE) & (found[:, 1] >= TRUE))
        if epsilon < 0.01:
            assert np.diff(found, axis=1).min() > 0.9
        elif kind is not client.UnaryResponse:
            assert fit.params == pytest.approx(TRUE, abs=1e-9)


def test_large_domain() -> None:
    spec = client.HadamardResponse(client.Integer(0, 99_999), 4)
    values = np.concatenate([np.full(20_000, 777), np.arange(20_000)])
    fit = local.shares(spec, seeded_reports(spec, values, 1))
    assert fit.params[777] == pytest.approx(0.5, abs=float(7 * fit.std_errors[777]))
    assert np.mean(np.abs(fit.unbiased) < 3 * fit.std_errors) > 0.99


def test_transforms() -> None:
    counts = np.random.default_rng(2).integers(0, 100, (3, 16))
    matrix = np.array([[(-1) ** (r & c).bit_count() for c in range(16)] for r in range(16)])
    assert (walsh_hadamard(counts) == counts @ matrix).all()
    for point in ([0.2, 0.9, -0.3], [0.5, 0.5], [-1.0, -2.0], [3.0, 3.0, 3.0], [1.0]):
        near = on_simplex(np.array(point))
        assert near.sum() == pytest.approx(1)
        assert near.min() >= 0
        for other in np.random.default_rng(1).dirichlet(np.ones(len(point)), 200):
            assert np.sum((near - point) ** 2) <= np.sum((other - point) ** 2) + 1e-12
    assert on_simplex(np.array([0.2, 0.9, -0.3])) == pytest.approx([0.15, 0.85, 0.0])


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_results_come_back_from_json_and_are_drawn(
    fitted: dict[str, Any], name: str, tmp_path: Path
) -> None:
    fit = fitted[name]
    again = dp.from_json(fit.to_json())
    assert again == fit == local.result_from_json(fit.to_json())
    assert again.confidence_interval().tolist() == fit.confidence_interval().tolist()
    frame = fit.to_frame()
    assert list(frame["value"]) == list("abcd")
    text = str(fit.summary())
    assert "noise %" in text
    assert "for one report" in text
    figure = fit.plot(path=str(tmp_path / "shares.png"))
    assert (tmp_path / "shares.png").stat().st_size > 5000
    assert len(figure.axes[0].collections[0].get_segments()) == 4
    assert "<table" in fit._repr_html_()


def test_collected_counts_add_up() -> None:
    spec = SPECS["unary"]
    first, second = seeded_reports(spec, VALUES[:100], 1), seeded_reports(spec, VALUES[100:300], 2)
    both = local.collect(spec, first) + local.collect(spec, second)
    assert (
        both
        == local.collect(spec, np.concatenate([first, second]))
        == local.Collected.from_json(both.to_json())
    )
    assert local.shares(spec, both).collected is both
    with pytest.raises(InvalidParameter):
        both + local.collect(SPECS["answers"], [])
    with pytest.raises(InvalidParameter):
        local.shares(SPECS["answers"], both)
    with pytest.raises(NoTheorem):
        local.mean(spec, both)


def test_texts_that_no_result_wrote_are_refused(fitted: dict[str, Any]) -> None:
    good = json.loads(fitted["answers"].to_json())
    counts = good["collected"]["counts"]
    wrong: list[Any] = [
        good | {"what": "median"},
        good | {"what": "mean"},
        good | {"discreet": "local result/2"},
        good | {"collected": None},
        {"discreet": "report/1"},
        good | {"what": ["share"]},
        *(
            good | {"collected": good["collected"] | change}
            for change in (
                {"counts": counts[:-1]},
                {"counts": [-1, *counts[1:]]},
                {"counts": [0.5, *counts[1:]]},
                {"reports": -1},
                {"reports": good["collected"]["reports"] + 1},
                {"invalid": True},
                {"spec": {"kind": "none"}},
                {"discreet": "x"},
            )
        ),
    ]
    for record in wrong:
        with pytest.raises(InvalidParameter, match="from_json"):
            dp.from_json(json.dumps(record))
    for text in ("", "{", "[]", "{}", "null", 7, None):
        with pytest.raises(InvalidParameter, match="from_json"):
            dp.from_json(text)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter, match="from_json"):
            local.Collected.from_json(text)  # type: ignore[arg-type]
