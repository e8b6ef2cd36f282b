"""Every prompt that podeval has, for its page in the docs and for whoever reads records."""

from collections.abc import Sequence
from types import ModuleType

from podeval.judges import (
    battle,
    density,
    dialogue,
    hierarchy,
    instruction,
    justification,
    prosody,
    quality,
    richness,
    rubric,
    writing,
)
from podeval.judges.prompt import Prompt

PROTOCOLS: Sequence[tuple[str, ModuleType, tuple[Prompt, ...]]] = (
    ("Two scripts compared", dialogue, (dialogue.COMPARE,)),
    (
        "Instruction following",
        instruction,
        (instruction.DERIVE, instruction.DERIVE_GENERIC, instruction.AUDIT, instruction.ACCEPT),
    ),
    ("Script quality", quality, (quality.QUALITY,)),
    ("Prosodic coherence", prosody, (prosody.HEAR,)),
    ("Expressive richness", richness, (richness.HEAR,)),
    ("Expressive hierarchy", hierarchy, (hierarchy.HEAR,)),
    ("Rubrics of spoken dialogues", rubric, (rubric.READ, rubric.hearing(1))),
    ("Criteria for one dialogue", writing, (writing.WRITE,)),
    ("Content density", density, (density.DIVIDE,)),
    ("Battles of spoken dialogue systems", battle, (battle.READ, battle.hearing(1))),
    ("Scores from listeners' reasons", justification, (justification.SUMMARISE,)),
)
"""Title, the module whose docstring says what is done and how it differs from its paper, and its prompts."""


def prompts() -> tuple[Prompt, ...]:
    """All of them; of those made for a number of turns, the one for a single turn."""
    return tuple(prompt for _, _, found in PROTOCOLS for prompt in found)
