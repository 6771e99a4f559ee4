"""A question as a program asks it: Python, curl and R, with every text quoted for its language."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

_NAMES = {"mu": "GDP", "epsilon": "PureDP", "rho": "ZCDP"}


def title(asked: Mapping[str, Any]) -> str:
    """A question in a few words, for a list."""
    name = str(asked.get("estimator", "question"))
    of = asked.get("formula") or asked.get("column") or asked.get("columns") or asked.get("first")
    text = name.replace("_", " ")
    if of:
        text += f" of {', '.join(map(str, of)) if isinstance(of, list) else of}"
    if asked.get("by"):
        text += f" by {_by(asked['by'])}"
    if asked.get("where"):
        text += f", where {', '.join(map(str, asked['where']))}"
    return text


def python(asked: Mapping[str, Any], *, address: str, dataset: str, study: str, key: str) -> str:
    """The question in the library."""
    options = [
        f"{name}={held!r}" for name, held in asked.items() if name not in ("estimator", "spend")
    ]
    words = ", ".join(["session", *options, f"spend={spend_text(asked['spend'])}", f"key={key!r}"])
    return (
        "import os\n\nimport discreet as dp\n\n"
        f"connection = dp.connect({address!r}, token=os.environ['DISCREET_TOKEN'])\n"
        f"session = connection.open({dataset!r}, study={study!r})\n"
        f"print(dp.{asked['estimator']}({words}))\n"
    )


def curl(asked: Mapping[str, Any], *, address: str, study: str, key: str) -> str:
    """The question by HTTP."""
    body = json.dumps(asked, ensure_ascii=True)
    return (
        f"curl {shlex.quote(f'{address}/v1/studies/{study}/questions')} \\\n"
        '  -H "Authorization: Bearer $DISCREET_TOKEN" \\\n'
        f"  -H {shlex.quote(f'Idempotency-Key: {in_header(key)}')} \\\n"
        "  -H 'Content-Type: application/json' \\\n"
        f"  -d {shlex.quote(body)}\n"
    )


def r(asked: Mapping[str, Any], *, address: str, study: str, key: str) -> str:
    """The question in R, with httr2."""
    body = json.dumps(json.dumps(asked, ensure_ascii=True))
    return (
        "library(httr2)\n\n"
        f"answer <- request({json.dumps(f'{address}/v1/studies/{study}/questions')}) |>\n"
        '  req_auth_bearer_token(Sys.getenv("DISCREET_TOKEN")) |>\n'
        f"  req_headers(`Idempotency-Key` = {json.dumps(in_header(key))}) |>\n"
        f'  req_body_raw({body}, "application/json") |>\n'
        "  req_perform() |>\n"
        "  resp_body_json()\n"
    )


def spend_text(letters: Mapping[str, float]) -> str:
    """A spend as the library writes it."""
    if "delta" in letters:
        return f"dp.ApproxDP({letters['epsilon']!r}, {letters['delta']!r})"
    name, amount = next(iter(letters.items()))
    return f"dp.{_NAMES[name]}({amount!r})"


def in_header(key: str) -> str:
    """A key as a header may hold it."""
    kept = [
        one if one.isascii() and one.isprintable() and one != "%" else _percent(one) for one in key
    ]
    return "".join(kept)


def _percent(mark: str) -> str:
    return "".join(f"%{octet:02X}" for octet in mark.encode())


def _by(told: Any) -> str:
    listed = told if isinstance(told, list) else [told]
    return " and ".join(
        ", ".join(map(str, one)) if isinstance(one, dict) else str(one) for one in listed
    )
