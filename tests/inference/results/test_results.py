"""Results: frozen, free of private bytes, the same after a JSON round trip,
and honest about both errors.
"""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import struct

import numpy as np
import pytest
from scipy import stats
from tests.survey import ASKS, RELATIONS, ROWS, SPENDS, data_set, open_session, survey

import discreet as dp
from discreet.testing import seeded_session

ALPHA = 1e-9  # of every statistical test in this file
EVERY_ASK = pytest.mark.parametrize("name", ASKS)
EVERY_RELATION = pytest.mark.parametrize("neighbors", RELATIONS, ids=str)
EVERY_SPEND = pytest.mark.parametrize("spend", SPENDS, ids=repr)


@pytest.fixture(scope="module")
def results() -> dict[str, dp.Result]:
    session = open_session()
    return {name: ask(session, dp.GDP(0.5)) for name, ask in ASKS.items()}


@EVERY_ASK
def test_results_are_frozen(results: dict[str, dp.Result], name: str) -> None:
    result = results[name]
    for thing, field in (
        (result, "release"),
        (result.release, "integers"),
        (result.release.description, "where"),
        (result.release.mechanism, "spread"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, field, None)
    with pytest.raises((AttributeError, TypeError)):
        result.extra = 1  # type: ignore[attr-defined]
    assert copy.deepcopy(result) == result == pickle.loads(pickle.dumps(result))


# ── no private byte ───────────────────────────────────────────────────────────────────────────────

PLANTED_FLOAT, PLANTED_INTEGER, PLANTED_TEXT = (
    54.32109876543211,
    0x5EC2E7_0DDBA11,
    "Zoë-Quisling-9071",
)


def planted() -> dict[str, object]:
    data = survey()
    data["income"][:50] = PLANTED_FLOAT
    person = data["person"].astype(np.int64)
    person[::7] = PLANTED_INTEGER
    regions = data["region"].astype(object)
    regions[::11] = PLANTED_TEXT
    return {**data, "person": person, "region": regions}


def traces() -> list[bytes]:
    """Every way the planted values could be written."""
    words = [
        PLANTED_TEXT,
        repr(PLANTED_FLOAT),
        repr(PLANTED_FLOAT)[:12],
        str(PLANTED_INTEGER),
        f"{PLANTED_INTEGER:x}",
        json.dumps(PLANTED_TEXT)[1:-1],
    ]
    numbers = [
        struct.pack(order + kind, value)
        for order in "<>"
        for kind, value in (("d", PLANTED_FLOAT), ("f", PLANTED_FLOAT), ("q", PLANTED_INTEGER))
    ]
    return [word.encode() for word in words] + [PLANTED_TEXT.encode("utf-16-le")] + numbers


def found_in(blob: bytes) -> list[bytes]:
    return [trace for trace in traces() if trace in blob]


@pytest.mark.slow
@EVERY_ASK
@EVERY_RELATION
def test_nothing_private_is_in_what_can_be_shared(name: str, neighbors: object) -> None:
    # the bytes of secure noise would hold four given ones now and then
    session = seeded_session(data_set(neighbors, planted()), dp.GDP(1), name)
    result = ASKS[name](session, dp.GDP(0.5))
    written = [
        repr(session),
        str(session),
        repr(result),
        str(result),
        result._repr_html_(),
        result.to_json(),
        json.dumps(result.records()),
    ]
    blobs = [
        pickle.dumps(result, protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    ] + [text.encode() for text in written]
    assert [found_in(blob) for blob in blobs] == [[]] * len(blobs)


def test_the_search_finds_what_is_planted() -> None:
    data = planted()
    for column in ("income", "person", "region"):
        assert found_in(pickle.dumps(data[column]))
    assert found_in(json.dumps([PLANTED_FLOAT]).encode())
    assert found_in(json.dumps(PLANTED_TEXT).encode())


def test_data_sets_and_sessions_cannot_be_copied() -> None:
    session = open_session()
    for thing in (session, data_set()):
        for copier in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(dp.LedgerRefused, match="cannot be pickled or copied"):
                copier(thing)


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@EVERY_ASK
@EVERY_RELATION
@EVERY_SPEND
def test_json_round_trip(name: str, neighbors: object, spend: object) -> None:
    result = ASKS[name](open_session(neighbors), spend)
    again = dp.from_json(result.to_json())
    assert again == result
    assert type(again) is type(result)
    assert again.to_json() == result.to_json()
    assert again.records(0.9) == result.records(0.9)


@pytest.mark.parametrize(
    "change", [{"version": 2}, {"version": None}, {"format": "another"}, {"format": None}]
)
def test_foreign_or_newer_json_is_refused(
    results: dict[str, dp.Result], change: dict[str, object]
) -> None:
    record = json.loads(results["mean"].to_json()) | change
    with pytest.raises(dp.DiscreetError, match="discreet-release"):
        dp.from_json(json.dumps(record))


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}", '"discreet-release"'])
def test_json_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(dp.DiscreetError, match="discreet-release"):
        dp.from_json(text)


# ── uncertainty ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@EVERY_ASK
@EVERY_RELATION
@EVERY_SPEND
def test_intervals_are_nested_and_the_datas_are_narrower(
    name: str, neighbors: object, spend: object
) -> None:
    result = ASKS[name](seeded_session(data_set(neighbors), dp.GDP(1000), name), spend)
    inner, outer, widest = (result.confidence_interval(level) for level in (0.5, 0.95, 0.999))
    assert inner.shape == outer.shape == (len(result.labels), 2)
    for small, large in ((inner, outer), (outer, widest)):
        assert np.all(large[:, 0] <= small[:, 0])
        assert np.all(small[:, 1] <= large[:, 1])
    assert np.all(outer[:, 1] - outer[:, 0] > inner[:, 1] - inner[:, 0])
    data = result.confidence_interval(0.95, target="data")
    assert np.all(data[:, 1] - data[:, 0] <= (outer[:, 1] - outer[:, 0]) * (1 + 1e-9))
    for quantity in result.quantities():
        assert np.all((quantity.noise_share >= 0) & (quantity.noise_share <= 1))
        assert np.all(quantity.privacy_variance > 0)
        assert np.all(np.isfinite(quantity.std_error))
        assert np.all(quantity.low <= quantity.high)
    assert np.all(result.quantities(target="data")[-1].noise_share == 1)


def test_more_budget_means_a_smaller_noise_share() -> None:
    shares = [
        float(dp.mean(open_session(), "income", spend=dp.GDP(mu)).noise_share[0])
        for mu in (0.1, 1.0, 10.0)
    ]
    assert shares[0] > 0.3 > shares[1] > shares[2] > 0


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan"), True, "0.95", None])
def test_bad_levels_are_refused(results: dict[str, dp.Result], level: object) -> None:
    with pytest.raises(dp.InvalidParameter):
        results["mean"].confidence_interval(level)  # type: ignore[arg-type]


def test_bad_targets_and_several_estimates_are_refused(results: dict[str, dp.Result]) -> None:
    with pytest.raises(dp.InvalidParameter, match="population"):
        results["mean"].summary(target="sample")
    with pytest.raises(dp.InvalidParameter, match="4 cells"):
        _ = results["table"].estimate
    assert results["mean"].estimate == results["mean"].params[0]


def test_the_standard_deviation_is_the_root_of_the_variance(results: dict[str, dp.Result]) -> None:
    variance = results["variance"]
    estimate, low, high = variance.standard_deviation(0.9)  # type: ignore[attr-defined]
    np.testing.assert_allclose(
        [estimate**2, low**2, high**2], [variance.estimate, *variance.confidence_interval(0.9)[0]]
    )


# ── frames and words ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@EVERY_ASK
def test_frames_of_three_libraries_hold_the_same(results: dict[str, dp.Result], name: str) -> None:
    result = results[name]
    pandas, polars, arrow = (
        result.to_frame(0.9, backend=backend) for backend in ("pandas", "polars", "pyarrow")
    )
    records = result.records(0.9)
    assert pandas.to_dict("records") == polars.to_dicts() == arrow.to_pylist() == records
    assert len(records) == len(result.labels) * len(result.quantities())
    assert list(records[0]) == [
        *result.release.description.by,
        "quantity",
        "estimate",
        "std_error",
        "low",
        "high",
        "noise_share",
    ]
    main = [record for record in records if record["quantity"] == result.quantities()[-1].name]
    np.testing.assert_array_equal(
        [[record["low"], record["high"]] for record in main], result.confidence_interval(0.9)
    )


def test_unknown_frames_are_refused(results: dict[str, dp.Result]) -> None:
    with pytest.raises(dp.InvalidParameter, match="pandas"):
        results["mean"].to_frame(backend="excel")


@pytest.mark.slow
@EVERY_ASK
def test_the_summary_says_what_it_promises(results: dict[str, dp.Result], name: str) -> None:
    result = results[name]
    text = str(result.summary(0.9))
    for words in (
        "noise %",
        "90% interval",
        str(result.release.guarantee),
        "Replace()",
        "1000 rows (public)",
        result.title,
        result.release.description.where,
    ):
        assert words in text
    assert ("Only rows where" in text) == bool(result.release.description.where)
    assert all(part in text for label in result.labels for part in label)
    assert "privacy error alone" in str(result.summary(target="data"))
    assert str(result) == str(result.summary())
    assert "NOT PRIVATE" not in text


def test_the_summary_names_the_level_of_a_proportion(results: dict[str, dp.Result]) -> None:
    assert "region = N" in str(results["proportion of level"])
    assert "member = True" in str(results["proportion"])


def test_the_summary_says_units_bounds_and_seeds() -> None:
    by_unit = str(dp.mean(open_session(RELATIONS[2]), "income", spend=dp.GDP(0.5)))
    assert "500 units (public)" in by_unit
    assert "max_rows" in by_unit
    assert "Values outside 0 … 100 count as the nearest bound" in by_unit
    assert "(public)" not in str(dp.mean(open_session(RELATIONS[1]), "income", spend=dp.GDP(0.5)))
    assert "NOT PRIVATE" in str(
        dp.mean(seeded_session(data_set(), dp.GDP(1), 0), "income", spend=dp.GDP(0.5))
    )


def test_long_tables_say_how_much_is_left_out() -> None:
    result = dp.histogram(open_session(), "income", bins=100, spend=dp.GDP(0.5))
    assert "The first 60 of 100 cells" in str(result)
    assert len(result.to_frame()) == 200


def test_html_is_escaped() -> None:
    nasty = "<script>alert('&')</script>"
    data = dp.from_arrays(
        {nasty: ["a", nasty]}, schema={nasty: dp.Category(["a", nasty])}, neighbors=dp.Replace()
    )
    result = dp.histogram(
        data.open(budget=dp.GDP(1)), nasty, spend=dp.GDP(0.5), where={nasty: nasty}
    )
    page = result._repr_html_()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<table ") == 1
    assert nasty in str(result)


# ── estimates are right ───────────────────────────────────────────────────────────────────────────

# the largest there is: the noise of counts is far below 1, that of means about a grid step
LOUD = dp.GDP(1000)
STEP = 100 / 65534  # of income


def exact_values(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    income, age, region, member = (data[name] for name in ("income", "age", "region", "member"))
    young = (age >= 18) & (age <= 50)
    bins = np.histogram(income, [0, 40, 50, 60, 100])[0]
    levels = np.array([(region == level).sum() for level in "ENSW"])
    ages = np.array(
        [
            [
                (
                    (region == level)
                    & ~member
                    & (age >= low)
                    & ((age < high) | (high == 90) & (age == 90))
                ).sum()
                for low, high in ((18, 40), (40, 65), (65, 90))
            ]
            for level in "ENSW"
        ]
    ).ravel()
    total = ages.sum()
    return {
        "count": np.array([(np.isin(region, ["N", "S"]) & (age >= 20) & (age <= 60)).sum()]),
        "sum": np.array([income.sum()]),
        "mean": np.array([income.mean()]),
        "mean where": np.array([age[member].mean()]),
        "variance": np.array([income.var(ddof=1)]),
        "proportion": np.array([member.mean()]),
        "proportion of level": np.array([(region[young] == "N").mean()]),
        "histogram": bins / len(income),
        "histogram of levels": levels / len(income),
        "table": np.array([income[region == level].mean() for level in "ENSW"]),
        "table of counts": ages / total,
    }


# standard deviations of the noise that a release declares: chance goes beyond once in 10¹¹
SIGMAS = 7
# standard deviations of LOUD noise
LARGEST_NOISE = {
    "count": 0.05,
    "sum": 1.0,
    "mean": STEP,
    "mean where": 1e-3,
    "variance": 0.05,
    "table": 3 * STEP,
}
# the grid of a variance; n rounding errors, as good as uniform, move it by 2·10·COARSE/√(12·n)
COARSE = 100 / 1022
# counts and ages are exact
ROUNDING = {
    "sum": ROWS * STEP / 2,
    "mean": STEP / 2,
    "table": STEP / 2,
    "variance": SIGMAS * 20 * COARSE / np.sqrt(12 * ROWS),
}


def noise_of(result: dp.Result) -> np.ndarray:
    """The standard deviation of each estimate's noise, as the release declares it."""
    return np.sqrt(result.quantities(target="data")[-1].privacy_variance)


@pytest.mark.slow
@EVERY_ASK
@EVERY_RELATION
def test_with_a_huge_budget_estimates_are_the_exact_values(name: str, neighbors: object) -> None:
    data = survey(seed=7)
    exact, rounding = exact_values(data)[name], ROUNDING.get(name, 0.0)
    result = ASKS[name](
        seeded_session(data_set(neighbors, data), LOUD, f"{name} {neighbors}"), LOUD
    )
    assert np.all(noise_of(result) < LARGEST_NOISE.get(name, 1e-5))
    assert np.all(np.abs(result.params - exact) < SIGMAS * noise_of(result) + rounding)
    low, high = result.confidence_interval(1 - 1e-9, target="data").T
    slack = rounding if name == "variance" else 0.0  # its interval is for the data after encoding
    assert np.all((low - slack <= exact) & (exact <= high + slack))


@pytest.mark.parametrize(
    "neighbors",
    [dp.Replace(unit="person", max_rows=2), dp.AddRemove(unit="person", max_rows=2)],
    ids=str,
)
def test_units_contribute_at_most_max_rows(neighbors: dp.Replace | dp.AddRemove) -> None:
    rng = np.random.default_rng(11)
    sizes, values = rng.integers(1, 7, 300), rng.uniform(0, 100, 300)
    kept = np.minimum(sizes, 2)
    frame = {"person": np.repeat(np.arange(300), sizes), "income": np.repeat(values, sizes)}
    data = dp.from_arrays(frame, schema={"income": dp.Real(0, 100)}, neighbors=neighbors)
    rows, total = kept.sum(), (kept * values).sum()
    count, mean, whole = (
        ask(seeded_session(data, LOUD, str(neighbors)))
        for ask in (
            lambda session: dp.count(session, spend=LOUD),
            lambda session: dp.mean(session, "income", spend=LOUD),
            lambda session: dp.sum(session, "income", spend=LOUD),
        )
    )
    for result, exact, rounding in (
        (count, rows, 0),
        (mean, total / rows, STEP / 2),
        (whole, total, rows * STEP / 2),
    ):
        assert abs(result.estimate - exact) < SIGMAS * noise_of(result)[0] + rounding
    # bounding matters here
    without = (sizes.sum(), np.repeat(values, sizes).mean(), (sizes * values).sum())
    for result, other in zip((count, mean, whole), without, strict=True):
        assert abs(result.estimate - other) > 20 * noise_of(result)[0] + 10 * STEP


REPEATS = 600


def standardised(name: str, spend: dp.GDP | dp.PureDP, neighbors: object) -> np.ndarray:
    """(estimate − exact)/(standard deviation that the result claims for privacy) of repeated
    releases, first cell.
    """
    data = survey()
    session, exact = (
        seeded_session(data_set(neighbors, data), dp.GDP(1000), name),
        exact_values(data)[name][0],
    )
    quantities = [
        ASKS[name](session, spend).quantities(0.5, target="data")[-1] for _ in range(REPEATS)
    ]
    return np.array(
        [
            (quantity.estimate[0] - exact) / np.sqrt(quantity.privacy_variance[0])
            for quantity in quantities
        ]
    )


def centred_and_scaled(z: np.ndarray, kurtosis: float) -> bool:
    """Whether z has mean 0 and variance 1, by normal limits of both at level ALPHA."""
    limit = stats.norm.isf(ALPHA / 4)
    return bool(
        abs(z.mean()) * np.sqrt(len(z)) < limit
        and abs((z**2).mean() - 1) < limit * np.sqrt((kurtosis - 1) / len(z))
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "spend", "kurtosis", "neighbors"),
    [
        ("count", dp.GDP(0.5), 3, RELATIONS[1]),
        ("count", dp.PureDP(0.5), 6.2, RELATIONS[0]),
        ("mean", dp.GDP(0.5), 3, RELATIONS[0]),
        ("mean", dp.PureDP(0.5), 6, RELATIONS[0]),
        ("histogram", dp.GDP(0.5), 3, RELATIONS[0]),
        ("variance", dp.GDP(1), 3, RELATIONS[0]),
    ],
    ids=str,
)
def test_repeated_releases_are_unbiased_and_as_noisy_as_they_say(
    name: str, spend: dp.GDP | dp.PureDP, kurtosis: float, neighbors: object
) -> None:
    z = standardised(name, spend, neighbors)
    assert centred_and_scaled(z, kurtosis)
    assert not centred_and_scaled(1.3 * z + 0.0, 3)
    assert not centred_and_scaled(0.7 * z, 3)
    assert not centred_and_scaled(z + 0.3, kurtosis)
