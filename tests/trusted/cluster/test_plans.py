"""Plans as Spark explains them: what gives the same rows each time, and what may not."""

from __future__ import annotations

import pytest

from discreet.trusted.cluster.plans import another_each_time

EXPLAINED = """== Parsed Logical Plan ==
'Filter (rand(1) > 0.5)

== Analyzed Logical Plan ==
{names}
{plan}

== Optimized Logical Plan ==
GlobalLimit 5
"""


def found(plan, names="a: bigint, rand(1): double"):
    return another_each_time(EXPLAINED.format(names=names, plan=plan))


def test_known_steps_pass():
    assert (
        found(
            "Project [a#1L, (a#1L + 1) AS rand#5L]\n"
            "+- Join Inner, (a#1L = a#2L)\n"
            "   :- Filter (operand(a#1L) > 2)\n"
            "   :  +- SubqueryAlias spark_catalog.default.t\n"
            "   :     +- Relation spark_catalog.default.t[a#1L] parquet\n"
            "   +- RepartitionByExpression [a#2L]\n"
            "      +- Aggregate [a#2L], [a#2L, count(1) AS n#7L]\n"
            "         +- LocalRelation [a#2L]"
        )
        is None
    )


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("Project [rand(12) AS r#1]\n+- LocalRelation [a#1L]", "rand()"),
        ("Project [UUID (Some(12)) AS r#1]\n+- LocalRelation [a#1L]", "UUID()"),
        ("Filter (monotonically_increasing_id() < 5)\n+- Range (0, 9)", "monotonically_increasing"),
        ("Aggregate [a#1L], [first(b#2, false) AS b#3]\n+- Range (0, 9)", "first()"),
        ("Filter (at#1 < current_timestamp())\n+- Range (0, 9)", "current_timestamp()"),
        ("GlobalLimit 5\n+- LocalLimit 5\n   +- Sort [a#1L ASC], true", "GlobalLimit"),
        ("Project [a#1L]\n+- Sample 0.0, 0.5, false, 7\n   +- Range (0, 9)", "Sample"),
        ("Union\n:- Range (0, 9)\n+- Repartition 8, true\n   +- Range (0, 9)", "Repartition"),
        ("Deduplicate [a#1L]\n+- Range (0, 9)", "Deduplicate"),
        ("MapInArrow f(a#1L), [a#2L]\n+- Range (0, 9)", "MapInArrow"),
        ("Window [row_number() windowspecdefinition(a#1L)]\n+- Range (0, 9)", "Window"),
        ("Project [a#1L, ... 3 more fields]\n+- Range (0, 9)", "not shown whole"),
        ("", "not shown whole"),
    ],
)
def test_what_may_give_other_rows_is_named(plan, said):
    assert said in (found(plan) or "")


def test_a_plan_without_a_heading_is_none():
    assert another_each_time("Range (0, 9)") == "a plan that is not shown whole"
