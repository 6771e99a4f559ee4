"""Only plain values pass the door: what is kept, compared or hashed is of an exact built-in type.

A subclass of `str` may hash differently each time, one of `dict` may give other items to the check
than to the computation, one of a specification may change its mind between the proof and the draw.
So whatever a caller hands in is rebuilt once, from what the built-in type itself stores, and only
the rebuilt value is used.

    value      anything: text, numbers, lists, mappings, arrays, specifications, all the way down
    text …     one value of one kind, or a refusal
    door       a public function whose arguments pass through `value`
    called     a public function that says what was wrong with a call
    kept       a specification (a frozen dataclass) that holds nothing but plain values
    rebuilt    a specification made anew, with all its checks; subclasses are refused

Theorem.  `value` returns a tree of exact `str, int, float, bool, None, bytes, complex, Fraction,
          Decimal, list, tuple, dict, set, frozenset, ndarray`, iterators over lists of these, and
          specifications of this package; or passes on an object of a type that is none of these
          nor a subclass of one, and whose class is what it says it is.
Proof.    Types are read by `type(x)` and compared by identity or by `type.__subclasscheck__`,
          which no class can override; contents are read by unbound methods of the built-in types
          (`str.__str__`, `int.__index__`, `float.__float__`, `dict.items`, `list.__iter__`, …),
          once. Sequences and mappings of other types are read once, into a list or a dict.
Checked.  tests/reliability/test_hostile_objects.py

Exceptions, by design: functions of the caller's own (`dp.subsample_test(test=…)`,
`dp.m_estimate(psi=…, mean=…)`, `ledger.replay(accountant=…)`, `ledger.store(key, make_answer)`)
stay functions: what they return is read as plain. Cells of data are not parameters: they are read
by the total rules of `discreet.schema`.
"""

from __future__ import annotations

from discreet.plain.calls import called
from discreet.plain.copies import exact_key, forgetting, remembered, twin
from discreet.plain.kinds import (
    all_atoms,
    among,
    copied,
    derives,
    is_kept,
    is_ours,
    is_plain,
    kind_name,
    not_exact,
)
from discreet.plain.values import (
    DEEPEST,
    MOST_MEMBERS,
    door,
    exactly,
    fraction,
    kept,
    members,
    number,
    path,
    rebuilt,
    text,
    truth,
    value,
    whole,
)

__all__ = [
    "DEEPEST",
    "MOST_MEMBERS",
    "all_atoms",
    "among",
    "called",
    "copied",
    "derives",
    "door",
    "exact_key",
    "forgetting",
    "exactly",
    "fraction",
    "is_kept",
    "is_ours",
    "is_plain",
    "kept",
    "kind_name",
    "members",
    "not_exact",
    "number",
    "path",
    "rebuilt",
    "remembered",
    "text",
    "truth",
    "twin",
    "value",
    "whole",
]
