"""What plans and declarations share as TOML files: they are read whole, every word of them is known
or refused with the word that is near, and guarantees are written by their letters.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from discreet import plain
from discreet.accounting.guarantees import GDP, ApproxDP, Guarantee, PureDP
from discreet.accounting.renyi.rdp import ZCDP
from discreet.errors import InvalidParameter, shown

_KINDS: dict[frozenset[str], Callable[..., Guarantee]] = {
    frozenset({"mu"}): GDP,
    frozenset({"epsilon"}): PureDP,
    frozenset({"epsilon", "delta"}): ApproxDP,
    frozenset({"rho"}): ZCDP,
}


@dataclass(frozen=True, slots=True)
class Written:
    """A kind of file: what its refusals name, and why they matter."""

    asked: str
    why: str

    def refused(self, found: str, remedy: str) -> InvalidParameter:
        return InvalidParameter(self.asked, found, self.why, remedy)

    def read(self, path: object) -> dict[str, Any]:
        """The words of a TOML file."""
        place = plain.path(path, "path")
        try:
            with open(place, "rb") as file:
                return tomllib.load(file)
        except OSError:
            raise self.refused(
                f"there is no file {shown(place)} that can be read", "pass the path of a TOML file"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise self.refused(
                f"it is no TOML: {error}", "correct the file at that place"
            ) from None

    def known(self, told: Iterable[str], words: Iterable[str], where: str) -> None:
        """Refuses a word that is none of `words`, with the one that is near."""
        words = tuple(words)
        for word in told:
            if word not in words:
                raise self.refused(f"{where} says {word!r}", near_or(word, words))

    def guarantee(self, words: object, what: str) -> Guarantee:
        """`{ mu = … }`, `{ epsilon = … }`, `{ epsilon = …, delta = … }` or `{ rho = … }`."""
        found = guarantee_of_letters(words) if type(words) is dict else None
        if found is None:
            raise self.refused(
                f"{what} = {shown(words)} is no guarantee",
                "write { mu = 0.1 }, { epsilon = 0.1 }, { epsilon = 0.1, delta = 1e-8 } or "
                "{ rho = 0.005 }",
            )
        return found


def guarantee_of_letters(letters: Mapping[str, Any]) -> Guarantee | None:
    """The guarantee whose parameters are named; None where no guarantee has just these."""
    kind = _KINDS.get(frozenset(letters))
    return None if kind is None else kind(**letters)


def letters_of(guarantee: Guarantee) -> dict[str, float]:
    """The parameters of a guarantee by name, as `guarantee_of_letters` reads them."""
    names = [one.name for one in fields(guarantee)] if is_dataclass(guarantee) else []
    held = {name: float(getattr(guarantee, name)) for name in names if frozenset(names) in _KINDS}
    if frozenset(held) not in _KINDS:
        raise InvalidParameter(
            "a budget or spend",
            f"{shown(guarantee)} has no letters of its own",
            "a file says a guarantee by mu, epsilon, epsilon and delta, or rho",
            "use dp.GDP, dp.PureDP, dp.ApproxDP or dp.ZCDP",
        )
    return held


def near_or(word: object, words: Iterable[str]) -> str:
    """What to do about an unknown word: use the one that is near, or one of them."""
    words = tuple(words)
    near = difflib.get_close_matches(str(word), words, n=1)
    return f"did you mean {near[0]!r}?" if near else "use " + (", ".join(words) or "no word here")
