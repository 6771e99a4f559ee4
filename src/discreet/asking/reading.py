"""Any result, from the JSON text that its `to_json` wrote:
of releases, of fits, of tests, or of randomised reports.

What reads a text is decided by its format and, for releases, by the estimator that they name
(records.py).
"""

from __future__ import annotations

import json
from typing import Any

from discreet import plain
from discreet.asking.records import FORMATS, resolve, result_class
from discreet.errors import InvalidParameter
from discreet.inference.counts.selection import SelectionResult
from discreet.inference.means.unbounded import Procedure
from discreet.inference.results.hypothesis import TEST_FORMAT, HypothesisTest, test_again
from discreet.inference.results.results import Result
from discreet.inference.results.stored import PROCEDURE, UNREADABLE, release_from_json
from discreet.trusted.release import Release


@plain.called
def from_json(text: str) -> Any:
    """The result that `to_json` of a result wrote; a text that no result wrote is refused.

    Tests are made again from the result in the text.

    Example.
            session = dp.load_census().open(budget=dp.GDP(1))
            income = dp.mean(session, "income", spend=dp.GDP(0.1))
            again = dp.from_json(income.to_json())
            print(again == income)
    See also. `dp.Result`.
    """
    read = FORMATS.get(_format(text))
    made = resolve(read)(text) if read is not None else None
    return of_one_release(text) if made is None else made


def _format(text: object) -> str:
    """What a text says that it is: "" where it is no text of a result."""
    record = _record(text)
    if "discreet" in record and record.get("format") != TEST_FORMAT:
        return "discreet-local"
    told = record.get("format")
    return told if isinstance(told, str) else ""


def _record(text: object) -> dict[str, Any]:
    try:
        record = json.loads(plain.text(text, "from_json"))
    except (TypeError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def of_one_release(text: str) -> Result:
    """The result of one release; refused where the text is none, or only a step of a procedure."""
    release = release_from_json(text)
    kind = result_class(release.description.estimator)
    if kind is None or issubclass(kind, Procedure):
        raise _refused(f"a release of {release.description.estimator!r} is no result by itself")
    made: Result = kind(release)
    return made


def of_several_releases(text: str) -> Procedure | SelectionResult | None:
    """The result of a procedure; None where the text is no procedure's."""
    record = _record(text)
    if record.get("version") != PROCEDURE[1]:
        return None
    try:
        releases = [release_from_json(json.dumps(release)) for release in record["releases"]]
        return _procedure(releases)
    except UNREADABLE:
        return None


def _procedure(releases: list[Release]) -> Procedure | SelectionResult | None:
    kind = result_class(releases[-1].description.estimator)
    if kind is None or not issubclass(kind, (Procedure, SelectionResult)):
        return None
    made: Procedure | SelectionResult = kind(releases[-1], tuple(releases[:-1]))
    return made


def of_a_test(text: str) -> HypothesisTest:
    """The test, made again from the result in the text."""
    return test_again(_record(text), from_json)


def _refused(found: str) -> InvalidParameter:
    return InvalidParameter(
        "from_json",
        found,
        "another layout could be read wrongly",
        "pass what to_json() of a result wrote",
    )
