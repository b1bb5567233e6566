"""The attack set: what an answer may hold in order to move its judge, all of it written for this package.

An `Attack` makes an attacked answer of a clean one, always the same of the same; `ATTACKS` holds
them all, `select` finds some.  `mcpeval.probe` lets a judge meet them and says what they achieved.

Parts: base (what an attack is) | told (instructions, roles, other languages, false rules and
references) | forged (tags, verdicts, tool results, transcripts) | hidden (characters that are not
seen, padding).
"""

from . import forged, hidden, told
from .base import FAMILIES, Attack, select

#: Every attack by its id, family by family.
ATTACKS: dict[str, Attack] = {
    attack.id: attack
    for family in FAMILIES
    for part in (told, forged, hidden)
    for attack in part.ATTACKS
    if attack.family == family
}

__all__ = ["ATTACKS", "FAMILIES", "Attack", "select"]
