"""Junction trees, the model's tables, its fit and its rows, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from discreet.inference.simulation.streams import Stream
from discreet.inference.synthesis import model as model_module
from discreet.inference.synthesis.model import (
    Model,
    Noisy,
    _Messages,
    empty_model,
    fitted_model,
    independent_start,
)
from discreet.inference.synthesis.refits import shown
from discreet.inference.synthesis.rows import drawn_codes
from discreet.inference.synthesis.trees import cell_count, junction_tree, tree_cells

SIZES = (3, 2, 4, 2, 3, 2)
CLIQUES = ((0,), (1,), (2,), (3,), (4,), (5,), (0, 1), (1, 2), (2, 3), (0, 3), (1, 4))


def made(seed, cliques=CLIQUES, spread=1.0):
    """A random model, and its joint law by brute force."""
    rng = np.random.default_rng(seed)
    model = empty_model(SIZES, cliques)
    theta = {one: rng.normal(0, spread, [SIZES[j] for j in one]) for one in cliques}
    messages = _Messages(model.tree, tuple(theta))
    joint = np.zeros(SIZES)
    for clique, values in theta.items():
        joint = joint + values.reshape([SIZES[j] if j in clique else 1 for j in range(6)])
    joint = np.exp(joint)
    return Model(model.tree, theta, messages.beliefs(theta)), joint / joint.sum(), messages


def summed(joint, columns):
    return joint.sum(axis=tuple(j for j in range(joint.ndim) if j not in columns))


@pytest.mark.parametrize("seed", range(30))
def test_a_junction_tree_holds_every_clique_and_runs_through(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 7).tolist()
    pairs = list(itertools.combinations(range(7), 2))
    cliques = [pairs[place] for place in rng.choice(21, rng.integers(0, 12), replace=False)]
    tree = junction_tree(sizes, cliques)
    for clique in cliques:
        assert tree.home(clique) is not None
    assert {column for node in tree.nodes for column in node} == set(range(7))
    assert len(tree.edges) == len(tree.nodes) - 1
    for first, second in itertools.combinations(range(len(tree.nodes)), 2):
        shared = set(tree.nodes[first]) & set(tree.nodes[second])
        assert all(shared <= set(tree.nodes[place]) for place in path(tree, first, second))
    assert tree.cells == sum(cell_count(sizes, node) for node in tree.nodes)
    assert tree.cells == tree_cells(sizes, cliques)


def path(tree, first, second):
    """The nodes between two of a tree."""
    above = {child: parent for parent, child in tree.edges}

    def up(place):
        found = [place]
        while found[-1] in above:
            found.append(above[found[-1]])
        return found

    one, two = up(first), up(second)
    meet = next(place for place in one if place in two)
    return [*one[: one.index(meet) + 1], *two[: two.index(meet)]]


@pytest.mark.parametrize("cliques", [CLIQUES, CLIQUES[:6], ((0, 1, 2), (2, 4), (3,), (5,))])
def test_tables_are_those_of_brute_force(cliques):
    model, joint, _ = made(1, cliques)
    for size in range(1, 7):
        for columns in itertools.combinations(range(6), size):
            np.testing.assert_allclose(model.table(columns), summed(joint, columns), atol=1e-13)
    turned = np.transpose(summed(joint, (0, 2, 4)), (2, 0, 1))
    np.testing.assert_allclose(model.table((4, 0, 2)), turned, atol=1e-13)


def test_columns_far_apart_are_joined_without_large_tables(monkeypatch):
    model, joint, _ = made(9)
    calls = []
    over = model_module._over_nodes
    monkeypatch.setattr(model_module, "_over_nodes", lambda *given: calls.append(1) or over(*given))
    wanted = {columns: summed(joint, columns) for columns in itertools.combinations(range(6), 3)}
    for columns, table in wanted.items():
        np.testing.assert_allclose(model.table(columns), table, atol=1e-13)
    assert calls
    monkeypatch.setattr(model_module, "LARGEST_TABLE", 1)
    calls.clear()
    for columns, table in wanted.items():
        np.testing.assert_allclose(model.table(columns), table, atol=1e-12)
    assert not calls


def test_potentials_far_apart_stay_finite():
    model, joint, _ = made(4, spread=60.0)
    assert np.isfinite(joint).all()
    for columns in itertools.combinations(range(6), 2):
        np.testing.assert_allclose(model.table(columns), summed(joint, columns), atol=1e-9)


def test_the_derivative_is_the_covariance_of_indicators():
    model, joint, messages = made(2)
    rng = np.random.default_rng(3)
    along = {one: rng.normal(size=values.shape) for one, values in model.theta.items()}
    total = sum(
        values.reshape([SIZES[j] if j in one else 1 for j in range(6)])
        for one, values in along.items()
    )
    mean = float((joint * total).sum())
    found = messages.derivative(model.beliefs, along)
    for clique in CLIQUES:
        wanted = summed(joint * (total - mean), clique)
        np.testing.assert_allclose(found[clique], wanted, atol=1e-13)


def test_a_fit_finds_the_law_that_tables_came_from():
    truth, joint, _ = made(5, spread=0.5)
    total = 1e6
    measured = {one: Noisy(total * summed(joint, one), 1.0) for one in CLIQUES}
    start = independent_start(empty_model(SIZES, CLIQUES), measured)
    before = abs(start.table((0, 1)) - truth.table((0, 1))).max()
    model = fitted_model(start, measured, total)
    for columns in itertools.combinations(range(6), 2):
        np.testing.assert_allclose(model.table(columns), summed(joint, columns), atol=2e-4)
    assert before > 20 * abs(model.table((0, 1)) - truth.table((0, 1))).max()


@pytest.mark.parametrize("seed", range(3))
def test_noise_and_empty_tables_leave_a_law(seed):
    rng = np.random.default_rng(seed)
    for scale, total in ((0.0, 1.0), (50.0, 3.0), (1e9, 1.0)):
        measured = {
            one: Noisy(rng.normal(0, scale, [SIZES[j] for j in one]), max(scale, 1.0))
            for one in CLIQUES
        }
        start = independent_start(empty_model(SIZES, CLIQUES), measured)
        law = fitted_model(start, measured, total).table((0, 2, 5))
        assert (law >= 0).all()
        assert law.sum() == pytest.approx(1)


# -- rows ----------------------------------------


def test_rounded_rows_follow_expected_counts_node_by_node():
    model, _, _ = made(6)
    codes = drawn_codes(model, 5000, Stream("rows"), rounded=True)
    for place in range(6):
        counts = np.bincount(codes[:, place], minlength=SIZES[place])
        assert np.abs(counts - 5000 * model.table((place,))).max() < 60  # binomial: up to 150
    root = model.tree.nodes[0]
    cells = np.ravel_multi_index(codes[:, list(root)].T, [SIZES[j] for j in root])
    counts = np.bincount(cells, minlength=cell_count(SIZES, root))
    assert np.abs(counts - 5000 * model.table(root).ravel()).max() < 1


@pytest.mark.parametrize("rounded", [True, False])
def test_drawn_rows_have_the_joint_law_and_another_is_noticed(rounded):
    model, joint, _ = made(7, spread=0.7)
    rows = 40_000
    codes = drawn_codes(model, rows, Stream(f"law {rounded}"), rounded=rounded)
    counts = np.bincount(np.ravel_multi_index(codes.T, SIZES), minlength=joint.size)

    def p_value(law):
        expected = rows * law.ravel()
        return chi2.sf(((counts - expected) ** 2 / expected).sum(), joint.size - 1)

    assert p_value(joint) > 1e-6
    other = joint * np.exp(0.3 * np.arange(3) * 0.3).reshape(3, 1, 1, 1, 1, 1)
    assert p_value(other / other.sum()) < 1e-9


def test_few_rows_and_cells_without_mass_are_drawn():
    model, _, _ = made(8, spread=80.0)
    for rows in (1, 2, 17):
        for rounded in (True, False):
            codes = drawn_codes(model, rows, Stream("few"), rounded=rounded)
            assert codes.shape == (rows, 6)
            assert ((codes >= 0) & (codes < np.array(SIZES))).all()


def test_all_refits_are_made_whether_or_not_they_are_shown(monkeypatch, capsys):
    assert list(shown([3, 5])) == [3, 5]
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert list(shown([3, 5])) == [3, 5]
    assert "Models" in capsys.readouterr().err
    assert list(shown([3])) == [3]
    assert not capsys.readouterr().err
