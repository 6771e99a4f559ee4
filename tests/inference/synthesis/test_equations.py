"""One-step estimating equations: exact without noise, right with a wrong model, errors as said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import discreet as dp
from discreet.errors import InvalidParameter
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.inference.synthesis.equations import Linked, one_step, under_model
from discreet.inference.synthesis.formulas import columns_asked, formula_of
from discreet.inference.synthesis.model import Noisy
from discreet.inference.synthesis.unbiased import NoisyTables

DOMAIN = Domain(
    (
        Cut("wage", dp.Integer(0, 9, missing=0), ("0–3", "4–6", "7–9"), (0.0, 4.0, 7.0, 9.0)),
        Cut("sex", dp.Category(["F", "M"], missing="F"), ("F", "M")),
        Cut("level", dp.Category(["a", "b", "c"], missing="a"), ("a", "b", "c")),
        Cut("member", dp.Boolean(), ("False", "True")),
        Cut("x y", dp.Real(0, 1, missing=0), ("[0, 0.5)", "[0.5, 1]"), (0.0, 0.5, 1.0)),
    )
)
SIZES = DOMAIN.sizes


def summed(joint, columns):
    return joint.sum(axis=tuple(j for j in range(len(SIZES)) if j not in columns))


def counts_of(seed, rows=4000):
    rng = np.random.default_rng(seed)
    law = rng.gamma(2.0, size=SIZES)
    return rng.multinomial(rows, (law / law.sum()).ravel()).reshape(SIZES).astype(float)


def tables_of(joint, measured, sigma=1e-6, rng=None, public=True):
    found = {}
    for one in measured:
        values = summed(joint, one)
        noise = 0.0 if rng is None else rng.normal(0, sigma, values.shape)
        found[one] = Noisy(values + noise, sigma)
    return NoisyTables(SIZES, found, int(joint.sum()) if public else None)


def rows_of(joint, columns):
    """Cells of a table as rows, with their weights."""
    table = summed(joint, columns)
    cells = np.array(list(np.ndindex(table.shape)))
    return {column: cells[:, place] for place, column in enumerate(columns)}, table.ravel()


def test_least_squares_without_noise_is_least_squares():
    joint = counts_of(1)
    formula = formula_of("wage ~ sex + C(level, base='b')", DOMAIN)
    names, equation = formula.equation()
    assert names == ("intercept", "sex[M]", "level[a]", "level[c]")
    cells, weights = rows_of(joint, (0, 1, 2))
    x = np.array([np.ones(len(weights)), cells[1] == 1, cells[2] == 0, cells[2] == 2], dtype=float)
    y = np.array([1.5, 5.0, 8.0])[cells[0]]  # the middle of 0…3, 4…6, 7…9
    wanted = np.linalg.solve((x * weights) @ x.T, x @ (weights * y))
    law = summed(joint, (0, 1, 2)) / joint.sum()
    found = one_step(equation, tables_of(joint, [(0, 1, 2)]), law)
    np.testing.assert_allclose(found.beta, wanted, rtol=1e-6)
    residual = y - wanted @ x
    bread = np.linalg.inv((x * weights) @ x.T)
    sandwich = bread @ ((x * weights * residual**2) @ x.T) @ bread
    np.testing.assert_allclose(found.sampling, sandwich, rtol=1e-5)


@pytest.mark.slow
def test_pairs_are_enough_for_least_squares_and_give_the_same():
    joint = counts_of(2)
    formula = formula_of("wage ~ sex + level", DOMAIN)
    _, equation = formula.equation()
    pairs = list(formula.in_pieces())
    assert set(pairs) == {(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), ()}
    measured = [(0, 1), (0, 2), (1, 2)]
    law = summed(joint, (0, 1, 2)) / joint.sum()
    wanted = one_step(equation, tables_of(joint, [(0, 1, 2)]), law)
    found = one_step(formula.pieced(equation), tables_of(joint, measured), law)
    np.testing.assert_allclose(found.beta, wanted.beta, rtol=1e-6)
    rng = np.random.default_rng(5)
    draws = [
        one_step(formula.pieced(equation), tables_of(joint, measured, 5.0, rng), law).beta
        for _ in range(300)
    ]
    stated = one_step(formula.pieced(equation), tables_of(joint, measured, 5.0), law).privacy
    ratio = np.var(draws, axis=0, ddof=1) / np.diag(stated)
    assert (np.abs(ratio - 1) < 6 * np.sqrt(2 / 300)).all()


def test_logistic_regression_is_right_though_the_model_is_wrong():
    """The start and the curvature come from a law without the interaction that matters."""
    joint = counts_of(3, rows=200_000)
    formula = formula_of("C(sex, base='M') ~ level + member", DOMAIN)
    names, equation = formula.equation()
    assert names == ("intercept", "level[b]", "level[c]", "member[True]")
    assert formula.title == "sex[M]"
    columns = (1, 2, 3)
    weights = summed(joint, columns)
    wanted = under_model(equation, weights / weights.sum())
    alone = [summed(joint, (place,)) / joint.sum() for place in columns]
    wrong = np.einsum("i,j,k->ijk", *alone)
    found = one_step(equation, tables_of(joint, [columns]), wrong)
    start = under_model(equation, wrong)
    assert np.abs(found.beta - wanted).max() < 0.1 * np.abs(start - wanted).max()


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_intervals_cover_with_sampling_and_noise(public):
    rng = np.random.default_rng(7)
    law = rng.gamma(2.0, size=SIZES)
    law /= law.sum()
    formula = formula_of("wage ~ sex + member", DOMAIN)
    _, equation = formula.equation()
    columns = (0, 1, 3)
    truth = under_model(equation, summed(law, columns))
    hits = []
    for _ in range(400):
        joint = rng.multinomial(2000, law.ravel()).reshape(SIZES).astype(float)
        tables = tables_of(joint, [columns, (0,), (1,)], 12.0, rng, public)
        model = np.maximum(tables.table(columns), 4.0)
        found = one_step(equation, tables, model / model.sum())
        errors = np.sqrt(np.diag(found.sampling + found.privacy))
        hits.append(np.abs(found.beta - truth) < 1.96 * errors)
        assert not any(found.few)
    assert abs(np.mean(hits) - 0.95) < 0.03


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e7])
@pytest.mark.parametrize("logistic", [False, True])
def test_units_of_columns_change_nothing_but_coefficients_units(scale, logistic):
    joint = counts_of(11)
    x = np.array([np.ones(6), np.repeat([1.5, 5.0, 8.0], 2)])  # wage in its units, or others
    y = np.tile([0.0, 1.0], 3) * (1.0 if logistic else 1 / scale)
    tables = tables_of(joint, [(0, 1)], 5.0, np.random.default_rng(2))
    law = summed(joint, (0, 1)) / joint.sum()
    one, other = (
        one_step(Linked((0, 1), (3, 2), by[:, None] * x, of, np.ones(6), logistic), tables, law)
        for by, of in (
            (np.ones(2), y * (1.0 if logistic else scale)),
            (np.array([1.0, scale]), y),
        )
    )
    units = np.array([1.0, scale]) * (1.0 if logistic else scale)
    np.testing.assert_allclose(other.beta * units, one.beta, rtol=1e-6)
    for part in ("sampling", "privacy"):
        both = getattr(other, part) * np.outer(units, units)
        np.testing.assert_allclose(both, getattr(one, part), rtol=1e-6)
    assert np.abs(one.beta).min() > 1e-3


def test_coefficients_of_few_rows_are_marked():
    joint = counts_of(4, rows=3000)
    joint[:, :, 2] = 0.0
    joint[0, 0, 2, 0, 0] = 5.0
    formula = formula_of("wage ~ level", DOMAIN)
    _, equation = formula.equation()
    law = summed(joint, (0, 2)) / joint.sum()
    found = one_step(equation, tables_of(joint, [(0, 2)], 10.0), law)
    assert found.few == (False, False, True)


def test_a_table_without_rows_gives_finite_numbers():
    formula = formula_of("wage ~ sex + level", DOMAIN)
    _, equation = formula.equation()
    for law in (np.full((3, 2, 3), 1 / 18), np.eye(18)[0].reshape(3, 2, 3)):
        found = one_step(equation, tables_of(np.zeros(SIZES), [(0, 1, 2)], 5.0), law)
        assert np.isfinite(found.beta).all()
        assert np.isfinite(found.sampling + found.privacy).all()


# -- formulas ----------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("wage ~ 1", ("intercept",)),
        ("wage ~ sex - 1", ("sex[F]", "sex[M]")),
        ("wage ~ 0 + sex + level", ("sex[F]", "sex[M]", "level[b]", "level[c]")),
        ("wage ~ sex*`x y`", ("intercept", "sex[M]", "x y", "sex[M]:x y")),
        (
            "wage ~ sex + level + sex:level",
            (
                *("intercept", "sex[M]", "level[b]", "level[c]"),
                *("sex[M]:level[b]", "sex[M]:level[c]"),
            ),
        ),
        ("member ~ C(level, base=c)", ("intercept", "level[a]", "level[b]")),
        ("C(level, base='b') ~ x y", ("intercept", "x y")),
    ],
)
def test_formulas_are_read(text, names):
    assert formula_of(text, DOMAIN).equation()[0] == names


@pytest.mark.parametrize(
    "text",
    [
        "wage",
        "wage ~ sex ~ level",
        "wage ~",
        "wage ~ 0",
        "wage ~ wage",
        "wage ~ log(sex)",
        "wage ~ sex:level",
        "wage ~ sex + sex:level",
        "level ~ sex",
        "wage ~ C(sex, base='X')",
        "C(wage, base='7–9') ~ sex",
        "wage ~ (sex + level)",
    ],
)
def test_other_texts_are_refused_in_four_parts(text):
    with pytest.raises(InvalidParameter) as refused:
        formula_of(text, DOMAIN).equation()
    assert "What to do" in str(refused.value)


def test_other_columns_are_refused_and_analyses_name_columns():
    with pytest.raises(InvalidParameter, match="seks"):
        formula_of("wage ~ seks", DOMAIN)
    assert columns_asked("wage by sex", DOMAIN) == (0, 1)
    assert columns_asked("sex + level + x y", DOMAIN) == (1, 2, 4)
    assert columns_asked(["member", "sex"], DOMAIN) == (1, 3)
    assert columns_asked("wage ~ sex*level", DOMAIN) == (0, 1, 2)
    with pytest.raises(InvalidParameter):
        columns_asked(7, DOMAIN)


def test_cells_are_read_by_level_range_and_absence():
    wage, sex, _, member, real = DOMAIN.cuts
    assert wage.mask((4, 9)).tolist() == [False, True, True]
    assert wage.mask((None, 4)).tolist() == [True, False, False]
    assert wage.mask("7–9").tolist() == [False, False, True]
    assert sex.mask(["F", "M"]).tolist() == [True, True]
    assert member.mask(True).tolist() == [False, True, False]
    assert member.mask(None).tolist() == [False, False, True]
    assert real.numbers.tolist() == [0.25, 0.75]
    assert wage.numbers.tolist() == [1.5, 5.0, 8.0]
    for cut, asked in itertools.chain(
        ((wage, one) for one in ((4, 8), (9, 4), (True, 9), "4", 5, None)),
        ((sex, one) for one in ("X", None, 1.5, (0, 1))),
    ):
        with pytest.raises(InvalidParameter):
            cut.mask(asked)


def test_means_are_ratios_of_sums():
    joint = counts_of(9)
    shape, values = (3, 3), np.array([1.5, 5.0, 8.0])
    x = np.array([np.tile(np.eye(3)[place], 3) for place in range(3)])  # groups: level
    equation = Linked((0, 2), shape, x, np.repeat(values, 3), np.ones(9))
    table = summed(joint, (0, 2))
    wanted = values @ table / table.sum(axis=0)
    found = one_step(equation, tables_of(joint, [(0, 2)]), table / table.sum())
    np.testing.assert_allclose(found.beta, wanted, rtol=1e-7)
