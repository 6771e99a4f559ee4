"""Whether a frame gives the same rows each time it is computed, read from its analysed plan.

A task that is tried again, or a later pass, computes rows anew: where they may be others, a row
could count twice. So a plan is refused unless all of its steps are known to give the same rows, and
none of its functions is known to give others.
"""

from __future__ import annotations

import re

STEPS = {
    "Aggregate",
    "CTERelationDef",
    "CTERelationRef",
    "DataSourceV2Relation",
    "Distinct",
    "Except",
    "Expand",
    "Filter",
    "Generate",
    "Intersect",
    "Join",
    "LocalRelation",
    "LogicalRDD",
    "LogicalRelation",
    "Project",
    "Range",
    "Relation",
    "RelationV2",
    "RepartitionByExpression",
    "ResolvedHint",
    "Sort",
    "SubqueryAlias",
    "Union",
    "View",
    "WithCTE",
}
OTHERS_EACH_TIME = (
    "rand|randn|random|randstr|uniform|uuid|shuffle|monotonically_increasing_id|spark_partition_id"
    "|input_file_name|input_file_block_start|input_file_block_length|now|curdate|current_timestamp"
    "|current_date|current_time|localtimestamp|unix_timestamp|first|first_value|last|last_value"
    "|any_value|collect_list|collect_set|array_agg|listagg|string_agg|mode|max_by|min_by"
    "|approx_percentile|percentile_approx|approx_top_k|reflect|java_method|try_reflect|user"
    "|current_user|session_user|python_udf|pythonudf"
)
FUNCTIONS = re.compile(rf"(?<![\w`])({OTHERS_EACH_TIME})\s*\(", re.IGNORECASE)
STEP = re.compile(r"^[\s:|+\-]*'?(\w+)")
ANALYSED = "== Analyzed Logical Plan =="


def another_each_time(explained: str) -> str | None:
    """The first step or function, of an explained plan, that may give other rows each time; None:
    there is none.
    """
    analysed = explained.partition(ANALYSED)[2].partition("\n== ")[0].strip("\n")
    lines = analysed.split("\n")[1:]  # the first one has the names of the columns
    if not lines or " more fields" in analysed:
        return "a plan that is not shown whole"
    for line in lines:
        step = STEP.match(line)
        if line.strip() and (step is None or step[1] not in STEPS):
            return "a step that is not known" if step is None else step[1]
        function = FUNCTIONS.search(line)
        if function:
            return f"{function[1]}()"
    return None
