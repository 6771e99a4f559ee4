"""Any result, from the JSON text that its `to_json` wrote: of releases, of fits, of tests, or of randomised reports."""

from __future__ import annotations

import json
from typing import Any

from discreet.errors import InvalidParameter


def from_json(text: str) -> Any:
    """The result that `to_json` of a result wrote; a text that no result wrote is refused. Tests are made again from the result in the text."""
    from discreet.inference.hypothesis import TEST_FORMAT
    from discreet.inference.results import result_from_json

    try:
        record = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        record = None
    if isinstance(record, dict) and record.get("format") == TEST_FORMAT:
        return _test_again(record)
    if isinstance(record, dict) and "discreet" in record:
        from discreet.local.questions import result_from_json as local_from_json

        return local_from_json(text)
    return result_from_json(text)


def _test_again(record: dict[str, Any]) -> Any:
    from discreet.inference.hypothesis import TEST_FORMAT

    asked, inner = record.get("asked"), record.get("result")
    if record.get("version") == 1 and isinstance(asked, dict) and isinstance(inner, dict) and inner.get("format") != TEST_FORMAT:
        test = getattr(from_json(json.dumps(inner)), "test", None)
        if test is not None:
            try:
                return test(**asked)
            except TypeError:
                pass
    raise InvalidParameter("from_json", "this is not the text of a test", "another layout could be read wrongly", "pass what to_json() of this version wrote")
