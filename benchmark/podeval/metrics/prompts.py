"""All prompts of podeval, for their page in the docs and for readers of records."""

from collections.abc import Sequence

from podeval.judges.prompt import Prompt
from podeval.metrics import checklists, pairwise_judge, rubric_writing
from podeval.metrics.human import mos
from podeval.metrics.judged import (
    content_density,
    dialogue_judge,
    expressive_hierarchy,
    expressive_richness,
    prosodic_coherence,
    rubric,
    script_quality,
)

PROTOCOLS: Sequence[tuple[str, str, tuple[Prompt, ...]]] = (
    ("Two scripts compared", dialogue_judge.PROTOCOL, (dialogue_judge.COMPARE,)),
    (
        "Instruction following",
        checklists.__doc__ or "",
        (checklists.DERIVE, checklists.DERIVE_GENERIC, checklists.AUDIT, checklists.ACCEPT),
    ),
    ("Script quality", script_quality.PROTOCOL, (script_quality.QUALITY,)),
    ("Prosodic coherence", prosodic_coherence.PROTOCOL, (prosodic_coherence.HEAR,)),
    ("Expressive richness", expressive_richness.PROTOCOL, (expressive_richness.HEAR,)),
    ("Expressive hierarchy", expressive_hierarchy.PROTOCOL, (expressive_hierarchy.HEAR,)),
    ("Rubrics of spoken dialogues", rubric.PROTOCOL, (rubric.READ, rubric.build_hearing_prompt(1))),
    ("Criteria for one dialogue", rubric_writing.__doc__ or "", (rubric_writing.WRITE,)),
    ("Content density", content_density.PROTOCOL, (content_density.DIVIDE,)),
    (
        "Battles of spoken dialogue systems",
        pairwise_judge.__doc__ or "",
        (
            *pairwise_judge.list_prompts("transcript"),
            *pairwise_judge.list_prompts("audio"),
            pairwise_judge.build_reading_prompt("mtalk"),
        ),
    ),
    ("Scores from listeners' reasons", mos.PROTOCOL, (mos.SUMMARISE,)),
)
"""Title, what is done and how it differs from its paper, and the prompts."""


def list_all_prompts() -> tuple[Prompt, ...]:
    """Return all prompts; where a prompt is made for a number of turns, the one for a single turn."""
    return tuple(prompt for _, _, of_protocol in PROTOCOLS for prompt in of_protocol)
