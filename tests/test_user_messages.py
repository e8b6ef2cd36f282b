"""What the engine says: listed as a whole, and without the turns of phrase that an editor took out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from user_messages import list_messages

TAKEN_OUT = re.compile(
    r"Not kept yet|\banew\b|\bis there twice|\bcannot be had\b|\bcannot be told\b|brought back|that are no numbers"
    r"|the Hub does not know you|goes on from (?:here|there)|; mend |not hand out|model broke|is no share\b"
    r"|nobody answers at|than the others can bear|; there are \{…\}$|makes some\b|which is no |takes nothing in"
)
"""Phrases of a dialect of ours; judges are asked in the words of their prompts, which are part of a protocol."""
ASKED = (
    "/construction/",
    "prompts.py",
    "/judges/",
    "_judge",
    "rubric",
    "checklists",
    "/listening/questionnaire",
    "prosodic_",
    "script_quality",
    "space_files",
)
"""Files that hold prompts."""
FORMER = "metrics/reasons.py"
"""It also has former wordings, by which reasons that runs keep are known."""


def test_an_editor_would_let_every_message_stand() -> None:
    messages = list_messages()
    assert len(messages) > 3_000
    read = [one for one in messages if FORMER not in one.file and not any(part in one.file for part in ASKED)]
    assert [f"{one.file}:{one.line}: {one.text}" for one in read if TAKEN_OUT.search(one.text)] == []


def test_a_message_is_found_wherever_it_is_said(tmp_path: Path) -> None:
    file = tmp_path / "benchmark/podeval/cli/planted.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        'LIMITS = {"a": "no more than ten"}\n'
        "def plant(name):\n"
        '    """Plant a thing."""\n'
        '    print(f"{name} is planted here")\n'
        '    raise BadInput(f"there is no {name} to " "plant")\n',
        "utf-8",
    )
    assert [(one.kind, one.text) for one in list_messages(tmp_path)] == [
        ("constant", "no more than ten"),
        ("help", "Plant a thing."),
        ("said", "{…} is planted here"),
        ("raised", "there is no {…} to plant"),
    ]
