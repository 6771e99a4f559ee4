"""The level that coefficients are differences from: named beside a formula, chosen privately, and
told where it is rare.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

import discreet as dp
from discreet.accounting.guarantees import spend_mu_squared
from discreet.asking.bases import BASE_SHARE, based_design, with_rows
from discreet.inference.regression.bases import level_shares
from discreet.models.fit import ask_fit
from discreet.models.procedure import Regression, budget_of
from discreet.testing import seeded_session
from discreet.trusted.losses.losses import loss_of
from discreet.trusted.release import Description

AMPLE, REPLACE = dp.GDP(50), dp.Replace()
LEVELS = ["E", "N", "S", "W"]
FORMULA = "wage ~ age + region"
SCHEMA = {
    "age": dp.Integer(18, 65, missing=40),
    "region": dp.Category(LEVELS, missing="W"),
    "kind": dp.Category([1, 2, 3], missing=1),
    "odd": dp.Category(["most frequent", "other"], missing="other"),
    "wage": dp.Real(0, 100, missing=0),
    "well": dp.Boolean(missing=False),
    "visits": dp.Integer(0, 20, missing=0),
    "open": dp.Real(0, 1, missing=0),
}


def columns_of(n, seed, base=0.01):
    choose = np.random.default_rng(seed)
    region = choose.choice(LEVELS, n, p=[base, 0.7 - base, 0.2, 0.1])
    age = choose.integers(18, 66, n)
    return {
        "age": age,
        "region": region,
        "kind": choose.choice([1, 2, 3], n, p=[0.05, 0.15, 0.8]),
        "odd": choose.choice(["most frequent", "other"], n),
        "wage": np.clip(
            20 + 0.2 * age + 3 * (region == "N") + 5 * choose.standard_normal(n), 0, 99
        ),
        "well": choose.random(n) < 0.4,
        "visits": choose.poisson(2, n),
        "open": choose.random(n),
    }


def session_of(n=2000, seed=1, budget=AMPLE, *, base=0.01, neighbors=REPLACE):
    data = dp.from_arrays(columns_of(n, seed, base), schema=SCHEMA, neighbors=neighbors)
    return seeded_session(data, budget, f"bases {seed}")


def choice_of(session, formula, base):
    schema = session.public.schema
    return with_rows(*based_design(formula, schema, base, counts=False), ())[1]


# ── the choice ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_levels_are_chosen_with_the_law_that_is_priced():
    """Exponential in the exact counts at the rate of the mechanism, and not at 1.3 of it."""
    counts, draws = {"E": 3, "N": 12, "S": 10, "W": 7}, 1200
    region = [level for level, count in counts.items() for _ in range(count)]
    data = dp.from_arrays(
        {"region": region},
        schema={"region": dp.Category(LEVELS, missing="E")},
        neighbors=dp.Replace(),
    )
    session = seeded_session(data, dp.GDP(100), "law")
    wide = session_of(8)
    choice = choice_of(wide, FORMULA, "most frequent")
    mu_squared = Fraction(50 * 9, 100)
    ((_, question),) = choice.questions(session.public, Description("ols"), mu_squared)
    found = np.zeros(4)
    for _ in range(draws):
        found[session.release(question).integers[0]] += 1
    rate = float(question.mechanism.rate)
    assert rate > 0.1
    for factor, right in ((1.0, True), (1.3, False), (0.7, False)):
        law = np.exp(factor * rate * np.array(list(counts.values()), dtype=float))
        expected = draws * law / law.sum()
        statistic = float(((found - expected) ** 2 / expected).sum())
        assert (chi2.sf(statistic, 3) > 1e-4) == right, (factor, statistic)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("spend", "budget"),
    [
        (dp.GDP(1), dp.GDP(1)),
        (dp.ZCDP(0.5), dp.ZCDP(0.5)),
        (dp.ApproxDP(4, 1e-6), dp.ApproxDP(5, 1e-6)),
    ],
    ids=["gdp", "zcdp", "approx"],
)
@pytest.mark.parametrize("neighbors", [dp.Replace(), dp.AddRemove()], ids=str)
def test_a_choice_is_paid_out_of_the_same_spend(spend, budget, neighbors):
    """One spend in the ledger, whatever is chosen; the choices cost at most their share of it, and
    the steps after them what they would cost without.
    """
    session = session_of(budget=budget, neighbors=neighbors)
    fit = dp.ols(session, "wage ~ region + kind", spend=spend, base="most frequent")
    steps = [str(release.description.step) for release in fit.releases]
    assert steps[:2] == ["base 1", "base 2"]
    assert "base 3" not in steps
    whole = spend_mu_squared(spend)
    debits = [entry.amounts for entry in session.ledger.entries() if entry.kind == "debit"]
    charged = [Fraction(debit.mu_squared or 2 * debit.rho, 10**12) for debit in debits]
    assert 0 < sum(charged[:2]) <= BASE_SHARE * whole
    others = [loss_of(release.mechanism).mu_squared for release in fit.releases[2:]]
    assert 1 - Fraction(1, 1000) < sum(others) / (whole * (1 - BASE_SHARE)) <= 1
    assert sum(charged) <= whole
    assert session.ledger.open_reservations() == []
    assert session.ledger.verify().ok


def test_a_fit_with_a_chosen_base_is_the_fit_with_that_base_named():
    """The same noise after the same choice gives the same numbers, release by release."""
    spend = dp.GDP(1)
    chosen = dp.ols(session_of(), FORMULA, spend=spend, base="most frequent", key="fit")
    assert chosen.bases == {"region": "N"}
    session = session_of()
    mu_squared = budget_of(spend, 1)
    choice = choice_of(session, FORMULA, "most frequent")
    ((_, question),) = choice.questions(session.public, Description("ols"), mu_squared)
    session.release(question)
    design, _ = based_design(FORMULA, session.public.schema, {"region": "N"}, counts=False)
    named = Regression(session, design.model(()), "ols", spend)
    releases, facts = named.asked(
        lambda fitting: ask_fit(fitting, "ols", spend), mu_squared * (1 - BASE_SHARE)
    )
    assert facts == chosen.facts
    assert [release.integers for release in releases] == [
        release.integers for release in chosen.releases[1:]
    ]
    assert [release.mechanism for release in releases] == [
        release.mechanism for release in chosen.releases[1:]
    ]


def test_a_choice_replays_under_its_key_and_comes_back_from_json():
    session = session_of()
    first = dp.logistic(session, "well ~ region", spend=dp.GDP(1), base="most frequent", key="k")
    left = session.remaining()
    again = dp.logistic(session, "well ~ region", spend=dp.GDP(1), base="most frequent", key="k")
    assert again == first
    assert str(session.remaining()) == str(left)
    read = dp.from_json(first.to_json())
    assert read == first
    assert read.bases == {"region": "N"}
    assert "Base of region: N, chosen privately" in str(read.summary())
    counted = dp.from_arrays(
        columns_of(300, 1),
        schema={"region": dp.Category(LEVELS), "wage": dp.Real(0, 100)},
        neighbors=dp.Replace(),
    )
    fit = dp.ols(
        seeded_session(counted, dp.GDP(2), "told"),
        "wage ~ region",
        spend=dp.GDP(2),
        base="most frequent",
    )
    assert sum("hold a value of" in note for note in fit.summary().notes) == 1
    with pytest.raises(dp.DiscreetError):
        dp.logistic(session, "well ~ region", spend=dp.GDP(1), base={"region": "S"}, key="k")


def test_files_choose_as_memory_does(tmp_path):
    columns = columns_of(300, 3)
    lines = [",".join(columns)]
    lines += [",".join(str(cell) for cell in row) for row in zip(*columns.values(), strict=True)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines))
    found = []
    for data in (
        dp.from_arrays(columns, schema=SCHEMA, neighbors=dp.Replace()),
        dp.read_csv(path, schema=SCHEMA, neighbors=dp.Replace()),
    ):
        session = seeded_session(data, dp.GDP(5), "both")
        fit = dp.robust(
            session,
            FORMULA,
            spend=dp.GDP(2),
            base={"region": "most frequent"},
            where={"age": (20, 60)},
        )
        assert fit.releases[0].description.where == "20 ≤ age ≤ 60"
        found.append([release.integers for release in fit.releases])
    assert found[0] == found[1]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("function", "formula", "options"),
    [
        (dp.ols, FORMULA, {}),
        (dp.ols, FORMULA, {"method": "moments"}),
        (dp.robust, "wage ~ age * region", {}),
        (dp.logistic, "well ~ region", {"solver": "newton"}),
        (dp.poisson, "visits ~ region + kind", {}),
        (dp.m_estimate, FORMULA, {"psi": math.tanh}),
        (dp.robust, FORMULA, {"solver": dp.GradientDescent(20)}),
    ],
)
def test_every_regression_chooses_and_previews(function, formula, options):
    session = session_of()
    asked = {"spend": dp.GDP(2), "base": "most frequent", **options}
    forecast = dp.preview(session, function, formula, **asked)
    fit = function(session, formula, **asked)
    assert fit.bases["region"] == "N"
    assert "region[E]" in fit.names
    assert "region[N]" not in fit.names
    assert len(forecast.expected.releases) == len(fit.releases)
    assert str(forecast.expected.releases[0].description.step) == "base 1"
    plain = dp.preview(session, function, formula, spend=dp.GDP(2), **options)
    assert forecast.price == plain.price
    assert 0.99 < forecast.widths[-1] / plain.widths[-1] < 1.03


@pytest.mark.slow
def test_named_bases_are_those_of_the_formula():
    for base, formula in (
        ({"region": "S"}, "wage ~ C(region, base='S') + kind"),
        ({"kind": 3}, "wage ~ region + C(kind, base=3)"),
        ({"region": "S", "kind": "2"}, "wage ~ C(region, base='S') + C(kind, base=2)"),
    ):
        ours = dp.ols(session_of(), "wage ~ region + kind", spend=dp.GDP(1), base=base)
        named = dp.ols(session_of(), formula, spend=dp.GDP(1))
        assert ours.names == named.names
        assert [one.integers for one in ours.releases] == [one.integers for one in named.releases]
    flipped = dp.ols(session_of(), "wage ~ well", spend=dp.GDP(1), base={"well": True})
    assert flipped.names == ("intercept", "well[false]")
    assert flipped.bases == {"well": "true"}
    summed = dp.ols(session_of(), "wage ~ C(region, 'sum')", spend=dp.GDP(1), base={"region": "W"})
    assert summed.names == ("intercept", "region[E]", "region[N]", "region[S]")
    assert summed.bases == {}


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────

REFUSED = [
    ("frequent", FORMULA, "names no column"),
    ("N", FORMULA, "base={'column': 'N'}"),
    (7, FORMULA, "neither"),
    ({}, FORMULA, "neither"),
    (["region"], FORMULA, "neither"),
    ({3: "N"}, FORMULA, "no name"),
    ({"region": "Z"}, FORMULA, "not declared"),
    ({"region": None}, FORMULA, "not declared"),
    ({"regoin": "N"}, FORMULA, "region"),
    ({"age": "most frequent"}, FORMULA, "Category or Boolean"),
    ({"kind": 1}, FORMULA, "no term"),
    ({"well": 1}, "wage ~ well", "True"),
    ({"region": "S"}, "wage ~ C(region, base='N')", "too"),
    ("most frequent", "wage ~ C(region, base='N')", "unnamed base"),
    ("most frequent", "wage ~ age + well", "unnamed base"),
    ({"region": "most frequent"}, "wage ~ region - 1", "leaves none out"),
    ("most frequent", "wage ~ region - 1", "unnamed base"),
    ("most frequent", "wage ~ odd", "level of that name"),
    ({"odd": "most frequent"}, "wage ~ odd", "level of that name"),
]


@pytest.mark.parametrize(("base", "formula", "word"), REFUSED, ids=str)
def test_a_base_that_cannot_be_had_is_refused_before_the_debit(base, formula, word):
    session = session_of(20)
    before = str(session.remaining())
    for call in (
        lambda: dp.ols(session, formula, spend=dp.GDP(1), base=base),
        lambda: dp.preview(session, dp.ols, formula, spend=dp.GDP(1), base=base),
        lambda: dp.m_estimate(session, formula, psi=math.tanh, spend=dp.GDP(1), base=base),
    ):
        with pytest.raises(dp.DiscreetError) as error:
            call()
        assert word in str(error.value)
        assert "What to do:" in str(error.value)
    assert str(session.remaining()) == before


def test_spends_without_room_for_a_choice_are_refused():
    session = session_of(20)
    with pytest.raises(dp.InvalidParameter, match="name the bases"):
        choice_of(session, FORMULA, "most frequent").questions(
            session.public, Description("ols"), Fraction(1, 10**10)
        )
    with pytest.raises(dp.InvalidParameter, match="pure"):
        dp.ols(
            session,
            FORMULA,
            spend=dp.PureDP(1),
            solver=dp.SGD(law="laplace"),
            base="most frequent",
        )


# ── rare bases ────────────────────────────────────────────────────────────────────────────────────


def rare(fit):
    return [note for note in fit.summary().notes if note.startswith("RARE BASE")]


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "options",
    [{}, {"method": "moments"}, {"solver": "newton"}],
    ids=["descent", "moments", "newton"],
)
def test_a_rare_base_is_named_with_the_one_that_helps(options):
    fit = dp.ols(session_of(4000), FORMULA, spend=dp.GDP(2), **options)
    (note,) = rare(fit)
    assert note.startswith("RARE BASE: E is the base of region and has about 1")
    assert "N about 69" in note or "N about 70" in note or "N about 68" in note
    assert "base={'region': 'N'}" in note
    common = dp.ols(session_of(4000, base=0.3), FORMULA, spend=dp.GDP(2), **options)
    assert not rare(common)
    helped = dp.ols(session_of(4000), FORMULA, spend=dp.GDP(2), base={"region": "N"}, **options)
    assert not rare(helped)
    error = dict(zip(helped.names, helped.std_errors, strict=True))["region[S]"]
    assert error < dict(zip(fit.names, fit.std_errors, strict=True))["region[S]"] / 3


def test_a_rare_base_is_not_told_where_noise_hides_it():
    for seed in range(3):
        assert not rare(dp.logistic(session_of(150, seed), "well ~ region", spend=dp.GDP(0.5)))


@pytest.mark.few(2)
@pytest.mark.parametrize("base", [0.25, 0.08, 0.02])
def test_shares_of_levels_are_those_of_the_rows(base):
    """Read from the metric, in which rare levels weigh less, within their noise and a tenth."""
    found = []
    for seed in range(3):
        session = session_of(8000, seed, base=base)
        fit = dp.logistic(session, "well ~ region + age", spend=dp.GDP(1))
        shares = level_shares("region", "E", fit.level_moments)
        rows = columns_of(8000, seed, base)["region"]
        for one in shares:
            exact = float(np.mean(rows == one.level))
            assert abs(one.share - exact) < 4 * one.noise + 0.1 * exact
        assert sum(one.share for one in shares) == pytest.approx(1, abs=1e-9)
        found.append(shares[0].share)
    assert np.mean(found) == pytest.approx(base, rel=0.1)


def test_fits_kept_before_bases_were_say_nothing_of_them():
    fit = dp.ols(session_of(), FORMULA, spend=dp.GDP(2))
    record = json.loads(fit.to_json())
    del record["facts"]["bases"]
    older = dp.from_json(json.dumps(record))
    assert older == replace(fit, facts=replace(fit.facts, bases=()))
    assert older.bases == {}
    assert not rare(older)
