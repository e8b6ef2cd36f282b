"""All of podeval's prompts, for the prompts page of the docs and for readers of records, and custom wordings."""

from collections.abc import Sequence
from pathlib import Path

from podeval.errors import BadInput
from podeval.files import write_whole
from podeval.judges.prompt import Prompt
from podeval.judges.wording import reword, write_wording
from podeval.metrics import checklists, pairwise_judge, rubric_writing
from podeval.metrics.human import mos
from podeval.metrics.judged import (
    content_density,
    dialogue_judge,
    expressive_hierarchy,
    expressive_richness,
    grounding,
    prosodic_coherence,
    rubric,
    script_grounding,
    script_quality,
)
from podeval.text.text_file import read_text

SUFFIX = ".txt"
"""File name suffix for wordings."""

PROTOCOLS: Sequence[tuple[str, str, tuple[Prompt, ...]]] = (
    ("Two scripts compared", dialogue_judge.PROTOCOL, (dialogue_judge.COMPARE,)),
    (
        "Instruction following",
        checklists.__doc__ or "",
        (checklists.DERIVE, checklists.DERIVE_GENERIC, checklists.AUDIT, checklists.ACCEPT),
    ),
    ("Script quality", script_quality.PROTOCOL, (script_quality.QUALITY,)),
    ("Grounding in sources", script_grounding.PROTOCOL, (script_grounding.ASK_CLAIMS,)),
    ("Prosodic coherence", prosodic_coherence.PROTOCOL, (prosodic_coherence.HEAR,)),
    ("Expressive richness", expressive_richness.PROTOCOL, (expressive_richness.HEAR,)),
    ("Expressive hierarchy", expressive_hierarchy.PROTOCOL, (expressive_hierarchy.HEAR,)),
    ("Rubrics of spoken dialogues", rubric.PROTOCOL, (rubric.build_reading_prompt(), rubric.build_hearing_prompt(1))),
    ("Criteria for one dialogue", rubric_writing.__doc__ or "", (rubric_writing.WRITE,)),
    ("Content density", content_density.PROTOCOL, (content_density.DIVIDE,)),
    ("Topic and grounding", grounding.PROTOCOL, (grounding.ASK_TOPIC, grounding.ASK_CLAIMS)),
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
"""Title, description with the differences from the paper, and prompts."""


def read_wordings(folder: str | Path | None) -> dict[str, str]:
    """Read the wordings in a folder that differ from podeval's, by the name of the prompt.

    `podeval judge prompts` writes such a folder. Hidden files and a README are ignored. Without a folder, there are no
    custom wordings.

    Raises:
        BadInput: there is no such folder or no file in it, a file is not named after a prompt, or the placeholders in
            its text differ from those of the prompt; the message names the file.
    """
    if not folder:
        return {}
    folder = Path(folder)
    prompts = {prompt.family: prompt for prompt in reversed(list_all_prompts())}
    if not folder.is_dir():
        raise BadInput(
            f"{folder} is not a folder; run `podeval judge prompts --out {folder}` to write podeval's prompts there"
        )
    paths = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "README"))]
    if not paths:
        raise BadInput(
            f"{folder} contains no prompts; run `podeval judge prompts --out {folder}` to write podeval's prompts there"
        )
    wordings = {}
    for path in paths:
        if path.suffix != SUFFIX or path.stem not in prompts:
            raise BadInput(
                f"{path} is not named after a prompt; its name must be one of {', '.join(prompts)}, plus {SUFFIX}"
            )
        ours, wording = prompts[path.stem], read_text(path)
        try:
            if reword(ours, wording) is not ours:
                wordings[path.stem] = wording
        except BadInput as refusal:
            raise BadInput(f"{path}: {refusal}") from None
    return wordings


def write_wordings(folder: Path) -> list[Path]:
    """Write the wording of every prompt to a separate file, as a starting point for custom wordings; return the files.

    Raises:
        BadInput: a file already exists and may contain a custom wording; nothing is written.
    """
    wordings = {folder / f"{prompt.family}{SUFFIX}": write_wording(prompt) for prompt in reversed(list_all_prompts())}
    if existing := sorted(path for path in wordings if path.exists()):
        raise BadInput(f"{existing[0]} already exists and may contain your own wording; choose another folder")
    for path, wording in wordings.items():
        write_whole(path, wording.encode())
    return sorted(wordings)


def list_all_prompts() -> tuple[Prompt, ...]:
    """Return all prompts; if a prompt depends on the number of turns, return the one for a single turn."""
    return tuple(prompt for _, _, of_protocol in PROTOCOLS for prompt in of_protocol)
