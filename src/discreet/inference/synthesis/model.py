"""A log-linear model of the rows: p(x) in proportion to exp Σ_r θ_r(x_r), r the measured tables.

Method.     Tables of the model are exact, by messages along a junction tree (trees.py). The model
            is fitted to noisy tables y_r of spread σ_r by least ½·Σ_r ‖(n·p_r − y_r)/σ_r‖² +
            ½·Σ θ_r² over the tables of several columns: the greatest density of θ given the tables
            where interactions are standard normal beforehand, so that what noise rules stays
            near independence. L-BFGS (descent.py), each potential over the root of its curvature at
            the start.
            The derivative of the tables in θ is a covariance of indicators, so it is symmetric, and
            the gradient of a loss of the tables is their derivative along the loss's own slope: two
            more passes of messages.
Reference.  McKenna, Sheldon and Miklau (2019); the directional derivative is forward mode.

Everything here is post-processing of released tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.inference.results.laws import Array
from discreet.inference.synthesis.descent import least
from discreet.inference.synthesis.trees import Clique, Tree, cell_count, junction_tree

LARGEST_TABLE = 1 << 21  # cells of one table that is made on the way from several nodes
EXCLUDED = 1e4  # below the potential of cells that are possible: beyond what a float tells from 0
LARGEST_POTENTIAL = 200.0
PENALTY = 1.0  # one over the variance of an interaction beforehand
MOST_ITERATIONS, LOOK_BACK = 400, 50
FALLEN = 0.05  # of the loss in `LOOK_BACK` iterations: less is the end
Tables = dict[Clique, Array]


@dataclass(frozen=True, slots=True)
class Noisy:
    """A measured table and the standard deviation of the noise in each of its cells."""

    values: Array
    sigma: float


@dataclass(frozen=True, eq=False)
class Model:
    """Normalised tables of a junction tree's nodes: all that the model says."""

    tree: Tree
    theta: Tables
    beliefs: tuple[Array, ...]

    def table(self, columns: Sequence[int]) -> Array:
        """The probabilities of all cells over some columns, axes in the order asked."""
        wanted = tuple(sorted(columns))
        home = self.tree.home(wanted)
        if home is not None:
            found = summed(self.beliefs[home], self.tree.nodes[home], wanted)
        elif _widest(self.tree, wanted) <= LARGEST_TABLE:
            found = _over_nodes(self, wanted)
        else:
            found = _given_one(self, wanted)
        return np.transpose(found, [wanted.index(column) for column in columns])


def empty_model(sizes: Sequence[int], cliques: Sequence[Clique]) -> Model:
    """The uniform law, over a tree that holds all cliques."""
    tree = junction_tree(sizes, cliques)
    theta = {clique: np.zeros([sizes[j] for j in clique]) for clique in cliques}
    return Model(tree, theta, _Messages(tree, tuple(theta)).beliefs(theta))


def fitted_model(
    start: Model, measured: Mapping[Clique, Noisy], total: float, iterations: int = MOST_ITERATIONS
) -> Model:
    """The model nearest to noisy tables, from a model over the same cliques."""
    problem = _Fit(start, measured, total)
    begin = problem.joined(start.theta) / problem.scale
    theta = problem.theta(least(problem.loss, begin, iterations, _hardly_falls))
    return Model(start.tree, theta, problem.messages.beliefs(theta))


class _Fit:
    """The loss of a fit in numbers of about unit curvature: potentials over `scale`."""

    def __init__(self, start: Model, measured: Mapping[Clique, Noisy], total: float) -> None:
        self.cliques, self.total = tuple(start.theta), total
        self.messages = _Messages(start.tree, self.cliques)
        self.shapes = [start.theta[clique].shape for clique in self.cliques]
        self.ends = np.cumsum([0] + [math.prod(shape) for shape in self.shapes]).tolist()
        self.values = self.joined({clique: measured[clique].values for clique in self.cliques})
        self.sigmas = self._for_each(lambda clique: measured[clique].sigma)
        self.penalty = self._for_each(lambda clique: PENALTY if len(clique) > 1 else 0.0)
        expected = total * self.joined(self.messages.tables(start.beliefs))
        likely = (np.maximum(self.values, 0.0) + expected) / 2
        self.scale = 1 / np.sqrt((likely / self.sigmas) ** 2 + np.maximum(self.penalty, 0.3))

    def loss(self, flat: Array) -> tuple[float, Array]:
        """The penalised distance and its gradient."""
        theta = self.theta(flat)
        potentials = self.joined(theta)
        beliefs = self.messages.beliefs(theta)
        rest = (self.total * self.joined(self.messages.tables(beliefs)) - self.values) / self.sigmas
        slope = self.messages.derivative(beliefs, self._split(self.total * rest / self.sigmas))
        pulled = self.penalty * potentials
        value = 0.5 * float(rest @ rest) + 0.5 * float(pulled @ potentials)
        return value, (self.joined(slope) + pulled) * self.scale

    def theta(self, flat: Array) -> Tables:
        """The potentials, within what floats can hold."""
        return self._split(np.clip(flat * self.scale, -LARGEST_POTENTIAL, LARGEST_POTENTIAL))

    def joined(self, tables: Mapping[Clique, Array]) -> Array:
        return np.concatenate([tables[clique].ravel() for clique in self.cliques])

    def _split(self, flat: Array) -> Tables:
        parts = zip(self.cliques, self.ends, self.ends[1:], self.shapes, strict=False)
        return {clique: flat[a:b].reshape(shape) for clique, a, b, shape in parts}

    def _for_each(self, number: Callable[[Clique], float]) -> Array:
        """A number of each table, for each of its cells."""
        sizes = np.diff(self.ends)
        return np.repeat([number(clique) for clique in self.cliques], sizes).astype(float)


def independent_start(model: Model, measured: Mapping[Clique, Noisy]) -> Model:
    """The model with the one-way tables alone, negative counts put to half their noise."""
    theta = dict(model.theta)
    for clique, noisy in measured.items():
        if len(clique) == 1:
            counts = np.maximum(noisy.values, max(noisy.sigma / 2, 0.5))
            theta[clique] = np.log(counts / counts.sum())
    messages = _Messages(model.tree, tuple(theta))
    return Model(model.tree, theta, messages.beliefs(theta))


def _hardly_falls(losses: list[float]) -> bool:
    """Whether the last steps took next to nothing off a loss."""
    if len(losses) <= LOOK_BACK:
        return False
    before = losses[-1 - LOOK_BACK]
    return before - losses[-1] < FALLEN * max(before, 1.0)


def summed(array: Array, inside: Clique, kept: Clique) -> Array:
    """A table with the columns that are not kept summed out."""
    axes = tuple(place for place, column in enumerate(inside) if column not in kept)
    return np.asarray(array.sum(axis=axes)) if axes else array


class _Messages:
    """Messages along a tree for tables over `cliques`, each of which is read off its home."""

    def __init__(self, tree: Tree, cliques: tuple[Clique, ...]) -> None:
        self._tree, self._cliques = tree, cliques
        self._homes = [tree.home(clique) for clique in cliques]
        self._shared = [tree.shared(edge) for edge in tree.edges]

    def _over(self, array: Array, inner: Clique, place: int) -> Array:
        """A table over some columns of a node, shaped to be added to the node's."""
        node, sizes = self._tree.nodes[place], self._tree.sizes
        return array.reshape([sizes[j] if j in inner else 1 for j in node])

    def _added(self, tables: Tables) -> list[Array]:
        """For each node the sum of the tables that are at home there."""
        sizes = self._tree.sizes
        found = [np.zeros([sizes[j] for j in node]) for node in self._tree.nodes]
        for clique, home in zip(self._cliques, self._homes, strict=True):
            assert home is not None, "a table lies in no node"
            found[home] += self._over(tables[clique], clique, home)
        return found

    def beliefs(self, theta: Tables) -> tuple[Array, ...]:
        """The model's table of every node. A cell too unlikely for a float is 0."""
        nodes, edges = self._tree.nodes, self._tree.edges
        tables = self._added(theta)
        for table in tables:
            table -= table.max()
            np.exp(table, out=table)
        sent: list[Array] = [np.zeros(0)] * len(edges)
        for place in reversed(range(len(edges))):
            (parent, child), shared = edges[place], self._shared[place]
            message = summed(tables[child], nodes[child], shared)
            sent[place] = message / message.max()
            tables[parent] *= self._over(sent[place], shared, parent)
            tables[parent] /= tables[parent].max()
        tables[0] /= tables[0].sum()
        for place, (parent, child) in enumerate(edges):
            shared = self._shared[place]
            above = summed(tables[parent], nodes[parent], shared)
            below = summed(tables[child], nodes[child], shared)
            ratio = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
            tables[child] *= self._over(ratio, shared, child)
        return tuple(tables)

    def tables(self, beliefs: Sequence[Array]) -> Tables:
        """The model's table over every clique."""
        return {
            clique: summed(beliefs[home], self._tree.nodes[home], clique)
            for clique, home in zip(self._cliques, self._homes, strict=True)
            if home is not None
        }

    def derivative(self, beliefs: Sequence[Array], along: Tables) -> Tables:
        """How the tables move as θ moves along a direction: Cov(1{x_r = ·}, Σ_s direction_s)."""
        nodes, edges = self._tree.nodes, self._tree.edges
        moved = self._added(along)  # of the logarithm of each node's table
        sent: list[Array] = [np.zeros(0)] * len(edges)
        for place in reversed(range(len(edges))):
            (parent, child), shared = edges[place], self._shared[place]
            sent[place] = self._mean(beliefs[child], moved[child], nodes[child], shared)
            moved[parent] += self._over(sent[place], shared, parent)
        moved[0] -= float((beliefs[0] * moved[0]).sum())
        for place, (parent, child) in enumerate(edges):
            shared = self._shared[place]
            above = self._mean(beliefs[parent], moved[parent], nodes[parent], shared)
            moved[child] += self._over(above - sent[place], shared, child)
        for one, belief in zip(moved, beliefs, strict=True):
            one *= belief
        return self.tables(moved)

    @staticmethod
    def _mean(belief: Array, values: Array, node: Clique, shared: Clique) -> Array:
        """The mean of a node's values given the shared columns; 0 where these never occur."""
        weight = summed(belief, node, shared)
        total = summed(belief * values, node, shared)
        return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)


def _widest(tree: Tree, wanted: Clique) -> int:
    """The cells of the largest table that `_over_nodes` makes."""
    widest, below = 0, {place: set(node) for place, node in enumerate(tree.nodes)}
    for parent, child in reversed(tree.edges):
        kept = (below[child] & set(wanted)) | set(tree.shared((parent, child)))
        widest = max(widest, cell_count(tree.sizes, kept | set(tree.nodes[child])))
        below[parent] |= below[child] & set(wanted)
    return max(widest, cell_count(tree.sizes, (below[0] & set(wanted)) | set(tree.nodes[0])))


def _given_one(model: Model, wanted: Clique) -> Array:
    """A table whose columns lie far apart: those of the model given each cell of one column, side
    by side. The messages go once for each cell, and no table is larger than a node.
    """
    column = min(wanted, key=lambda one: (model.tree.sizes[one], one))
    rest = tuple(one for one in wanted if one != column)
    alone, found = model.table((column,)), []
    for cell, share in enumerate(alone):
        given = _given(model, column, cell) if share > 0 else model
        found.append(share * given.table(rest))
    return np.stack(found, axis=wanted.index(column))


def _given(model: Model, column: int, cell: int) -> Model:
    """The model where one column is known."""
    clique = min((one for one in model.theta if column in one), key=len)
    shape = [model.tree.sizes[one] if one == column else 1 for one in clique]
    other = np.where(np.arange(model.tree.sizes[column]) == cell, 0.0, -EXCLUDED)
    theta = {**model.theta, clique: model.theta[clique] + other.reshape(shape)}
    return Model(model.tree, theta, _Messages(model.tree, tuple(theta)).beliefs(theta))


def _over_nodes(model: Model, wanted: Clique) -> Array:
    """A table over columns of several nodes: each branch of the tree that holds some of them is
    summed down to them, given what it shares with its parent.
    """
    tree = model.tree
    held: dict[int, tuple[Clique, Array]] = {}
    for place in reversed(range(-1, len(tree.edges))):
        child = tree.edges[place][1] if place >= 0 else 0
        shared = tree.shared(tree.edges[place]) if place >= 0 else ()
        below = [held.pop(edge[1]) for edge in tree.edges if edge[0] == child and edge[1] in held]
        news = {column for columns, _ in below for column in columns} | set(tree.nodes[child])
        if place >= 0 and not (news - set(shared)) & set(wanted):
            continue
        belief = model.beliefs[child]
        if shared:
            over = summed(belief, tree.nodes[child], shared)
            shape = [tree.sizes[j] if j in shared else 1 for j in tree.nodes[child]]
            ratio = np.divide(1.0, over, out=np.zeros_like(over), where=over > 0)
            belief = belief * ratio.reshape(shape)
        kept = tuple(sorted((news & set(wanted)) | set(shared)))
        held[child] = kept, _product([(tree.nodes[child], belief), *below], kept, tree.sizes)
    found = held[0][1]
    total = found.sum()
    return found / total if total > 0 else np.full(found.shape, 1 / found.size)


def _product(parts: list[tuple[Clique, Array]], kept: Clique, sizes: Sequence[int]) -> Array:
    """The product of tables, summed down to the columns that are kept."""
    names = {column: place for place, column in enumerate(sorted({*kept, *_all(parts)}))}
    operands: list[object] = []
    for columns, array in parts:
        operands += [array, [names[column] for column in columns]]
    operands.append([names[column] for column in kept])
    found: Array = np.einsum(*operands, optimize="greedy")  # type: ignore[call-overload]
    return found


def _all(parts: list[tuple[Clique, Array]]) -> list[int]:
    return [column for columns, _ in parts for column in columns]
