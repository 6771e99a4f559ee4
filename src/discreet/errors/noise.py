"""What samplers say when they refuse: facts of the mechanism and of the installation alone."""

from __future__ import annotations

from discreet.errors import InsecureNoise, InvalidParameter


def copied_source() -> InsecureNoise:
    return InsecureNoise(
        "a copy of a random source",
        "sources cannot be pickled or copied",
        "two copies would give the same noise twice, and their difference would show the data",
        "call discreet.trusted.noise.secure_source() where the noise is drawn",
    )


def other_tables() -> InsecureNoise:
    return InsecureNoise(
        "drawing noise",
        "tables.npy is not the file whose margins are proven",
        "the noise would have another law",
        "install discreet again",
    )


def bad_size() -> InvalidParameter:
    return InvalidParameter(
        "size=",
        "it is not a whole number ≥ 0",
        "it is the number of draws",
        "pass the length of the statistic",
    )


def too_wide() -> InvalidParameter:
    return InvalidParameter(
        "TulapNoise",
        "the noise spans more than 2**50 grid steps",
        "outputs are 64-bit integers",
        "use a smaller refinement (at least 32) or a smaller spread",
    )


def no_sampler(mechanism: str) -> InvalidParameter:
    return InvalidParameter(
        "drawing noise",
        f"{mechanism} has no sampler",
        "the noise must have the law that was accounted for",
        "use one of discreet.specs.mechanisms",
    )
