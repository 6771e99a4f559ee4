"""The commands that ask, as one table: each is a public function, the words it takes by place and
the options it takes by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import InvalidParameter
from discreet.schema import Schema


@dataclass(frozen=True, slots=True)
class Command:
    """A question as a command.

    name        as it is typed
    estimators  the public functions; of several one is chosen by --model, the first unless said
    words       parameters by place; one that ends in ? may be left out, in * there may be several
    options     parameters by name; one that ends in ! is needed
    help        what it gives
    """

    name: str
    estimators: str
    words: str
    options: str
    help: str

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self.estimators.split())

    @property
    def places(self) -> tuple[str, ...]:
        return tuple(self.words.split())

    @property
    def usage(self) -> str:
        """How the words are written: [SOURCE] COLUMN."""
        marks = {"?": "[{}]", "*": "{}…"}
        shown = [marks.get(one[-1], "{}").format(one.rstrip("?*").upper()) for one in self.places]
        return " ".join(("[SOURCE]", *shown))

    def estimator(self, given: Mapping[str, Any]) -> str:
        """The public function that is asked."""
        wanted: str = given.get("model") or self.models[0]
        if wanted not in self.models:
            raise InvalidParameter(
                f"--model {wanted}",
                "it is not known",
                "it decides which public function is asked",
                f"use one of {', '.join(self.models)}",
            )
        return wanted

    def read(
        self, schema: Schema, given: Mapping[str, Any]
    ) -> tuple[str | Path | None, dict[str, Any]]:
        """The data file, where one is named, and the function's parameters by name.

        The first word is the data file where it ends as one (.parquet, .csv, …) and is no declared
        column; others are named by --source.
        """
        from discreet.asking.declarations import ENDINGS

        words, source = list(given["words"] or ()), given["source"]
        if words and words[0] not in schema and Path(words[0]).suffix.lower() in ENDINGS:
            if source is not None:
                raise self._refused(f"two data files, {words[0]} and {source}")
            source = words.pop(0)
        asked = self._by_place(words)
        column = asked.get("column", "")
        for option in self.options.split():
            name = option.rstrip("!")
            if given.get(name):
                parameter, value = _value(schema, column, name, given[name])
                asked[parameter] = value
        return source, asked

    def _by_place(self, words: list[str]) -> dict[str, Any]:
        from discreet.cli.words import number_of

        several = [one for one in self.places if one.endswith("*")]
        least = sum(not one.endswith(("?", "*")) for one in self.places)
        if len(words) < least or (len(words) > len(self.places) and not several):
            raise self._refused(f"{len(words)} words beside the data file")
        asked: dict[str, Any] = {}
        for place in self.places:
            name = place.rstrip("?*")
            if place.endswith("*"):
                if words:
                    asked[name] = [number_of(one) for one in words] if name == "qs" else words
            elif words:
                word = words.pop(0)
                asked[name] = number_of(word) if name in ("q", "null") else word
        return asked

    def _refused(self, found: str) -> InvalidParameter:
        return InvalidParameter(
            f"discreet {self.name}",
            found,
            f"it is written discreet {self.name} {self.usage}",
            "correct the words; a formula is one word in quotes, and a data file that does not end "
            "in .parquet, .pq, .csv, .tsv or .txt is named by --source",
        )


COMMANDS = (
    Command("count", "count", "", "where", "How many rows there are."),
    Command("sum", "sum", "column", "where", "The sum of a column."),
    Command("mean", "mean", "column", "where", "The mean of a column."),
    Command("variance", "variance", "column", "where", "The variance of a column."),
    Command("std", "std", "column", "by where", "The standard deviation of a column."),
    Command("proportion", "proportion", "column", "level where noise", "The share of a level."),
    Command("histogram", "histogram", "column", "bins where", "Counts of bins or levels."),
    Command(
        "table", "table", "column?", "by! where delta0", "Counts, shares and means by categories."
    ),
    Command("missing", "missing", "columns*", "", "Shares of missing and unreadable cells."),
    Command("median", "median", "column", "method where delta0", "The median of a column."),
    Command("quantile", "quantile", "column q", "method where delta0", "A quantile of a column."),
    Command("quantiles", "quantiles", "column qs*", "where", "Several quantiles of a column."),
    Command(
        "regression",
        "ols robust logistic poisson",
        "formula",
        "where method solver base",
        "A regression by formula, such as 'income ~ age + region'.",
    ),
)
TESTS = (
    Command(
        "compare", "compare", "column", "by! level strata where", "Shares or means of two groups."
    ),
    Command("compare-means", "compare_means", "column", "by! where", "Means of several groups."),
    Command(
        "independence", "independence_test", "first second", "edges where", "Are two unrelated?"
    ),
    Command("rank", "rank_test", "column", "by! bins where", "Does one group have more?"),
    Command("mean", "mean_test", "column null", "where", "Is the mean NULL?"),
    Command("paired", "paired_test", "first second", "where", "Do two columns have one mean?"),
    Command("proportion", "proportion_test", "column null", "level", "Is the share NULL?"),
)


def _value(schema: Schema, column: str, name: str, given: Any) -> tuple[str, Any]:
    """An option's parameter, and its value as the public function takes it."""
    from discreet.cli import words

    if name == "where":
        return name, words.where_of(schema, given)
    if name in ("by", "strata"):
        return name, words.by_of(schema, given)
    if name == "edges":
        return "bins", words.by_of(schema, given)
    if name == "bins":
        return name, words.bins_of(given)
    if name == "base":
        return name, words.base_of(schema, given)
    if name == "level":
        return name, words.level_of(schema, column, given)
    return ("delta" if name == "delta0" else name), given
