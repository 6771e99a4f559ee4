"""How a sample is drawn, and which neighbours each scheme goes with (reference.md E1).

PoissonSampling(rate)          every row is in the sample with probability `rate`, independently
                               goes with AddRemove
FixedSizeSampling(size, rows)  one of the C(rows, size) subsets, all equally likely
                               goes with Replace
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.accounting.parameters import probability, whole_number
from discreet.errors import InvalidParameter, NoTheorem
from discreet.exact import rational
from discreet.neighbors import AddRemove, Neighbors, Replace, require_neighbors


@dataclass(frozen=True, slots=True)
class PoissonSampling:
    """Each row (or, with `unit`, each unit with all its rows) enters the sample with probability
    `rate`, independently.
    """

    rate: float
    unit: str | None = None

    def __post_init__(self) -> None:
        if probability(self.rate, "rate") == 0:
            raise InvalidParameter(
                "rate",
                "it is 0",
                "an empty sample answers nothing",
                "pass a rate above 0 and at most 1",
            )

    @property
    def exact_rate(self) -> Fraction:
        return rational(self.rate, "rate")


@dataclass(frozen=True, slots=True)
class FixedSizeSampling:
    """`size` of the public number of `rows` (or, with `unit`, of units), without replacement,
    every subset equally likely.
    """

    size: int
    rows: int
    unit: str | None = None

    def __post_init__(self) -> None:
        whole_number(self.rows, "rows")
        whole_number(self.size, "size", most=self.rows)

    @property
    def exact_rate(self) -> Fraction:
        return Fraction(self.size, self.rows)


Sampling = PoissonSampling | FixedSizeSampling


def matched_rate(sampling: Sampling, neighbors: Neighbors) -> Fraction:
    """The sampling rate, once scheme and relation are known to go together."""
    relation = require_neighbors(neighbors)
    if type(sampling) is PoissonSampling:
        if type(relation) is not AddRemove:
            raise NoTheorem(
                "amplification by Poisson sampling under Replace",
                "the theorem is for AddRemove: a replaced row changes two rows of the data set at "
                "once, and each sample may hold either, both or neither",
                "amplification holds only where scheme and relation match",
                "use neighbors=AddRemove(), FixedSizeSampling with Replace(), or convert "
                "afterwards with composition.to_replace",
            )
    elif type(sampling) is FixedSizeSampling:
        if type(relation) is not Replace:
            raise NoTheorem(
                "amplification by fixed-size sampling under AddRemove",
                "the theorem is for Replace: with n private, the chance size/n of every other row "
                "changes when one row is added",
                "amplification holds only where scheme and relation match",
                "use neighbors=Replace(), or PoissonSampling with AddRemove()",
            )
    else:
        raise InvalidParameter(
            "sampling",
            f"a {type(sampling).__name__} is not a sampling scheme",
            "amplification depends on how the sample is drawn",
            "pass PoissonSampling(rate) or FixedSizeSampling(size, rows)",
        )
    if sampling.unit != relation.unit:
        raise NoTheorem(
            "amplification for this unit",
            f"rows are sampled by {sampling.unit or 'row'} and protected by "
            f"{relation.unit or 'row'}",
            "a person with several rows is in the sample more often than one row is",
            "sample whole units: give the sampling the unit= of the relation",
        )
    return sampling.exact_rate
