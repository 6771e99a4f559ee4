"""Any result, from the JSON text that its `to_json` wrote:
of releases, of fits, of tests, or of randomised reports.
"""

from __future__ import annotations

import json
from typing import Any

from discreet import plain


def from_json(text: str) -> Any:
    """The result that `to_json` of a result wrote; a text that no result wrote is refused.

    Tests are made again from the result in the text.
    """
    from discreet.inference.results.hypothesis import TEST_FORMAT, test_again
    from discreet.inference.results.results import result_from_json

    try:
        text = plain.text(text, "from_json")
        record = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        record = None
    if isinstance(record, dict) and record.get("format") == TEST_FORMAT:
        return test_again(record, from_json)
    if isinstance(record, dict) and "discreet" in record:
        from discreet.local.questions import result_from_json as local_from_json

        return local_from_json(text)
    return result_from_json(text)
