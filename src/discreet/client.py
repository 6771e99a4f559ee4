"""What ships in an app: specifications and reports of local privacy.

The code is `discreet.trusted.extensions.local.client`, which says what it needs and promises.
"""

from discreet.trusted.extensions.local.client import (
    Boolean,
    Category,
    GaussianResponse,
    GradientRequest,
    HadamardResponse,
    Integer,
    LaplaceResponse,
    LocalGradients,
    OneBitResponse,
    RandomizedResponse,
    Real,
    TwoCoinResponse,
    UnaryResponse,
    read_spec,
    report,
    reports,
)

__all__ = [
    "Boolean",
    "Category",
    "GaussianResponse",
    "GradientRequest",
    "HadamardResponse",
    "Integer",
    "LaplaceResponse",
    "LocalGradients",
    "OneBitResponse",
    "RandomizedResponse",
    "Real",
    "TwoCoinResponse",
    "UnaryResponse",
    "read_spec",
    "report",
    "reports",
]
