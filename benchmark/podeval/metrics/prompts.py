"""Every prompt that podeval has, for its page in the docs and for whoever reads records."""

from collections.abc import Sequence
from types import ModuleType

from podeval.judges.prompt import Prompt
from podeval.metrics import (
    checklists,
    density_prompt,
    dialogue_prompt,
    hierarchy_prompt,
    mos_reasons,
    pairwise_judge,
    prosody_prompt,
    quality_prompt,
    richness_prompt,
    rubric_prompt,
    rubric_writing,
)

PROTOCOLS: Sequence[tuple[str, ModuleType, tuple[Prompt, ...]]] = (
    ("Two scripts compared", dialogue_prompt, (dialogue_prompt.COMPARE,)),
    (
        "Instruction following",
        checklists,
        (checklists.DERIVE, checklists.DERIVE_GENERIC, checklists.AUDIT, checklists.ACCEPT),
    ),
    ("Script quality", quality_prompt, (quality_prompt.QUALITY,)),
    ("Prosodic coherence", prosody_prompt, (prosody_prompt.HEAR,)),
    ("Expressive richness", richness_prompt, (richness_prompt.HEAR,)),
    ("Expressive hierarchy", hierarchy_prompt, (hierarchy_prompt.HEAR,)),
    ("Rubrics of spoken dialogues", rubric_prompt, (rubric_prompt.READ, rubric_prompt.hearing(1))),
    ("Criteria for one dialogue", rubric_writing, (rubric_writing.WRITE,)),
    ("Content density", density_prompt, (density_prompt.DIVIDE,)),
    ("Battles of spoken dialogue systems", pairwise_judge, (pairwise_judge.READ, pairwise_judge.hearing(1))),
    ("Scores from listeners' reasons", mos_reasons, (mos_reasons.SUMMARISE,)),
)
"""Title, the module whose docstring says what is done and how it differs from its paper, and its prompts."""


def prompts() -> tuple[Prompt, ...]:
    """All of them; of those made for a number of turns, the one for a single turn."""
    return tuple(prompt for _, _, found in PROTOCOLS for prompt in found)
