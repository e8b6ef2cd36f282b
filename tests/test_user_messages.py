"""What the engine says: listed as a whole, and without the turns of phrase that an editor took out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from podeval.metrics import catalogue
from user_messages import list_messages

TAKEN_OUT = re.compile(
    r"Not kept yet|\banew\b|\bis there twice|\bcannot be had\b|\bcannot be told\b|brought back|that are no numbers"
    r"|the Hub does not know you|goes on from (?:here|there)|; mend |not hand out|model broke|is no share\b"
    r"|nobody answers at|than the others can bear|; there are \{…\}$|makes some\b|which is no |takes nothing in"
)
"""Phrases of a dialect of ours; judges are asked in the words of their prompts, which are part of a protocol."""
LEFT_BEHIND = re.compile(
    r"\bby what is heard\b|\bis none that\b|\bare none of\b|which is none\b|where it is none"
    r"|had where podeval was built"
    r"|\blaid beside\b|\bis told by\b|\bby whom\b.{0,30}\bnames\b|\bfaults an hour\b|\bthe most alike are\b"
    r"|\bgoes free\b|\bof which more than 60 % is not speech\b|\bwords that should be heard by\b|\bby themselves\b"
    r"|\bwhatever their length\b|\bsenseless text\b|\bthe music under it is heard\b|\bbeside listening\b"
    r"|, in windows: a recording\b|\btaken in again\b|\bsays nothing of\b|\bsay nothing of\b|\bit learnt\b"
)
"""The same in texts of metrics and in pages that users read."""
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


def test_an_editor_would_let_every_message_stand() -> None:
    messages = list_messages()
    assert len(messages) > 3_000
    read = [one for one in messages if not any(part in one.file for part in ASKED)]
    assert [f"{one.file}:{one.line}: {one.text}" for one in read if TAKEN_OUT.search(one.text)] == []


def test_texts_of_metrics_and_pages_are_listed_and_read_like_english() -> None:
    messages = [one for one in list_messages() if "judge-prompts" not in one.file]
    listed = {one.kind for one in messages}
    assert {"metric", "page"} <= listed
    said = " ".join(one.text for one in messages if one.kind in ("metric", "shown", "constant", "page"))
    for declared in catalogue.load_all_metrics():
        paragraphs = declared.documentation.split("\n\n")
        texts = (*paragraphs, declared.limitations, declared.caution, declared.intended_use)
        texts = (*texts, *(key.about for key in declared.keys))
        assert [text for text in texts if " ".join(text.split()) not in said] == [], declared.name
    kinds = ("metric", "shown", "constant", "page")
    wrong = [one for one in messages if one.kind in kinds and not any(part in one.file for part in ASKED)]
    assert [f"{one.file}:{one.line}: {one.text[:300]}" for one in wrong if LEFT_BEHIND.search(one.text)] == []


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
