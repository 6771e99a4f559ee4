"""Formulas on the cells of tables: ``y ~ a + C(b, base="x") + a:c``, and ``y by g``.

A name is a declared column; `+`, `:`, `*` and `-1` are as usual. Levels have one coefficient each
but the first (or `base`), numbers one for the number of their bin. The response is a number (least
squares), or yes/no: a Boolean column, the second of two levels, or C(name, base="…"), the level
that counts as yes (logistic). Cells without a value in some column are left out.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from discreet.errors import InvalidParameter, shown
from discreet.inference.results.laws import Array
from discreet.inference.synthesis.domain import Cut, Domain
from discreet.inference.synthesis.equations import Linked
from discreet.inference.synthesis.trees import Clique, cell_count
from discreet.inference.synthesis.unbiased import Functions
from discreet.schema import Boolean, Category, level_text

MOST_COLUMNS = 200
LARGEST_DESIGN = 1 << 20  # cells of the table over all columns of a formula
_NAME = re.compile(
    r"""\s*(?:C\(\s*(?P<quoted>`[^`]+`|[^\s,()`]+)\s*"""
    r"""(?:,\s*(?:base\s*=\s*)?(?P<base>"[^"]*"|'[^']*'|[^\s,()]+)\s*)?\)"""
    r"""|(?P<name>`[^`]+`|[^\s+*:~()`-][^+*:~()`]*?))\s*"""
)
Family = Literal["ols", "logistic"]


@dataclass(frozen=True, slots=True)
class Factor:
    """A column in a formula, and the level that C(…, base=…) names."""

    column: int
    base: str | None = None


@dataclass(frozen=True)
class Formula:
    """A formula against a domain: its response, its terms, and the columns of all of them."""

    text: str
    domain: Domain
    response: Factor
    terms: tuple[tuple[Factor, ...], ...]
    intercept: bool

    @property
    def columns(self) -> Clique:
        factors = (self.response, *itertools.chain.from_iterable(self.terms))
        return tuple(sorted({factor.column for factor in factors}))

    @property
    def family(self) -> Family:
        """Least squares for a number in bins, logistic for yes/no."""
        return "ols" if self.domain.cuts[self.response.column].edges else "logistic"

    @property
    def title(self) -> str:
        """The response in words."""
        cut = self.domain.cuts[self.response.column]
        if self.family == "ols" or isinstance(cut.column, Boolean):
            return cut.name
        return f"{cut.name}[{cut.labels[self._yes(cut)]}]"

    def equation(self) -> tuple[tuple[str, ...], Linked]:
        """The names of the coefficients, and the estimating equation on all cells."""
        columns, sizes = self.columns, self.domain.sizes
        if cell_count(sizes, columns) > LARGEST_DESIGN:
            raise InvalidParameter(
                "a formula",
                f"the table over {self.domain.words(columns)} has more than {LARGEST_DESIGN} cells",
                "its errors are computed cell by cell",
                "use fewer columns",
            )
        grid = _Grid(self.domain, columns)
        coded = self._coded(grid)
        y, held = self._outcome(grid), grid.held
        x = np.array([np.broadcast_to(one, grid.shape).ravel() for _, _, one in coded])
        names = tuple(name for name, _, _ in coded)
        y, held = (np.broadcast_to(one, grid.shape).ravel() for one in (y, held))
        equation = Linked(columns, grid.shape, x, y, held, self.family == "logistic")
        return names, equation

    def in_pieces(self) -> dict[Clique, None]:
        """The tables that least squares needs: one for each product of two columns of the model, or
        of one and the response; none for other families, or where cells may hold no value.
        """
        absent = any(self.domain.cuts[place].absent for place in self.columns)
        if self.family != "ols" or absent:
            return {}
        reads = [{factor.column for factor in term} for term in self.terms]
        reads += [set()] if self.intercept else []
        both = [*reads, {self.response.column}]
        return {tuple(sorted(one | two)): None for one in reads for two in both}

    def pieced(self, equation: Linked) -> Linked:
        """The same least-squares equation, its scores as functions of pairs."""
        grid = _Grid(self.domain, self.columns)
        coded, y = self._coded(grid), self._outcome(grid)
        response = (self.response.column,)

        def pieces(beta: Array) -> Functions:
            found: dict[Clique, Array] = {}
            for row, (_, columns, one) in enumerate(coded):
                products = [(response, y)] + [
                    (others, -beta[place] * other) for place, (_, others, other) in enumerate(coded)
                ]
                for others, other in products:
                    over = tuple(sorted({*columns, *others}))
                    value = grid.over(one * other, over)
                    if over not in found:
                        found[over] = np.zeros((len(coded), *value.shape))
                    found[over][row] += value
            return found

        return Linked(
            equation.columns, equation.shape, equation.x, equation.y, equation.held, False, pieces
        )

    def _coded(self, grid: _Grid) -> list[tuple[str, Clique, Array]]:
        """(name, columns, values) of every coefficient's column."""
        found: list[tuple[str, Clique, Array]] = []
        if self.intercept:
            found.append(("intercept", (), np.ones(())))
        full = not self.intercept  # the first term of levels has all of them
        for term in self.terms:
            parts = [self._levels(factor, grid, full=full and len(term) == 1) for factor in term]
            if full and len(term) == 1 and not self.domain.cuts[term[0].column].edges:
                full = False
            for combined in itertools.product(*parts):
                values = math.prod((one for _, one in combined), start=np.ones(()))
                columns = tuple(sorted({factor.column for factor in term}))
                found.append((":".join(name for name, _ in combined), columns, values))
        if not 1 <= len(found) <= MOST_COLUMNS:
            raise _refused(self.text, f"it has {len(found)} coefficients, 1 to {MOST_COLUMNS} fit")
        return found

    def _levels(self, factor: Factor, grid: _Grid, *, full: bool) -> list[tuple[str, Array]]:
        cut = self.domain.cuts[factor.column]
        if cut.edges:
            return [(cut.name, grid.along(factor.column, cut.numbers))]
        base = 0 if factor.base is None else _place(cut, factor.base)
        return [
            (f"{cut.name}[{label}]", grid.along(factor.column, np.eye(cut.size)[place]))
            for place, label in enumerate(cut.labels)
            if full or place != base
        ]

    def _outcome(self, grid: _Grid) -> Array:
        cut = self.domain.cuts[self.response.column]
        values = cut.numbers if cut.edges else np.eye(cut.size)[self._yes(cut)]
        return grid.along(self.response.column, values)

    def _yes(self, cut: Cut) -> int:
        """The place of the level that counts as yes."""
        if self.response.base is not None:
            return _place(cut, self.response.base)
        if len(cut.labels) != 2:
            raise InvalidParameter(
                f"response {cut.name!r}",
                f"it has {len(cut.labels)} levels",
                "a yes/no response is one level against all others",
                f'name the level that counts as yes: C({cut.name}, base="…") ~ …',
            )
        return 1


class _Grid:
    """The cells of a table over sorted columns, as an array with an axis a column."""

    def __init__(self, domain: Domain, columns: Clique) -> None:
        self._domain, self._columns = domain, columns
        self.shape = tuple(domain.sizes[place] for place in columns)

    def along(self, column: int, values: Array) -> Array:
        """Values of one column's cells, shaped to be broadcast."""
        at = self._columns.index(column)
        return values.reshape([-1 if place == at else 1 for place in range(len(self.shape))])

    def over(self, values: Array, columns: Clique) -> Array:
        """Values that depend on some columns alone, as an array over these."""
        shape = [self.shape[self._columns.index(column)] for column in columns]
        spread = [
            self.shape[place] if column in columns else 1
            for place, column in enumerate(self._columns)
        ]
        return np.broadcast_to(values, spread).reshape(shape)

    @property
    def held(self) -> Array:
        """1 where every column has a value."""
        return math.prod(
            (self.along(place, self._domain.cuts[place].held) for place in self._columns),
            start=np.ones(()),
        )


def formula_of(text: str, domain: Domain) -> Formula:
    """A formula, read; refused where it says something else."""
    sides = text.split("~")
    if len(sides) != 2:
        raise _refused(text, "it has no response and terms on two sides of ~")
    response = _factor(sides[0], text, domain)
    terms: list[tuple[Factor, ...]] = []
    intercept = True
    for part in re.split(r"\+|(?=-)", sides[1]):
        word = part.strip()
        if word.replace(" ", "") in ("-1", "0", "-0"):
            intercept = word.replace(" ", "") == "-0"
        elif word not in ("1", ""):
            terms += [term for term in _expanded(word, text, domain) if term not in terms]
    if not sides[1].strip() or not (terms or intercept):
        raise _refused(text, "it has no terms")
    kept = {frozenset(term) for term in terms}
    for term in terms:
        if any(frozenset(part) not in kept for part in _margins(term)):
            raise _refused(text, "a product stands without its factors; write a*b for a + b + a:b")
    made = Formula(text, domain, response, tuple(terms), intercept)
    if response.column in {factor.column for term in terms for factor in term}:
        raise _refused(text, "its response is among its terms")
    return made


def _margins(term: tuple[Factor, ...]) -> Iterator[tuple[Factor, ...]]:
    """All proper parts of a product."""
    for size in range(1, len(term)):
        yield from itertools.combinations(term, size)


def columns_asked(asked: object, domain: Domain) -> Clique:
    """The columns of an analysis: of a formula, of "a by b", of a list of names."""
    if isinstance(asked, str) and "~" in asked:
        return formula_of(asked, domain).columns
    if isinstance(asked, str):
        head, by, rest = asked.partition(" by ")
        names = [head, *rest.split("+")] if by else asked.split("+")
        listed = [name.strip().strip("`") for part in names for name in part.split(",")]
        return tuple(sorted(domain.places(listed)))
    if isinstance(asked, (list, tuple)):
        return tuple(sorted(domain.places(list(asked))))
    raise InvalidParameter(
        "an analysis",
        f"a {type(asked).__name__} is none",
        "its columns are measured together",
        'pass a formula such as "income ~ sex + education", "hours by education", or a list of '
        "columns",
    )


def _expanded(word: str, text: str, domain: Domain) -> list[tuple[Factor, ...]]:
    """a*b as a, b and a:b."""
    groups = [
        tuple(_factor(name, text, domain) for name in part.split(":")) for part in word.split("*")
    ]
    return [
        tuple(itertools.chain.from_iterable(chosen))
        for size in range(1, len(groups) + 1)
        for chosen in itertools.combinations(groups, size)
    ]


def _factor(word: str, text: str, domain: Domain) -> Factor:
    found = _NAME.fullmatch(word)
    if found is None:
        raise _refused(text, f"{shown(word.strip())} is no column, C(column) or product of them")
    column = domain.place((found["quoted"] or found["name"]).strip("`").strip())
    base = found["base"].strip("\"'") if found["base"] else None
    if base is not None:
        _place(domain.cuts[column], base)
    return Factor(column, base)


def _place(cut: Cut, level: str) -> int:
    texts: Sequence[str] = cut.labels
    if isinstance(cut.column, Category):
        texts = [level_text(one) for one in cut.column.levels]
    if level not in texts or cut.edges:
        raise InvalidParameter(
            f"C({cut.name}, base={level!r})",
            f"it is none of {', '.join(texts[:12])}",
            "levels are declared",
            "name a declared level",
        )
    return list(texts).index(level)


def _refused(text: str, found: str) -> InvalidParameter:
    return InvalidParameter(
        f"formula {shown(text)}",
        found,
        "formulas are read, never run, and know declared columns alone",
        'use for example "income ~ sex + education + sex:education" or C(region, base="N")',
    )
