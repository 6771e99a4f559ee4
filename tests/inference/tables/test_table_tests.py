"""Statistics of noisy tables: classical limits, sizes with the true noise and not with another,
coverage, total behaviour.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference.counts.tulap import ReleasedNoise
from discreet.inference.results.laws import Noise
from discreet.inference.tables.association import (
    _even_means,
    association,
    nearest_independent,
    signed_association,
)
from discreet.inference.tables.comparisons import (
    Group,
    common_difference,
    contrast,
    stratified_root,
)
from discreet.inference.tables.rank_one import curvatures, nearest_from, nearest_rank_one
from discreet.inference.tables.table_tests import fit_statistic, multinomial_draws
from discreet.inference.tables.tables import (
    NoisyTables,
    chi_square,
    fit_independence,
    kruskal_wallis,
    mann_whitney,
    poisson_draws,
    rank_statistic,
    rank_weights,
    simulated,
    table_p_value,
    tail_by_simulation,
)

NONE = ReleasedNoise("gaussian", 1e-5)
GEOMETRIC, GAUSSIAN = ReleasedNoise("geometric", 4.0), ReleasedNoise("gaussian", 4.0, 4 / 1024)
DRAWS, REPETITIONS = 99, 900
LIMIT = 6.2 * np.sqrt(0.05 * 0.95 / REPETITIONS)  # seeded; a false alarm of 1e-9 on fresh data


# -- without noise: the classical statistics -------------------------------------------------------


def test_without_noise_they_are_pearsons_and_kruskals():
    table = np.array([[30.0, 14, 22], [18, 40, 9], [25, 25, 31]])
    pearson = stats.chi2_contingency(table, correction=False).statistic
    assert chi_square(NoisyTables(table, NONE)) == pytest.approx(pearson, rel=1e-6)
    assert chi_square(NoisyTables(table, NONE, np.asarray(table.sum()))) == pytest.approx(
        pearson, rel=1e-6
    )
    values = [np.repeat([0, 1, 2], row.astype(int)) for row in table]
    # n − 1 for n
    assert kruskal_wallis(NoisyTables(table, NONE)) == pytest.approx(
        stats.kruskal(*values).statistic, rel=0.01
    )
    pair = NoisyTables(table[:2], NONE)
    assert mann_whitney(pair) ** 2 == pytest.approx(float(kruskal_wallis(pair)), rel=1e-6)
    assert mann_whitney(NoisyTables(np.array([[9.0, 1], [1, 9]]), NONE)) > 2
    counts, expected = np.array([12.0, 30, 58]), np.array([0.2, 0.3, 0.5])
    for total in (100, None):
        assert fit_statistic(counts, expected, 0.0, total) == pytest.approx(
            stats.chisquare(counts, 100 * expected).statistic, rel=1e-6
        )


def test_without_rows_ranks_tell_nothing():
    table = NoisyTables(np.array([[4.0, -2], [6, 1]]), GEOMETRIC, np.asarray(0.0))
    assert kruskal_wallis(table) == 0
    assert mann_whitney(table) == 0
    assert table_p_value(table, kruskal_wallis, 1, few=99, many=99)[1] == 1.0


def test_association_is_near_pearsons_where_counts_are_large_and_knows_its_side():
    rng = np.random.default_rng(1)
    for shape in ((2, 2), (3, 4)):
        table = (
            rng.multinomial(40_000, np.ones(np.prod(shape)) / np.prod(shape))
            .reshape(shape)
            .astype(float)
        )
        assert association(NoisyTables(table, NONE)) == pytest.approx(
            stats.chi2_contingency(table, correction=False).statistic, rel=0.01
        )
    tables = NoisyTables(rng.uniform(0, 40, (50, 2, 2)), GAUSSIAN)
    np.testing.assert_allclose(signed_association(tables) ** 2, association(tables), rtol=1e-8)
    assert signed_association(NoisyTables(np.array([[30.0, 10], [10, 30]]), GAUSSIAN)) > 3
    assert stratified_root(NoisyTables(np.array([[[30.0, 10], [10, 30]]]), GAUSSIAN)) > 3


@pytest.mark.parametrize("public", [True, False])
def test_a_table_is_on_the_other_side_with_its_columns_swapped_whatever_noise_did_to_its_cells(
    public,
):
    noise = ReleasedNoise("geometric", 20.0)
    counts = np.random.default_rng(2).multinomial(50, [0.25] * 4, 500).reshape(
        -1, 2, 2
    ) + noise.quantile(np.random.default_rng(3).random((500, 2, 2)))
    total = np.full(500, 50.0) if public else None
    one, other = (
        signed_association(NoisyTables(table, noise, total))
        for table in (counts, counts[:, :, ::-1])
    )
    assert (counts < 0).any(axis=(1, 2)).mean() > 0.5
    assert (np.sign(one) == -np.sign(other)).all()
    np.testing.assert_allclose(np.median(np.abs(one + other) / (1 + np.abs(one))), 0, atol=1e-6)


@pytest.mark.slow
def test_both_sides_are_equally_likely_where_tables_are_lopsided_and_hidden():
    """0.95 quantiles either way, of 50 rows with both shares 0.05 and noise of the size of ε = 0.1.

    The sign of one cell's residual, which is no side, has 1.37 and 1.61;
    one standard error of the sum is about 0.02.
    """
    noise, rng = ReleasedNoise("geometric", 20.0), np.random.default_rng(9)
    counts = rng.multinomial(50, np.outer([0.05, 0.95], [0.05, 0.95]).ravel(), 20_000).reshape(
        -1, 2, 2
    )
    tables = NoisyTables(
        counts + noise.quantile(rng.random(counts.shape)), noise, np.full(20_000, 50.0)
    )
    value, fit = signed_association(tables), nearest_independent(tables)
    cell = np.where(fit.table[:, 0, 0] >= fit.means[:, 0, 0], 1, -1) * np.abs(value)
    low, high = np.quantile(value, [0.05, 0.95])
    assert abs(high + low) < 0.16 < abs(np.quantile(cell, [0.05, 0.95]).sum())


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(17, 17), (2, 300), (50, 10)])
@pytest.mark.parametrize("public", [True, False])
def test_tables_of_hundreds_of_cells_have_a_law_too(shape, public):
    """x^(m−1) overflows there unless it is kept in logarithms; statistics have the mean and the
    deviation of χ², an association stands out.
    """
    noise, rng, rows = ReleasedNoise("geometric", 2.0), np.random.default_rng(12), 40_000
    freedom = (shape[0] - 1) * (shape[1] - 1)
    counts = rng.multinomial(rows, np.ones(np.prod(shape)) / np.prod(shape), 60).reshape(
        -1, *shape
    ) + noise.quantile(rng.random((60, *shape)))
    total = np.full(60, float(rows)) if public else None
    with np.errstate(all="raise", under="ignore"):
        value = association(NoisyTables(counts, noise, total))
        counts[:, 0, 0] += 3000
        far = association(NoisyTables(counts, noise, None if total is None else total + 3000))
    assert abs(value.mean() - freedom) < 6 * np.sqrt(2 * freedom / 60)
    assert 0.6 < value.std() / np.sqrt(2 * freedom) < 1.6
    assert (far > freedom + 40 * np.sqrt(2 * freedom)).all()


def test_a_p_value_does_not_depend_on_how_many_tables_are_simulated_at_a_time(monkeypatch):
    tables = NoisyTables(np.array([[30.0, 14, 22], [18, 27, 9]]), GEOMETRIC)
    found = table_p_value(tables, association, 5, few=39, many=39)
    monkeypatch.setattr("discreet.inference.tables.tables.CHUNK", 100)
    np.testing.assert_allclose(
        table_p_value(tables, association, 5, few=39, many=39), found, rtol=1e-12
    )
    assert 1 / 40 < found[1] < 1


def test_what_is_no_number_is_no_evidence():
    assert tail_by_simulation(
        float("nan"), lambda draws, first: np.zeros(draws), few=19, many=19
    ) == (1.0, 19)
    assert tail_by_simulation(
        1.0, lambda draws, first: np.full(draws, np.nan), few=19, many=19
    ) == (1.0, 19)
    assert tail_by_simulation(1.0, lambda draws, first: np.zeros(draws), few=19, many=19) == (
        0.05,
        19,
    )


def test_without_rows_or_with_proportional_rows_there_is_no_side():
    noise, total = ReleasedNoise("geometric", 20.0), np.asarray(0.0)
    for table in ([[57.0, 18], [-18, 93]], [[-1.0, 71], [77, 5]]):
        for given in (np.array(table), np.array(table).T):
            assert signed_association(NoisyTables(given, noise, total)) == 0
            assert (
                table_p_value(NoisyTables(given, noise, total), association, 5, few=19, many=19)[1]
                == 1
            )
    assert signed_association(NoisyTables(np.array([[18.0, 24], [24, 32]]), noise)) == 0


def test_rows_that_tie_are_no_matter():
    """Where two singular values are equal every start is as good as another; a stationary point
    that is no minimum must not pass for strong evidence (25 instead of 6).
    """
    for table, spread in (([[2.0, -1], [1, 2]], 0.5), ([[-9.0, 14, 7], [15, 7, 5]], 5.0)):
        noise = ReleasedNoise("geometric", spread)
        found = [
            float(association(NoisyTables(given, noise)))
            for given in (np.array(table), np.array(table).T)
        ]
        assert max(found) < 10


@pytest.mark.slow
def test_variances_read_off_the_fit_favour_no_side_and_those_of_the_table_would():
    """Sums of the 0.05 and the 0.95 quantile, 50 rows with both shares 0.15 and noise of the size
    of ε = 0.2: -0.03 and -0.11, one standard error is about 0.013.
    """
    noise, rng = ReleasedNoise("geometric", 5.0), np.random.default_rng(2)
    counts = rng.multinomial(50, np.outer([0.15, 0.85], [0.15, 0.85]).ravel(), 60_000).reshape(
        -1, 2, 2
    )
    tables = NoisyTables(counts + noise.quantile(rng.random(counts.shape)), noise)
    value = signed_association(tables)
    alone = nearest_rank_one(
        tables.known,
        np.maximum(
            _even_means(tables.known, noise.variance, 1) + noise.variance, noise.variance / 2
        ),
    )
    other = np.sign(value) * np.sqrt(association(tables, alone))
    assert (
        abs(np.quantile(value, [0.05, 0.95]).sum())
        < 0.07
        < abs(np.quantile(other, [0.05, 0.95]).sum())
    )


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_rank_sums_hardly_move_with_unequal_groups_in_one_bin_but_would_with_rows_as_they_are(
    public,
):
    """200 rows, noise of the size of ε = 0.1: equal groups spread over 8 bins, and groups of 0.1
    and 0.9 with 0.9 of their rows in one bin. Control: rank sums less a multiple of noisy rows.
    """
    noise, rng, number = ReleasedNoise("geometric", 20.0), np.random.default_rng(1), 10_000
    ours, plain = [], []
    for groups, bins in (
        ([0.5, 0.5], np.full(8, 1 / 8)),
        ([0.1, 0.9], [0.9, 0.04, 0.02, 0.01, 0.01, 0.01, 0.005, 0.005]),
    ):
        counts = rng.multinomial(200, np.outer(groups, bins).ravel(), number).reshape(-1, 2, 8)
        tables = NoisyTables(
            counts + noise.quantile(rng.random(counts.shape)),
            noise,
            np.full(number, 200.0) if public else None,
        )
        fit = fit_independence(tables)
        t, variance = rank_statistic(tables, fit, rank_weights(tables, fit))
        move = (t * fit.p / variance).sum(axis=-1, keepdims=True) / (fit.p**2 / variance).sum(
            axis=-1, keepdims=True
        )
        ours.append(np.quantile(kruskal_wallis(tables), 0.95))
        plain.append(np.quantile(((t - move * fit.p) ** 2 / variance).sum(axis=-1), 0.95))
    assert abs(ours[1] - ours[0]) < 1.0 < 4.0 < plain[1] - plain[0]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (3, 4)])
def test_the_nearest_table_is_the_nearest_and_that_of_the_transpose(shape, monkeypatch):
    """With a public total the distance has two valleys.

    No start out of six finds a nearer table;
    a descent from one margin alone misses it in 1 to 5 of 100 hidden tables.
    """
    noise, rng, number = ReleasedNoise("geometric", 10.0), np.random.default_rng(4), 2000
    counts = rng.multinomial(50, np.ones(np.prod(shape)) / np.prod(shape), number).reshape(
        -1, *shape
    )
    tables = NoisyTables(
        counts + noise.quantile(rng.random(counts.shape)), noise, np.full(number, 50.0)
    )
    found = nearest_independent(tables).squared
    turned = NoisyTables(np.swapaxes(tables.counts, -1, -2), noise, tables.total)
    np.testing.assert_allclose(nearest_independent(turned).squared, found, rtol=0.02, atol=0.01)
    agree = np.abs(association(turned) - association(tables)) < 0.01 * (1 + association(tables))
    assert agree.mean() > 0.99
    # of 2 × 2 tables it stays as it is
    variance = (
        nearest_independent(tables).variance
        if shape == (2, 2)
        else np.full(tables.counts.shape, noise.variance)
    )
    follow = (
        None
        if shape == (2, 2)
        else lambda means: np.maximum(means + noise.variance, noise.variance / 2)
    )
    monkeypatch.setattr("discreet.inference.tables.rank_one.SWEEPS", 60)
    starts = rng.normal(0.3, 1, (6, number, shape[1]))
    others = [
        nearest_from(
            tables.known,
            start / start.sum(axis=-1, keepdims=True),
            variance,
            total=tables.total,
            follow=follow,
        ).squared
        for start in starts
    ]
    assert (found > 1.02 * np.min(others, axis=0)).mean() < 0.002
    alone = nearest_from(
        tables.known, tables.known.sum(axis=-2) / 50, variance, total=tables.total, follow=follow
    ).squared
    assert (alone > 1.02 * found).mean() > 0.003


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (4, 3)])
def test_where_noise_rules_the_nearest_table_and_its_curvatures_are_singular_values(shape):
    noise = ReleasedNoise("gaussian", 1e6)
    matrix = 1e6 * np.random.default_rng(sum(shape)).normal(size=(40, *shape))
    # so that the first singular value is well apart, and the sweeps find its vectors
    matrix[:, 0, 0] += 4e6
    tables = NoisyTables(matrix, noise)
    fit, values = nearest_independent(tables), np.linalg.svd(matrix, compute_uv=False)
    distance = ((matrix - fit.means) ** 2).sum(axis=(-2, -1))
    np.testing.assert_allclose(distance, (values[:, 1:] ** 2).sum(axis=1), rtol=1e-3)
    bent, kept = curvatures(fit)
    np.testing.assert_allclose(bent[:, -1], values[:, 1] / values[:, 0], rtol=1e-3)
    np.testing.assert_allclose(bent[:, 0], -bent[:, -1], rtol=1e-4)  # weights differ by a few 1e-6
    # the residual has so many degrees of freedom
    np.testing.assert_allclose(kept.sum(axis=(-2, -1)), (shape[0] - 1) * (shape[1] - 1), rtol=1e-4)


# -- simulation ------------------------------------------------------------------------------------


def test_simulated_counts_have_their_laws():
    uniform = (np.arange(200_000) + 0.5) / 200_000
    for mean in (0.3, 7.0, 900.0, 2e6):
        drawn = poisson_draws(uniform, mean)
        assert drawn.mean() == pytest.approx(mean, rel=1e-3)
        assert drawn.var() == pytest.approx(mean, rel=5e-3)
    assert poisson_draws(uniform[:3], 0.0).tolist() == [0, 0, 0]
    shares = np.array([0.2, 0.0, 0.5, 0.3])
    counts = multinomial_draws(np.random.default_rng(1).random((20_000, 4)), 40, shares)
    assert (counts.sum(axis=1) == 40).all()
    assert (counts[:, 1] == 0).all()
    np.testing.assert_allclose(
        np.cov(counts.T), 40 * (np.diag(shares) - np.outer(shares, shares)), atol=0.5
    )
    tables = NoisyTables(np.full((2, 2), 30.0), GEOMETRIC, None, cluster=3)
    drawn = simulated(tables, fit_independence(tables), 4000, 0).counts
    # rows of a unit alike
    assert drawn.var(axis=0).mean() == pytest.approx(3 * 30 + GEOMETRIC.variance, rel=0.1)
    assert (
        simulated(tables, fit_independence(tables), 50, 9).counts
        == simulated(tables, fit_independence(tables), 50, 9).counts
    ).all()


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 2)),
        np.full((2, 2), -7.0),
        np.array([[0.0, 0], [5, 9]]),
        np.array([[1e9, 0], [0, 0.0]]),
        np.zeros((3, 4)),
        np.array([[-50.0, 3], [80, -2]]),
    ],
)
@pytest.mark.parametrize("noise", [GEOMETRIC, GAUSSIAN], ids=lambda noise: noise.kind)
def test_every_table_has_a_p_value(table, noise):
    for total in (None, np.asarray(max(float(np.round(table.sum())), 0.0))):
        for statistic in (association, chi_square, kruskal_wallis):
            value, p, _ = table_p_value(
                NoisyTables(table, noise, total), statistic, 3, few=DRAWS, many=DRAWS
            )
            assert np.isfinite(value)
            assert 0 < p <= 1


# -- intervals -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "shares", "rows"),
    [
        (GAUSSIAN, (0.5, 0.4), 200),
        (GEOMETRIC, (0.05, 0.02), 400),
        (ReleasedNoise("gaussian", 30.0), (0.3, 0.3), 50),
    ],
)
def test_intervals_of_all_measures_cover_and_stay_in_range(noise, shares, rows):
    rng, (p, q), repetitions = np.random.default_rng(12), shares, 60
    law = Noise(noise.variance, (noise.variance / 2) ** 2 if noise.kind == "geometric" else 0.0)
    truth = np.array([p - q, p / q, p * (1 - q) / (q * (1 - p))])
    hits = np.zeros(3)
    for _ in range(repetitions):
        counts = np.array(
            [rng.multinomial(rows // 2, [share, 1 - share]) for share in shares]
        ) + noise.quantile(rng.random((2, 2)))
        found = contrast(*(Group(float(row[0]), float(row[1]), law) for row in counts), 0.95)
        ends = np.array([found.difference, found.ratio, found.odds_ratio])
        hits += (ends[:, 1] <= truth) & (truth <= ends[:, 2])
        assert (ends[:, 1] <= ends[:, 2]).all()
        assert ends[0, 1] >= -1
        assert ends[0, 2] <= 1
        assert ends[1:, 1].min() >= 0
    assert (hits / repetitions > 0.95 - 5 * np.sqrt(0.05 * 0.95 / repetitions)).all()


def test_a_common_difference_is_found_in_every_stratum_and_the_test_sees_it():
    rng = np.random.default_rng(3)
    law, hits = Noise(GAUSSIAN.variance), []
    for _ in range(100):
        counts = np.array(
            [
                [rng.multinomial(150, [base + extra, 1 - base - extra]) for extra in (0.15, 0.0)]
                for base in (0.1, 0.4, 0.7)
            ]
        ) + GAUSSIAN.quantile(rng.random((3, 2, 2)))
        estimate, low, high, sampling, privacy = common_difference(
            NoisyTables(counts, GAUSSIAN), law, 0.95
        )
        hits.append(low <= 0.15 <= high)
        assert low <= estimate <= high
        assert min(sampling, privacy) > 0
    assert np.mean(hits) > 0.82
    value, p, _ = table_p_value(
        NoisyTables(counts, GAUSSIAN),
        lambda tables: np.abs(stratified_root(tables)),
        1,
        few=399,
        many=399,
    )
    assert value > 2
    assert p < 0.05


def test_groups_without_rows_say_nothing():
    law = Noise(1.0, 0.25)
    nothing = contrast(Group(0.0, 0.0, law), Group(-3.0, 1.0, law), 0.95)
    assert nothing.difference[1:] == (-1.0, 1.0)
    assert nothing.ratio[1:] == (0.0, np.inf)
    assert nothing.odds_ratio[1:] == (0.0, np.inf)
    assert common_difference(NoisyTables(np.zeros((2, 2, 2)), GEOMETRIC), law, 0.95)[1:3] == (
        -1.0,
        1.0,
    )
    zeros = contrast(Group(0.0, 500.0, law), Group(0.0, 500.0, law), 0.95)
    assert zeros.difference[0] == 0
    assert zeros.difference[2] < 0.03
    assert zeros.ratio == (1.0, 0.0, np.inf)
