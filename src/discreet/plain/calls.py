"""Calls whose arguments do not fit: refused in four parts, at no cost to those that do.

Python raises a TypeError before a function's first line where arguments do not fit its signature.
It is told from any other TypeError by fitting the arguments once more: where that fails, nothing
of the function has run.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

from discreet.errors import InvalidParameter

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


def wrong_call(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> InvalidParameter | None:
    """Why a function does not take these arguments; None where it does."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
        return None
    except TypeError:
        pass
    from discreet.errors import calls

    parameters, name = list(signature.parameters.values()), function.__qualname__
    if parameters and parameters[0].name in ("self", "cls"):
        parameters, args = parameters[1:], args[1:]
    named = {str.__str__(word): held for word, held in kwargs.items()}
    return calls.wrong_call(name.removesuffix(".__init__"), parameters, args, named)


def called(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """A public function that says what was wrong with a call; its arguments pass as they are."""

    @functools.wraps(function)
    def asked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except TypeError:
            refused = wrong_call(function, args, kwargs)
            if refused is None:
                raise
        raise refused

    return asked
