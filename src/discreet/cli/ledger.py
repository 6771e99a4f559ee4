"""A ledger as tables to print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from discreet.accounting.replay import Replay
from discreet.exact import decimal_text
from discreet.trusted.ledger.core import Ledger
from discreet.trusted.ledger.units import Amounts

_NAMES = (
    ("epsilon", "ε (pure)"),
    ("mu_squared", "μ² (Gaussian)"),
    ("rho", "ρ (zero-concentrated)"),
    ("delta", "δ₀"),
)


def balance_table(ledger: Ledger) -> Any:
    """What the box holds, what is spent and what is left, coordinate by coordinate."""
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"Ledger: the total promise is {ledger.guarantee()}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("", "budget", "spent", "set aside", "left", "used"):
        table.add_column(name, justify="left" if not name else "right")
    box_amounts, parts = ledger.box, (ledger.spent(), ledger.reserved(), ledger.remaining())
    for field, label in _NAMES:
        whole = getattr(box_amounts, field)
        if whole:
            spent, reserved, left = (getattr(part.exact(), field) for part in parts)
            table.add_row(
                label,
                *(decimal_text(value) for value in (whole, spent, reserved, left)),
                f"{100 * float(spent / whole):.1f}%",
            )
    return table


def entries_table(ledger: Ledger, most: int) -> Any:
    """The last debits and reservations: when, what for, at what price, whether answered."""
    from rich import box
    from rich.table import Table

    entries = ledger.entries()
    answered = {entry.key for entry in entries if entry.kind == "answer"}
    shown = [entry for entry in entries if entry.kind not in ("answer", "open")][-most:]
    table = Table(
        title=f"The last {len(shown)} movements ({len(entries)} entries in all)",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for name in ("#", "time (UTC)", "asked", "price", "state", "key"):
        table.add_column(name, justify="right" if name == "#" else "left", overflow="fold")
    for entry in shown:
        state = (
            ("answered" if entry.key in answered else "unfinished")
            if entry.kind == "debit"
            else entry.kind
        )
        table.add_row(
            str(entry.number),
            entry.timestamp[:16].replace("T", " "),
            _asked(entry.request),
            _short(entry.amounts),
            state,
            entry.key,
        )
    return table


def replay_table(replays: Sequence[Replay]) -> list[Any]:
    """What was spent by each accountant, beside the ledger's own count and its promise."""
    from rich import box
    from rich.table import Table

    first = replays[0]
    table = Table(
        title=f"Replay: the total promise is {first.promise}",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("")
    table.add_column("debits", justify="right")
    table.add_column(f"ε at δ = {decimal_text(first.delta)}", justify="right")
    for name, count, epsilon in (*(one.rows()[0] for one in replays), *first.rows()[1:]):
        table.add_row(name, "" if count is None else str(count), f"{epsilon:.6g}")
    return [table, "A replay describes what was used; it never gives budget back."]


def ledger_table(ledger: Ledger, most: int) -> list[Any]:
    """Balance, history and head hash."""
    return [
        balance_table(ledger),
        entries_table(ledger, most),
        (
            f"head {ledger.head}\nNote the head somewhere else: an older copy of the file cannot "
            "be told from the file alone (expected_head=)."
        ),
    ]


def _asked(request: dict[str, Any] | None) -> str:
    question = (request or {}).get("asked")
    if not isinstance(question, dict):
        return ""
    what = f" of {question['column']}" if question.get("column") else ""
    by = question.get("by") or []
    return f"{question['estimator']}{what}" + (
        f" by {', '.join(by)}" if by and by != [question.get("column")] else ""
    )


def _short(amounts: Amounts) -> str:
    return str(amounts.exact()) if amounts else ""
