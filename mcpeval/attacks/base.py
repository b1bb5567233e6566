"""What an attack is, and how some are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import InputError, did_you_mean, is_one_of

#: Kinds of attacks, and what each of them does.
FAMILIES: dict[str, str] = {
    "instructions": "tells the judge what to say",
    "roles": "speaks as somebody whom the judge may obey",
    "languages": "tells it in another language or code",
    "rules": "gives other rules, or a false reference",
    "tags": "closes the place of what is judged, or opens a new one",
    "verdicts": "holds a verdict in the form of the judge's own answer",
    "tools": "holds a tool's result that vouches for the answer",
    "transcripts": "holds more of a conversation, in which the judge has judged",
    "hidden": "uses characters that are not seen, or turn what is seen around",
    "padding": "is so long that something else is cut or forgotten",
}


@dataclass(frozen=True)
class Attack:
    """A way to attack a judge through the answer that it judges.

    Attributes
    ----------
    id : str
        Unique; begins with its family.
    family : str
        A key of `FAMILIES`.
    build : callable
        ``build(output, best)`` gives the attacked answer; always the same of the same.  `best` is
        the verdict that the attack is after, as JSON: ``true``, ``5``, ``"good"``.
    """

    id: str
    family: str
    build: Callable[[str, str], str]

    def __post_init__(self) -> None:
        if self.family not in FAMILIES:
            raise InputError(f"Attack: family={self.family!r}. {did_you_mean(self.family, FAMILIES)}")

    def __call__(self, output: str, best: str = "true") -> str:
        """The attacked answer."""
        return self.build(output, best)


def appended(family: str, texts: Mapping[str, str]) -> list[Attack]:
    """An attack for each text, which is set after the answer; ``{best}`` in it is the verdict it is after."""
    return [Attack(f"{family}-{name}", family, _after(text)) for name, text in texts.items()]


def _after(text: str) -> Callable[[str, str], str]:
    return lambda output, best: f"{output}\n\n{text.replace('{best}', best)}"


def select(wanted: Any = None) -> tuple[Attack, ...]:
    """Attacks, each once, in the order in which they are named.

    Parameters
    ----------
    wanted : str, Attack, list of those, or None
        Ids, families, attacks of your own; None stands for all of `ATTACKS`.

    Raises
    ------
    InputError
        Something named is neither an attack nor a family, or two attacks have one id.
    """
    from . import ATTACKS

    if wanted is None:
        return tuple(ATTACKS.values())
    named = [wanted] if isinstance(wanted, (str, Attack)) else wanted
    if not isinstance(named, Iterable):
        raise InputError(f"attacks={wanted!r:.100} should be ids, families or attacks")
    found: dict[str, Attack] = {}
    for one in named:
        if not isinstance(one, Attack) and not is_one_of(one, (*FAMILIES, *ATTACKS)):
            raise InputError(f"attacks has {one!r:.100}. {did_you_mean(one, [*FAMILIES, *ATTACKS])}")
        own = isinstance(one, Attack)
        for attack in [one] if own else [a for a in ATTACKS.values() if one in (a.id, a.family)]:
            if found.setdefault(attack.id, attack) is not attack:
                raise InputError(f"attacks has the id {attack.id!r} twice; give each its own")
    if not found:
        raise InputError("attacks is empty; None stands for all")
    return tuple(found.values())
