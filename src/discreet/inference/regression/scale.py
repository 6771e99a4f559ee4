"""From the columns of a model, scaled to −1 … 1 by public ranges, to the user's own columns:
an exact linear map, read off the components.

A model column is a product of components, (t − middle)/half for a number and a contrast for a
level. Multiplied out it is a sum of products of the user's own quantities t and levels. Where every
one of those products is a column of the model (an interaction with its margins), coefficients move
to them by a triangular map; a column with a product that the model lacks is only divided by its
half-ranges, and its name says "centred".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.inference.results.laws import Array
from discreet.specs.estimating.components import Component, LevelComponent, ModelColumn

Product = frozenset[Any]


def expanded(column: ModelColumn) -> dict[Product, float]:
    """A model column as a sum of products of the user's quantities."""
    terms: dict[Product, float] = {frozenset(): 1.0}
    for component in column.components:
        summands: dict[Any, float]
        if isinstance(component, LevelComponent):
            summands = {_name(component): 1.0}
        else:
            half = component.half
            summands = {_name(component): 1 / half, None: -component.middle / half}
        grown: dict[Product, float] = {}
        for (product, one), (name, two) in itertools.product(terms.items(), summands.items()):
            if two:
                key = product if name is None else product | {name}
                grown[key] = grown.get(key, 0.0) + one * two
        terms = grown
    return terms


def leading(column: ModelColumn) -> Product:
    """The product of the user's quantities that a column is named after."""
    return frozenset(_name(component) for component in column.components)


def user_map(columns: Sequence[ModelColumn]) -> tuple[tuple[str, ...], Array]:
    """(names, T): the user's coefficients are T·β for coefficients β of the model columns."""
    places = {leading(column): place for place, column in enumerate(columns)}
    terms = [expanded(column) for column in columns]
    movable = [True] * len(columns)
    changed = True
    while changed:
        changed = False
        for place, column in enumerate(columns):
            lacks = any(
                key not in places or (places[key] != place and not movable[places[key]])
                for key in terms[place]
            )
            if movable[place] and lacks:
                movable[place], changed = False, True
            # two columns of one name: neither is moved
            if movable[place] and places[leading(column)] != place:
                movable[place], changed = False, True
    matrix = np.zeros((len(columns), len(columns)))
    names = []
    for place, column in enumerate(columns):
        names.append(column.name if movable[place] else f"{column.name} (centred)")
        if movable[place]:
            for key, weight in terms[place].items():
                matrix[places[key], place] += weight
        else:
            matrix[place, place] = terms[place][leading(column)]
    return tuple(names), matrix


def _name(component: Component) -> tuple[Any, ...]:
    if isinstance(component, LevelComponent):
        return component.column, component.contrast
    return component.column, component.transform, component.knots, component.index
