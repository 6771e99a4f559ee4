"""Commands that ask: each is its public function, asked once however often it is typed; what is
wrong is refused in four parts with exit code 2.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.survey import survey
from typer.testing import CliRunner

import discreet as dp
from discreet.cli.commands import app
from discreet.cli.table import COMMANDS, TESTS

RUNNER = CliRunner()
DECLARED = """
source = "survey.csv"
neighbors = "replace"
budget = { mu = 5 }

[schema]
income = { kind = "real", low = 0, high = 100 }
age = { kind = "integer", low = 18, high = 90 }
region = { kind = "category", levels = ["E", "N", "S", "W"] }
member = { kind = "boolean" }
arm = { kind = "category", levels = [0, 1] }
day = { kind = "date", low = 2024-01-01, high = 2024-03-31 }
"""
MU = dp.GDP(0.2)
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("survey")
    rows = {name: list(values) for name, values in survey(rows=400).items()}
    rng = np.random.default_rng(3)
    rows["arm"] = list(rng.integers(0, 2, 400))
    rows["day"] = [f"2024-0{1 + number % 3}-07" for number in range(400)]
    lines = [",".join(rows), *(",".join(map(str, row)) for row in zip(*rows.values(), strict=True))]
    (made / "survey.csv").write_text("\n".join(lines) + "\n")
    (made / "survey.toml").write_text(DECLARED)
    return made


def run(folder: Path, *words: str, ledger: str = "survey.ledger") -> Any:
    files = ["--declare", str(folder / "survey.toml")]
    if ledger:
        files += ["--ledger", str(folder / ledger)]
    return RUNNER.invoke(app, [*words, *files])


# the command, the key that it has unless one is given, and the same question in Python
ASKED: list[tuple[list[str], str, Ask]] = [
    (["count", "--where", "age=18..30"], "count(where=age: (18, 30))",
     lambda *s, **o: dp.count(*s, where={"age": (18, 30)}, **o)),
    (["count", "--where", "age=65.."], "count(where=age: (65, 90))",
     lambda *s, **o: dp.count(*s, where={"age": (65, 90)}, **o)),
    (["count", "--where", "day=..2024-01-31"], "count(where=day: ('2024-01-01', '2024-01-31'))",
     lambda *s, **o: dp.count(*s, where={"day": ("2024-01-01", "2024-01-31")}, **o)),
    (["sum", "income"], "sum(income)", lambda *s, **o: dp.sum(*s, "income", **o)),
    (["mean", "income"], "mean(income)", lambda *s, **o: dp.mean(*s, "income", **o)),
    (["mean", "age", "--where", "region=N,S", "--where", "member=yes"],
     "mean(age, where=member: True, region: ['N', 'S'])",
     lambda *s, **o: dp.mean(*s, "age", where={"member": True, "region": ["N", "S"]}, **o)),
    (["variance", "income"], "variance(income)", lambda *s, **o: dp.variance(*s, "income", **o)),
    (["std", "income", "--by", "region"], "std(income, by=region)",
     lambda *s, **o: dp.std(*s, "income", by="region", **o)),
    (["proportion", "arm", "--level", "1"], "proportion(arm, level=1)",
     lambda *s, **o: dp.proportion(*s, "arm", level=1, **o)),
    (["histogram", "income", "--bins", "0,40,50,100"], "histogram(income, bins=[0, 40, 50, 100])",
     lambda *s, **o: dp.histogram(*s, "income", bins=[0, 40, 50, 100], **o)),
    (["histogram", "day", "--bins", "month"], "histogram(day, bins=month)",
     lambda *s, **o: dp.histogram(*s, "day", bins="month", **o)),
    (["table", "--by", "region"], "table(by=region)",
     lambda *s, **o: dp.table(*s, by="region", **o)),
    (["table", "income", "--by", "region", "--by", "age:3", "--by", "day:month"],
     "table(income, by=region: None, age: 3, day: month)",
     lambda *s, **o: dp.table(
         *s, "income", by={"region": None, "age": 3, "day": "month"}, **o)),
    (["missing"], "missing()", lambda *s, **o: dp.missing(*s, **o)),
    (["missing", "income", "age"], "missing(['income', 'age'])",
     lambda *s, **o: dp.missing(*s, ["income", "age"], **o)),
    (["median", "income"], "median(income)", lambda *s, **o: dp.median(*s, "income", **o)),
    (["quantile", "income", "0.9"], "quantile(income, 0.9)",
     lambda *s, **o: dp.quantile(*s, "income", 0.9, **o)),
    (["quantiles", "income", "0.25", "0.75"], "quantiles(income, [0.25, 0.75])",
     lambda *s, **o: dp.quantiles(*s, "income", [0.25, 0.75], **o)),
    (["test", "compare", "member", "--by", "arm"], "compare(member, by=arm)",
     lambda *s, **o: dp.compare(*s, "member", by="arm", **o)),
    (["test", "compare-means", "income", "--by", "region"], "compare_means(income, by=region)",
     lambda *s, **o: dp.compare_means(*s, "income", by="region", **o)),
    (["test", "independence", "region", "age", "--bins", "age:3"],
     "independence_test(region, age, bins=age: 3)",
     lambda *s, **o: dp.independence_test(*s, "region", "age", bins={"age": 3}, **o)),
    (["test", "rank", "income", "--by", "arm"], "rank_test(income, by=arm)",
     lambda *s, **o: dp.rank_test(*s, "income", by="arm", **o)),
    (["test", "mean", "income", "50"], "mean_test(income, 50)",
     lambda *s, **o: dp.mean_test(*s, "income", 50, **o)),
    (["test", "paired", "income", "age"], "paired_test(income, age)",
     lambda *s, **o: dp.paired_test(*s, "income", "age", **o)),
    (["test", "proportion", "member", "0.5"], "proportion_test(member, 0.5)",
     lambda *s, **o: dp.proportion_test(*s, "member", 0.5, **o)),
    (["regression", "income ~ age + region"], "ols(income ~ age + region)",
     lambda *s, **o: dp.ols(*s, "income ~ age + region", **o)),
]  # fmt: skip


LONG = ("median", "quantile", "quantiles", "test", "regression")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("words", "key", "ask"),
    [
        pytest.param(*one, id=one[1], marks=[pytest.mark.slow] if one[0][0] in LONG else [])
        for one in ASKED
    ],
)
def test_a_command_is_its_function(folder: Path, words: list[str], key: str, ask: Ask) -> None:
    """Python is answered from the ledger under the command's key, so the question is the same; a
    question that differs in anything is refused there.
    """
    asked = run(folder, *words, "--mu", "0.2", "--json")
    assert asked.exit_code == 0, asked.output
    session = dp.declare(folder / "survey.toml").open(ledger=folder / "survey.ledger")
    head = session.ledger.head
    result = ask(session, spend=MU, key=f"{key} mu=0.2")
    assert json.loads(asked.stdout) == json.loads(result.to_json())
    assert session.ledger.head == head
    assert dp.from_json(asked.stdout).to_json() == result.to_json()


def test_the_table_names_parameters_of_public_functions() -> None:
    for command in (*COMMANDS, *TESTS):
        for name in command.models:
            known = set(inspect.signature(getattr(dp, name)).parameters)
            places = {one.rstrip("?*") for one in command.places}
            assert places <= known, command.name
    renamed = {"delta0": "delta", "edges": "bins"}
    for command in (*COMMANDS, *TESTS):
        known = set(inspect.signature(getattr(dp, command.models[0])).parameters)
        options = {one.rstrip("!") for one in command.options.split()}
        assert {renamed.get(one, one) for one in options} <= known, command.name
    assert {command.name for command in COMMANDS} >= {
        *("mean", "table", "median", "quantile", "regression", "count"),
        *("proportion", "histogram", "missing"),
    }


def test_twice_costs_once_and_says_so(folder: Path) -> None:
    first = run(folder, "mean", "income", "--epsilon", "1", "--delta", "1e-6", ledger="two.ledger")
    ledger = dp.Ledger.open(None, path=folder / "two.ledger")
    head = ledger.head
    assert first.exit_code == 0
    assert "paid now" in first.stderr
    assert "μ = " in first.stderr  # what is left
    second = run(folder, "mean", "income", "--epsilon", "1", "--delta", "1e-6", ledger="two.ledger")
    assert second.stdout == first.stdout
    assert "nothing more was spent" in second.stderr
    assert ledger.head == head
    other = run(folder, "mean", "income", "--mu", "0.1", "--key", "again", ledger="two.ledger")
    assert "key 'again': paid now" in other.stderr
    taken = run(folder, "mean", "age", "--mu", "0.1", "--key", "again", ledger="two.ledger")
    assert taken.exit_code == 2
    assert "What to do" in taken.stderr


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("letters", "spend"),
    [
        (["--mu", "0.1"], dp.GDP(0.1)),
        (["--epsilon", "0.1"], dp.PureDP(0.1)),
        (["--epsilon", "0.5", "--delta", "1e-6"], dp.ApproxDP(0.5, 1e-6)),
        (["--rho", "0.005"], dp.ZCDP(0.005)),
    ],
    ids=str,
)
def test_spends(folder: Path, letters: list[str], spend: Any) -> None:
    asked = run(folder, "mean", "income", *letters, "--json")
    assert json.loads(asked.stdout)["spend"] == spend.to_dict()


@pytest.mark.slow
def test_outputs(folder: Path) -> None:
    table = run(folder, "mean", "income", "--mu", "0.2", "--confidence", "0.9")
    assert "Private mean of income" in table.stdout
    assert "90% interval" in table.stdout
    page = run(folder, "mean", "income", "--mu", "0.2", "--markdown")
    assert "| ---: |" in page.stdout
    both = run(folder, "mean", "income", "--mu", "0.2", "--markdown", "--json")
    assert both.exit_code == 2
    assert RUNNER.invoke(app, ["--version"]).stdout == f"discreet {dp.__version__}\n"


def test_the_source_on_the_command_line_comes_first(folder: Path, tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.csv
    import pyarrow.parquet

    rows = pyarrow.csv.read_csv(folder / "survey.csv").slice(0, 50)
    pyarrow.parquet.write_table(rows, tmp_path / "part.parquet")
    for words in (
        ["mean", str(tmp_path / "part.parquet"), "income"],
        ["mean", "income", "--source", str(tmp_path / "part.parquet")],
    ):
        asked = run(folder, *words, "--mu", "0.2", ledger="part.ledger")
        assert "50 rows (public)" in asked.stdout
    whole = run(folder, "mean", "income", "--mu", "0.2", ledger="part.ledger")
    assert whole.exit_code == 2  # the key belongs to the other file
    twice = run(folder, "mean", "a.csv", "income", "--source", "b.csv", "--mu", "0.2")
    assert "two data files" in twice.stderr


def test_previews_spend_nothing(folder: Path) -> None:
    for words in (
        ["mean", "income", "--standard-deviation", "10"],
        ["table", "income", "--by", "region"],
        ["proportion", "region", "--level", "N", "--confidence", "0.9"],
        ["regression", "income ~ age", "--model", "logistic"],
        ["test", "compare-means", "income", "--by", "region"],
    ):
        shown = run(folder, "preview", *words, "--mu", "0.2", ledger="none.ledger")
        if "logistic" in words:  # income is no share
            assert shown.exit_code == 2
            continue
        assert shown.exit_code == 0, shown.output
        assert "Nothing was spent" in shown.stdout
    assert not (folder / "none.ledger").exists()
    told = run(folder, "preview", "mean", "income", "--mu", "0.2", "--json", ledger="")
    assert json.loads(told.stdout)["title"] == "Preview of mean of income"


@pytest.mark.slow
def test_models(folder: Path) -> None:
    for model, formula in (("robust", "income ~ age"), ("logistic", "member ~ age")):
        fit = run(folder, "regression", formula, "--model", model, "--mu", "0.4")
        assert fit.exit_code == 0, fit.output
        assert f"Private {model} regression" in fit.stdout
    for base in ("most frequent", "region=most frequent", "region=S"):
        fit = run(folder, "regression", "income ~ region", "--base", base, "--mu", "0.3")
        assert fit.exit_code == 0, fit.output
        assert ("chosen privately" in fit.stdout) == (base != "region=S")


PLAN = """
[questions.mean-income]
estimator = "mean"
column = "income"
spend = { mu = 0.2 }

[questions.counts]
estimator = "table"
by = "region"
spend = { mu = 0.2 }
"""


def test_plans(folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    checked = run(folder, "plan", "check", str(plan), ledger="plan.ledger")
    assert checked.exit_code == 0, checked.output
    assert "Preview of a plan" in checked.stdout
    assert not (folder / "plan.ledger").exists()
    first = run(folder, "plan", "run", str(plan), "--json", ledger="plan.ledger")
    assert first.exit_code == 0, first.output
    assert list(json.loads(first.stdout)) == ["mean-income", "counts"]
    second = run(folder, "plan", "run", str(plan), "--json", ledger="plan.ledger")
    assert second.stdout == first.stdout
    assert "nothing more was spent" in second.stderr
    page = run(folder, "plan", "run", str(plan), "--markdown", ledger="plan.ledger")
    assert "## counts" in page.stdout
    plan.write_text(PLAN.replace("column", "colunm"))
    wrong = run(folder, "plan", "check", str(plan), ledger="plan.ledger")
    assert wrong.exit_code == 2
    assert "did you mean 'column'?" in wrong.stderr


def test_explain(folder: Path) -> None:
    words = ["--epsilon", "1", "--delta", "1e-6", "--prior", "0.1"]
    told = RUNNER.invoke(app, ["explain", *words])
    assert told.stdout.strip() == dp.explain(dp.ApproxDP(1, 1e-6), prior=0.1)
    path = folder / "rho.ledger"
    dp.Ledger.open(dp.ZCDP(0.1), path=path, delta0=1e-6)
    promise = RUNNER.invoke(app, ["explain", "--ledger", str(path)])
    assert "δ = 2e-06" in promise.stdout  # δ₀ is part of the promise
    both = RUNNER.invoke(app, ["explain", "--ledger", str(path), "--mu", "1"])
    assert both.exit_code == 2


WRONG = {
    "a bare spend": (["mean", "income", "--spend", "1"], "epsilon or mu"),
    "no spend": (["mean", "income"], "nothing was given"),
    "two spends": (["mean", "income", "--mu", "1", "--epsilon", "1"], "--epsilon and --mu"),
    "δ alone": (["mean", "income", "--delta", "1e-6"], "--delta was given"),
    "ε below nothing": (["mean", "income", "--epsilon", "-1"], "epsilon"),
    "more than there is": (["mean", "income", "--mu", "9"], "what is left"),
    "no column": (["mean", "--mu", "0.2"], "discreet mean [SOURCE] COLUMN"),
    "a word too many": (["mean", "income", "age", "--mu", "0.2"], "--source"),
    "a formula in words": (["regression", "income", "~", "age", "--mu", "0.2"], "in quotes"),
    "an undeclared column": (["mean", "incme", "--mu", "0.2"], "did you mean 'income'?"),
    "a file that is not there": (["mean", "none.csv", "income", "--mu", "0.2"], "What to do"),
    "no level": (["proportion", "region", "--level", "X", "--mu", "0.2"], "not declared"),
    "no number": (["quantile", "income", "half", "--mu", "0.2"], "is none"),
    "no condition": (["count", "--where", "age", "--mu", "0.2"], "no '='"),
    "no truth": (["count", "--where", "member=maybe", "--mu", "0.2"], "neither true nor false"),
    "a range of nothing": (["count", "--where", "age=a..b", "--mu", "0.2"], "is none"),
    "an undeclared condition": (["count", "--where", "agee=3", "--mu", "0.2"], "'age'?"),
    "a column twice": (["table", "--by", "arm", "--by", "arm", "--mu", "0.2"], "twice"),
    "a base of no column": (["regression", "y ~ x", "--base", "N", "--mu", "1"], "no '='"),
    "another model": (["regression", "y ~ x", "--model", "probit", "--mu", "1"], "logistic"),
    "an option of another": (
        ["regression", "age ~ income", "--model", "robust", "--method", "moments", "--mu", "1"],
        "takes no method=",
    ),
    "a confidence of two": (["mean", "income", "--mu", "0.2", "--confidence", "2"], "What to do"),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("wrong", WRONG)
def test_refusals(folder: Path, wrong: str) -> None:
    words, found = WRONG[wrong]
    for ask in ([], ["preview"]):
        if ask and wrong == "more than there is":
            continue  # a preview of it says that none fits
        refused = run(folder, *ask, *words, ledger="wrong.ledger")
        assert refused.exit_code == 2, refused.output
        assert found in refused.stderr
        assert "Why it matters" in refused.stderr
        assert "What to do" in refused.stderr
        assert refused.stdout == ""
    if (folder / "wrong.ledger").exists():
        assert len(dp.Ledger.open(None, path=folder / "wrong.ledger").entries()) == 1


def test_usage(folder: Path) -> None:
    for words in (["mean", "income", "--mu", "lots"], ["table", "--mu", "0.2"], ["nonsense"]):
        used = run(folder, *words)
        assert used.exit_code == 2
        assert "Traceback" not in used.output


def test_long_and_odd_questions_have_keys() -> None:
    from types import MappingProxyType

    from discreet.asking.release_plans import PlannedQuestion
    from discreet.cli.answers import default_key

    def key(formula: str) -> str:
        asked = MappingProxyType({"formula": formula})
        return default_key(PlannedQuestion("", "ols", asked, MU, MappingProxyType({})))

    assert key("y ~ x") == "ols(y ~ x) mu=0.2"
    assert key("y ~  x\n") == key("y ~ x ")
    long = [key("y ~ " + " + ".join(f"x{i}" for i in range(number))) for number in (60, 61)]
    assert long[0] != long[1]
    assert all(len(one) <= 180 and one.isprintable() for one in (*long, key("y ~ `\x07`")))
