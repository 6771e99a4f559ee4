"""Every wrong call of `wrong_calls.py` is refused in four parts, with a hint, before anything is
debited, and shows nothing of the data; open ranges and numpy's numbers are taken.
"""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest
from wrong_calls import WRONG_CALLS as EARLIER
from wrong_calls import Desk
from wrong_calls_newer import NEWER

import discreet as dp
from discreet import plain

MU = dp.GDP(0.1)
WRONG_CALLS = [*EARLIER, *NEWER]
# values that stand in the data and nowhere else
PLANTED = {
    "age": [47, 53] * 50,
    "income": [41_739.125, 88_215.5] * 50,
    "region": ["N", "planted-4417"] * 50,
    "member": [True, False] * 50,
}
SECRETS = ("41739", "41_739", "88215", "planted", "47", "53")
SCHEMA = {
    "age": dp.Integer(18, 90),
    "income": dp.Real(0, 100_000),
    "region": dp.Category(["N", "S", "W"]),
    "member": dp.Boolean(),
}


@pytest.fixture(scope="module")
def answered():
    """Results that were paid for elsewhere."""
    session = dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.Replace()).open(budget=dp.GDP(50))
    return {
        "fit": dp.ols(session, "income ~ age", spend=dp.GDP(10)),
        "mean": dp.mean(session, "age", spend=dp.GDP(1)),
        "table": dp.table(session, by="region", spend=dp.GDP(1)),
    }


@pytest.fixture
def desk(answered, tmp_path):
    data = dp.from_arrays(PLANTED, schema=SCHEMA, neighbors=dp.Replace())
    return Desk(data.open(budget=dp.GDP(1)), data, PLANTED, SCHEMA, folder=tmp_path, **answered)


def test_there_are_many_and_each_has_its_name():
    assert len(EARLIER) >= 90
    assert len(NEWER) >= 60
    assert len({one.name for one in WRONG_CALLS}) == len(WRONG_CALLS)


@pytest.mark.few(20)
@pytest.mark.parametrize("wrong", WRONG_CALLS, ids=lambda wrong: wrong.name)
def test_a_wrong_call_is_refused_in_four_parts(wrong, desk):
    before = desk.session.ledger.entries()
    with pytest.raises(wrong.error) as caught:
        wrong.call(desk)
    error, text = caught.value, str(caught.value)
    for part in (error.asked, error.found, error.why, error.remedy):
        assert part.strip()
        assert part in text
    assert wrong.word in text
    assert not any(secret in text for secret in SECRETS)
    assert error.__cause__ is None
    assert len(text) < 2000
    assert desk.session.ledger.entries() == before


def public_functions():
    return [
        name
        for name in dp.__all__
        if inspect.isfunction(getattr(dp, name)) or name in ("Real", "Category", "Replace", "GDP")
    ]


@pytest.mark.parametrize("name", public_functions())
def test_no_public_function_raises_a_raw_type_error(name):
    function = getattr(dp, name)
    with pytest.raises(dp.DiscreetError) as caught:
        function(no_such_word=1)
    if not any(
        one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values()
    ):
        assert "no_such_word=" in caught.value.found
    try:
        inspect.signature(function).bind()
    except TypeError:
        with pytest.raises(dp.DiscreetError, match="not given"):
            function()


def test_a_type_error_of_the_function_itself_stays():
    """What fits its signature is none of the door's business."""
    with pytest.raises(TypeError, match="own words") as caught:
        fails(3)
    assert not isinstance(caught.value, dp.DiscreetError)


@plain.door
def fails(number):
    raise TypeError("own words")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ((None, 50), (18, 50)),
        ((-np.inf, 50), (18, 50)),
        ((50, None), (50, 90)),
        ([50, float("inf")], (50, 90)),
        ((np.int64(30), np.float32(50)), (30, 50)),
    ],
    ids=str,
)
def test_open_ends_are_the_declared_ones(desk, given, meant):
    key = "one question"
    first = dp.count(desk.session, where={"age": given}, spend=MU, key=key)
    assert dp.count(desk.session, where={"age": meant}, spend=MU, key=key) == first
    assert f"{meant[0]} ≤ age ≤ {meant[1]}" in str(first.summary())


def test_open_ends_of_dates_are_the_declared_ones():
    session = dp.from_arrays(
        {"day": ["2024-02-01", "2024-05-01"]},
        schema={"day": dp.Date("2024-01-01", "2024-12-31")},
        neighbors=dp.Replace(),
    ).open(budget=dp.GDP(1))
    for where in (("2024-03-01", None), ("2024-03-01", "2024-12-31")):
        found = dp.count(session, where={"day": where}, spend=MU, key="late")
        assert "2024-03-01 ≤ day ≤ 2024-12-31" in str(found.summary())


def test_numbers_of_numpy_are_bounds():
    assert dp.Integer(np.int64(18), np.int32(90)) == dp.Integer(18, 90)
    assert dp.Real(np.float64(0), np.float32(0.5)) == dp.Real(0, 0.5)
    assert dp.Category(np.array(["N", "S"])) == dp.Category(["N", "S"])
    assert dp.Category([np.int64(1), np.int64(2)]) == dp.Category([1, 2])
    assert dp.Replace(unit="id", max_rows=np.int64(3)) == dp.Replace(unit="id", max_rows=3)


@pytest.mark.parametrize(
    ("module", "package", "extra", "call"),
    [
        (
            "formulaic.parser",
            "formulaic",
            "formulas",
            lambda desk: dp.ols(desk.session, "income ~ age", spend=MU),
        ),
        ("matplotlib.figure", "matplotlib", "plots", lambda desk: desk.mean.plot()),
    ],
)
def test_a_missing_extra_is_named_by_package_and_extra(
    monkeypatch, desk, module, package, extra, call
):
    for known in [
        known
        for known in sys.modules
        if known.split(".")[0] == package or known.startswith("discreet.plots.")
    ]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(dp.MissingExtra) as caught:
        call(desk)
    assert f"{package!r} is not installed" in caught.value.found
    assert caught.value.remedy == f"pip install 'discreet[{extra}]'"
    assert not desk.session.ledger.spent()
