"""Attacks succeed against what promises nothing, and stay below the limit of a guarantee."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import discreet as dp
from discreet.attacks import (
    AttackResult,
    FreshNoise,
    KAnonymous,
    Raw,
    Released,
    Rounded,
    Suppressed,
    averaging,
    differencing,
    linkage,
    membership,
    reconstruction,
    uniqueness,
)
from discreet.attacks.publishers import Answers, Survey
from discreet.inference.simulation.streams import Stream

SOURCE = Path(dp.__file__).parent


def test_reconstruction_finds_everybody_without_a_guarantee() -> None:
    result = reconstruction(200, against=[Raw(), Rounded(10), Suppressed(5), FreshNoise(2)])
    assert result[Raw()].achieved == 1.0
    assert result[Suppressed(5)].achieved == 1.0
    assert result[Rounded(10)].achieved >= 0.85
    assert result[FreshNoise(2)].achieved >= 0.9
    assert all(one.limit is None and not one.beyond for one in result.outcomes)


def test_a_linear_program_bears_wild_answers() -> None:
    class Wild:
        guarantee = None

        def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
            counts = survey.counts()
            counts[:: len(counts) // 8] += 1000
            return Answers(counts)

    least_squares, program = (
        reconstruction(80, questions=240, against=Wild(), method=method).outcomes[0].achieved
        for method in ("least squares", "linear program")
    )
    assert program == 1.0
    assert least_squares < 0.9


@pytest.mark.slow
def test_a_release_is_reconstructed_no_further_than_its_limit() -> None:
    found = reconstruction(120, against=Released(dp.GDP(1))).outcomes[0]
    assert found.limit == pytest.approx(stats.norm.cdf(0.5))
    assert found.achieved < found.limit
    assert not found.beyond


@pytest.mark.slow
def test_differences_of_broad_counts_undo_what_hides_narrow_ones() -> None:
    result = differencing(300, targets=60, against=[Raw(), Suppressed(5), KAnonymous(20)])
    assert [one.achieved for one in result.outcomes] == [1.0, 1.0, 1.0]
    private = differencing(50, targets=100, against=Released(dp.PureDP(0.5))).outcomes[0]
    assert private.limit == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert private.low < private.limit


@pytest.mark.slow
def test_averages_undo_fresh_noise_and_no_budget() -> None:
    result = averaging(times=16, releases=40, against=[FreshNoise(5), Released(dp.GDP(1))])
    fresh, released = result.outcomes
    assert fresh.low <= 0.25 <= fresh.high  # 1/√16
    assert released.low <= 1.0 <= released.high
    assert released.high > 0.95


@pytest.mark.slow
def test_members_are_told_from_counts_and_hardly_from_a_release() -> None:
    raw, rounded = membership(60, markers=1000, against=[Raw(), Rounded(10)]).outcomes
    assert raw.achieved > 0.98
    assert rounded.achieved > 0.9
    private = membership(60, markers=120, against=Released(dp.ApproxDP(1, 1e-6)), releases=2)
    assert private.outcomes[0].achieved < private.outcomes[0].limit  # type: ignore[operator]
    assert private.beyond == ()


@pytest.mark.slow
def test_rows_are_linked_by_a_few_ratings() -> None:
    result = linkage(400, targets=40, against=[Raw(), Rounded(30), FreshNoise(30)])
    assert all(one.achieved >= 0.9 for one in result.outcomes)
    nothing_known = linkage(400, known=1, wrong=1, targets=40)
    assert nothing_known.outcomes[0].achieved <= 0.1  # the control


@pytest.mark.slow
def test_who_is_in_a_release_is_a_coin() -> None:
    result = linkage(60, targets=20, against=Released(dp.GDP(1)))
    assert result.chance == 0.5
    assert result.outcomes[0].achieved <= 0.9
    assert not result.beyond


@pytest.mark.slow
def test_sex_birth_date_and_zip_single_out_most_people() -> None:
    raw, rounded, grouped = uniqueness(
        people=100_000, against=[Raw(), Rounded(365), KAnonymous(5)]
    ).outcomes
    assert 0.84 <= raw.achieved <= 0.90
    assert rounded.achieved < 0.05
    assert grouped.achieved == 0.0


def test_a_table_of_ones_own_is_counted_exactly_and_said_not_to_be_private() -> None:
    table = {"town": ["a", "a", "b", "b", "c"], "age": [1, 1, 2, 3, 3], "note": list("vwxyz")}
    result = uniqueness(table, columns=["town", "age"])
    assert result.outcomes[0].achieved == 3 / 5
    assert "not private" in str(result)
    with pytest.raises(dp.DiscreetError, match="no column 'tonw'"):
        uniqueness(table, columns=["tonw"])


class Leaking:
    """Claims a guarantee and gives exact counts: it must be caught."""

    guarantee = dp.GDP(1)

    def publish(self, survey: Survey, secret: str, stream: Stream) -> Answers:
        return Answers(survey.counts())

    def __str__(self) -> str:
        return "leaking"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("attack", "asked"),
    [
        (reconstruction, {"rows": 30, "releases": 80}),
        (differencing, {"people": 50}),
        (membership, {"people": 20, "markers": 600, "releases": 80}),
    ],
)
def test_a_publisher_that_breaks_its_guarantee_is_called_out(
    attack: Any, asked: dict[str, int]
) -> None:
    result = attack(**asked, against=[Leaking(), Raw()])
    assert result.beyond == ("leaking",)
    assert "BEYOND ITS LIMIT: leaking" in str(result.summary())


@pytest.mark.slow
def test_results_repeat_print_draw_and_are_written(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"targets": 20, "against": [Raw(), FreshNoise(3)]}
    first, second = (differencing(50, **asked) for _ in range(2))
    other = differencing(50, **asked, seed=2)
    assert first == second != other
    assert isinstance(first, AttackResult)
    told = json.loads(first.to_json())
    assert told["format"] == "discreet-attack"
    assert [one["publisher"] for one in told["outcomes"]] == ["as they are", "fresh noise, sd 3"]
    assert all(len(line) <= 100 for line in str(first).splitlines())
    first.plot(path=tmp_path / "attack.png")
    assert (tmp_path / "attack.png").stat().st_size > 5000


@pytest.mark.parametrize(
    "call",
    [
        lambda: reconstruction(1),
        lambda: reconstruction(10, method="guess"),
        lambda: reconstruction(10, against=[]),
        lambda: reconstruction(10, against=[Raw]),  # the class
        lambda: reconstruction(10, against=["raw"]),  # type: ignore[list-item]
        lambda: linkage(10, known=3, wrong=5),
        lambda: membership(10, releases=1),
        lambda: averaging(times=0),
        lambda: uniqueness(against=[FreshNoise(1)]),
        lambda: uniqueness({"a": [1, 2], "b": [1]}),
        lambda: Rounded(1),
        lambda: FreshNoise(0),
        lambda: FreshNoise(float("nan")),
        lambda: KAnonymous(1),
        lambda: Released(1),  # type: ignore[arg-type]
        lambda: reconstruction("many"),  # type: ignore[arg-type]
        lambda: reconstruction(row=10),  # type: ignore[call-arg]
    ],
)
def test_bad_calls_are_refused_in_four_parts(call: Any) -> None:
    with pytest.raises(dp.DiscreetError) as refused:
        call()
    assert str(refused.value).count("\n") >= 1 or len(str(refused.value)) > 60


def test_attacks_are_reached_as_a_room_of_the_package() -> None:
    assert dp.attacks.Raw is Raw


@pytest.mark.slow
def test_no_module_of_the_library_imports_the_attacks() -> None:
    named = [
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if "attacks" not in path.relative_to(SOURCE).parts[:-1]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        and "discreet.attacks"
        in [getattr(node, "module", None), *(alias.name for alias in node.names)]
    ]
    assert named == ["__init__.py"]  # on first use, for `dp.attacks`
