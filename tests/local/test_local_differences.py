"""Two groups of reports: coverage and size of the difference of shares,
computed over all counts.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import discreet as dp
from discreet import client, local
from discreet.errors import InvalidParameter, NoTheorem
from discreet.testing import seeded_reports

YES = client.RandomizedResponse(client.Boolean(), 2)


def group(ones: int, n: int, spec: client.RandomizedResponse = YES) -> local.LocalShares:
    return local.LocalShares(local.Collected(spec, (n - ones, ones), n))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("a", "b"), [(0.0, 0.0), (0.1, 0.1), (0.5, 0.5), (0.1, 0.3), (0.9, 0.2), (1.0, 0.0)]
)
def test_intervals_cover_and_tests_have_their_size(a: float, b: float) -> None:
    """60 reports against 60: every pair of counts with its probability."""
    n, base, gain = 60, float(YES.other), float(YES.kept)
    laws = [binom.pmf(np.arange(n + 1), n, base + gain * share) for share in (a, b)]
    covered = rejected = 0.0
    for i, j in np.argwhere(np.outer(*laws) > 1e-5):
        found, weight = local.difference(group(i, n), group(j, n)), laws[0][i] * laws[1][j]
        low, high = found.confidence_interval()
        assert -1 <= low <= high <= 1
        covered += weight * (low <= a - b <= high)
        rejected += weight * found.test().rejects(0.05)
    assert covered > 0.935
    if a == b:
        assert rejected < 0.06
    else:
        assert rejected > 0.3


def test_groups_may_have_different_specs() -> None:
    strong, weak = (
        client.RandomizedResponse(client.Boolean(), 5),
        client.TwoCoinResponse(client.Boolean()),
    )
    new = local.shares(strong, seeded_reports(strong, np.arange(4000) < 1600, 1))
    old = local.shares(weak, seeded_reports(weak, np.arange(9000) < 900, 2))
    found = local.difference(new, old)
    assert abs(found.estimate - 0.3) < 6 * found.std_error
    assert found.std_error == pytest.approx(np.hypot(new.std_errors[1], old.std_errors[1]))
    assert found.test(alternative="greater").p_value < 1e-9
    assert found.test(alternative="less").p_value > 0.99
    assert "difference" in str(found)
    low, high = found.confidence_interval()
    assert low < found.estimate < high


def test_nobody_in_a_group() -> None:
    found = local.difference(group(0, 0), group(3, 9))
    assert np.isnan(found.estimate)
    assert found.confidence_interval().tolist() == [-1, 1]
    assert found.test().p_value == 1


def test_what_cannot_be_compared_is_refused() -> None:
    other = client.RandomizedResponse(client.Category(["x", "y"]), 1)
    blocks = client.HadamardResponse(client.Integer(0, 60), 3)
    with pytest.raises(InvalidParameter):
        local.difference(group(1, 2), local.shares(other, []))
    with pytest.raises(InvalidParameter):
        local.difference(group(1, 2), group(1, 2), label="maybe")
    with pytest.raises(InvalidParameter):
        local.difference(group(1, 2), "x")  # type: ignore[arg-type]
    with pytest.raises(NoTheorem):
        local.difference(local.shares(blocks, []), local.shares(blocks, []), label="3")


def test_a_difference_comes_back_from_json() -> None:
    found = local.difference(group(30, 60), group(20, 50))
    again = dp.from_json(found.to_json())
    assert again == found
    assert again.confidence_interval().tolist() == found.confidence_interval().tolist()
    assert found._repr_html_().startswith("<table")
    with pytest.raises(InvalidParameter, match="from_json"):
        dp.from_json(found.to_json().replace('"label": "true"', '"label": "maybe"'))
