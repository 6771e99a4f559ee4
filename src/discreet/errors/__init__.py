"""Every error discreet raises, in four parts:
what was asked, what was found, why it matters, what to do.

An error never carries a private value. All of them are decided from public inputs (parameters, the
schema, the ledger), before data is opened and before anything is debited; what data may hold is
handled by the total rules in `schema.py` instead.

The classes stand here; texts that a room of the library needs are made in `questions` (sessions and
their questions), `data` (what an engine refuses) and their neighbours.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import FunctionType


class DiscreetError(Exception):
    r"""Root of all errors of this library; `asked`, `found`,
    `why` and `remedy` are its four parts.

    Example.
            try:
                dp.GDP(-1)
            except dp.DiscreetError as error:
                print(error.asked, error.found, error.why, error.remedy, sep="\n")
    See also. `dp.InvalidParameter`, `dp.BudgetExceeded`.
    """

    def __init__(self, asked: str, found: str, why: str, remedy: str) -> None:
        self.asked, self.found, self.why, self.remedy = asked, found, why, remedy
        super().__init__(
            f"{asked}: {found}.\n  Why it matters: {why}.\n"
            f"  What to do: {remedy}{'' if remedy.endswith('?') else '.'}"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (raised_elsewhere, (type(self), self.asked, self.found, self.why, self.remedy))


def raised_elsewhere(
    kind: type[DiscreetError], asked: str, found: str, why: str, remedy: str
) -> DiscreetError:
    """An error of some kind from its four parts, as one was raised elsewhere."""
    error = kind.__new__(kind)
    DiscreetError.__init__(error, asked, found, why, remedy)
    return error


def shown(value: object, most: int = 80) -> str:
    """A caller's own value for an error text:
    cut where it is long, its type where it cannot be written.
    """
    try:
        if isinstance(value, FunctionType):  # not where it lies in memory
            return f"the function {value.__name__}"
        text = str.__str__(repr(value))
    except Exception:  # a whole number of 5000 digits, say
        text = f"a {type(value).__name__}"
    return text if len(text) <= most else text[: most - 1] + "…"


class InvalidParameter(DiscreetError, ValueError):
    """A parameter is outside its documented domain.

    Example.
            try:
                dp.ApproxDP(epsilon=1, delta=2)
            except dp.InvalidParameter as error:
                print(error)
    See also. `dp.DiscreetError`.
    """


class UndeclaredColumn(DiscreetError, LookupError):
    """A column is not in the schema.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            try:
                dp.mean(session, "incme", spend=dp.GDP(0.1))
            except dp.UndeclaredColumn as error:
                print(error)
    See also. `dp.Schema`.
    """

    def __init__(self, name: object, declared: Iterable[str]) -> None:
        names = sorted(declared)
        near = difflib.get_close_matches(shown(name).strip("'"), names, n=1)
        near = near if isinstance(name, str) else []
        super().__init__(
            f"column {shown(name)}",
            f"not in the schema (declared: {', '.join(names) or 'nothing'})",
            "bounds and levels must be declared because they set the noise",
            f"did you mean {near[0]!r}?"
            if near
            else f"add {shown(name)} to the schema"
            if isinstance(name, str)
            else "name one declared column, as text",
        )


class WrongColumnKind(DiscreetError, TypeError):
    """A declared column does not have the kind that the question needs.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            try:
                dp.mean(session, "region", spend=dp.GDP(0.1))
            except dp.WrongColumnKind as error:
                print(error)
    See also. `dp.Schema`, `dp.DiscreetError`.
    """

    def __init__(self, name: str, kind: str, needed: str, asked: str, instead: str = "") -> None:
        super().__init__(
            f"{asked} of column {name!r}",
            f"it is declared as {kind}, and {asked} needs {needed}",
            "the declaration decides how a value is encoded and bounded",
            instead or f"declare {name!r} as {needed}, or ask about another column",
        )


class UnknownName(DiscreetError, AttributeError):
    """A name that the library does not have.

    Example.
            try:
                dp.meen
            except dp.UnknownName as error:
                print(error)
    See also. `dp.DiscreetError`.
    """


class NeighborsMissing(DiscreetError, TypeError):
    """No neighbour relation was given; `meant` is the one that a text or a class names.

    Example.
            try:
                dp.from_arrays({"a": [1, 2]}, schema={"a": dp.Integer(0, 3)})
            except dp.NeighborsMissing as error:
                print(error)
    See also. `dp.Replace`, `dp.AddRemove`.
    """

    def __init__(self, found: str = "no neighbour relation was given", meant: str = "") -> None:
        super().__init__(
            "neighbors=",
            found,
            "a privacy guarantee means nothing until it says what is protected",
            f"pass neighbors=dp.{meant}()"
            if meant
            else "pass neighbors=dp.Replace() (the number of rows is public) or "
            "neighbors=dp.AddRemove() (it is not), with unit= and max_rows= if one person has "
            "several rows",
        )


class BudgetExceeded(DiscreetError):
    """The ledger's box has no room for this price; nothing was debited and no data was read.

    Example.
            session = dp.load_census().open(budget=dp.GDP(0.1))
            try:
                dp.mean(session, "age", spend=dp.GDP(0.5))
            except dp.BudgetExceeded as error:
                print(error)
    See also. `dp.Ledger`; docs/how-to/budgets.md.
    """

    def __init__(self, *, price: str, left: str, remedy: str) -> None:
        super().__init__(
            "a debit",
            f"the price is {price} and what is left is {left}",
            "going on would break the guarantee that the budget promises",
            remedy,
        )


class LedgerRefused(DiscreetError):
    """The ledger cannot do this safely (forked, pickled, tampered with, another request under a
    key, …).

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            dp.mean(session, "age", spend=dp.GDP(0.1), key="one")
            try:
                dp.mean(session, "hours", spend=dp.GDP(0.1), key="one")
            except dp.LedgerRefused as error:
                print(error)
    See also. `dp.Ledger`.
    """


class NodeFrozen(LedgerRefused):
    """A budget is frozen: nothing is debited or drawn until it is unfrozen."""


class DataShapeRefused(DiscreetError, ValueError):
    """The data's outer shape does not fit (columns of different lengths, a declared column is
    absent).

    Example.
            try:
                dp.from_arrays(
                    {"a": [1, 2], "b": [1]},
                    schema={"a": dp.Integer(0, 3), "b": dp.Integer(0, 3)},
                    neighbors=dp.Replace(),
                )
            except dp.DataShapeRefused as error:
                print(error)
    See also. `dp.from_arrays`, `dp.DiscreetError`.
    """


class SourceChanged(DiscreetError):
    """A file is not the one that was declared; the text is always the same.

    Example.
            frame = dp.load_census().frame
            frame.to_csv("census.csv", index=False)
            data = dp.read_csv(
                "census.csv", schema={"age": dp.Integer(18, 90)}, neighbors=dp.Replace()
            )
            session = data.open(budget=dp.GDP(1))
            frame.head(100).to_csv("census.csv", index=False)
            try:
                dp.mean(session, "age", spend=dp.GDP(0.1))
            except dp.DiscreetError as error:
                print(type(error).__name__, error)
    See also. `dp.read_csv`, `dp.ReleaseFailed`.
    """

    def __init__(self) -> None:
        super().__init__(
            "a question",
            "a file of the data set changed after it was declared, or is gone",
            "columns, types and public counts were read from the file as it was, and answers add "
            "up for one table only",
            "declare the data set again and open a session on the same ledger; answers that were "
            "stored can still be read under their keys",
        )


class ReleaseFailed(DiscreetError):
    """The statistic could not be computed after the debit; the text does not depend on the data.

    Example.
            print(dp.ReleaseFailed("mean income"))
    See also. `dp.SourceChanged`, `dp.DiscreetError`.
    """

    def __init__(self, key: str) -> None:
        super().__init__(
            "a release",
            "the engine failed after the debit",
            "the debit stands, so that a failure can never be used to learn for free",
            f"look at the data source (is the file still there?), then retry with key={key!r}: "
            "it will not be charged again",
        )


class MissingExtra(DiscreetError, ImportError):
    """An optional dependency is not installed; `extra` is the one that brings it, "" where none
    does.

    Example.
            print(dp.MissingExtra("matplotlib", "plots", "a picture"))
    See also. `dp.DiscreetError`; docs/start/install.md.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            purpose,
            f"the package {package!r} is not installed",
            "it is not part of the lean core",
            f"pip install 'discreet[{extra}]'" if extra else f"pip install {package}",
        )


class NoTheorem(DiscreetError, TypeError):
    """A conversion was asked for that no theorem gives.

    Example.
            try:
                dp.compose(dp.ApproxDP(1, 1e-6), dp.GDP(0.5))
            except dp.NoTheorem as error:
                print(error)
    See also. `dp.compose`.
    """


class InsecureNoise(DiscreetError):
    """Seeded noise was about to be used where real privacy is promised.

    Example.
            print(issubclass(dp.InsecureNoise, dp.DiscreetError), dp.InsecureNoise.__doc__)
    See also. `dp.DiscreetError`; docs/theory/exact-noise.md.
    """


class ServiceRefused(DiscreetError):
    """A service could not be asked, refused, or answered something else than was asked; `status`
    is that of its answer, where it gave one.

    Example.
            try:
                dp.connect("ftp://curator.example.org/", token="none")
            except dp.DiscreetError as error:
                print(error)
    See also. `dp.connect`.
    """

    status: int | None = None


class NotAnswered(DiscreetError):
    """A question was handed in, and there is no answer yet: the same key gets it.

    Example.
            print(issubclass(dp.NotAnswered, dp.DiscreetError), dp.NotAnswered.__doc__)
    See also. `dp.connect`.
    """
