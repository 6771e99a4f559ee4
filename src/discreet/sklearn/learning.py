"""What learns from the data without privacy, found by classes and parameters alone, so that the
warning is the same for all data.

A private fit protects the rows that reach it. A step before it that learnt from all rows (a mean,
a component, a list of levels) has put what it learnt into each of them, at no price and with no
noise.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

# learn the number of columns and nothing else
LEARN_SHAPES = ("PolynomialFeatures",)
_HINTS = {"StandardScaler": "PrivateStandardScaler"}
_INSIDE = ("discreet", "sklearn", "joblib")  # packages whose frames are not the caller's


class PrivacyWarning(UserWarning):
    """A step of a pipeline learns from the data without privacy."""


def check_pipeline(pipeline: Any) -> tuple[str, ...]:
    """The steps that learn from the data without privacy, by name; warns of them where there are
    any. Only classes and parameters are looked at, so the text is the same for all data.
    """
    found = list(_learning("", pipeline))
    if found:
        named = ", ".join(f"{path} ({kind})" for path, kind in found)
        private = [_HINTS[kind] for _, kind in found if kind in _HINTS]
        warnings.warn(
            f"learns from the data without privacy: {named}. What such a step learns is in every "
            "row that it hands on, and the guarantee of a private fit does not cover it. Use "
            + (f"{', '.join(dict.fromkeys(private))} or " if private else "")
            + "a FunctionTransformer with public constants instead.",
            PrivacyWarning,
            stacklevel=_callers_level(),
        )
    return tuple(path for path, _ in found)


def check_surroundings(checks_itself: type[Pipeline]) -> None:
    """`check_pipeline` of the outermost pipeline of scikit-learn that is fitting at this moment, as
    the frames of this thread tell; one that checks itself is left to it.
    """
    outermost, frame = None, sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        outermost = owner if isinstance(owner, Pipeline) else outermost
        frame = frame.f_back  # type: ignore[assignment]
    if outermost is not None and not isinstance(outermost, checks_itself):
        check_pipeline(outermost)


def _callers_level() -> int:
    """The `stacklevel` at which a warning of `check_pipeline` names the caller's own line."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package(frame) in _INSIDE:
        level, frame = level + 1, frame.f_back
    return level


def _package(frame: Any) -> str:
    return str(frame.f_globals.get("__name__", "")).split(".")[0]


def _learning(path: str, step: Any) -> Iterator[tuple[str, str]]:
    """(path, class) of what learns without privacy, through pipelines, unions and searches."""
    inner = _inner_steps(step)
    if inner:
        for name, part in inner:
            yield from _learning(f"{path}.{name}" if path else name, part)
    elif hasattr(step, "fit") and not getattr(step, "learns_privately", False):
        kind = type(step).__name__
        if kind not in LEARN_SHAPES and get_tags(step).requires_fit:
            yield path or kind, kind


def _inner_steps(step: Any) -> list[tuple[str, Any]]:
    """The named estimators inside a composite one; none for a plain one."""
    for field in ("steps", "transformer_list", "transformers", "estimators"):
        held = getattr(step, field, None)
        if isinstance(held, list):
            return [(str(one[0]), one[1]) for one in held]
    held = getattr(step, "estimator", None) or getattr(step, "regressor", None)
    return [("estimator", held)] if hasattr(held, "fit") else []
