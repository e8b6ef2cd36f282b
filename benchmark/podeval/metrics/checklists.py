"""Whether a script meets its request (PodBench, stage 1).

A checklist is derived from the request alone: its explicit requirements and those they imply. The script is audited
against it; each item gets 0, 0.5 or 1, with passages from the script as evidence. Because the list does not depend on
the script, every system is audited against the same list. Language, number of speakers and length are measured, given
to the judge as facts, and left out of the list.

Differs from the paper, whose judge derives the list again for each script, sees the script, and estimates the length
itself (`acceptance`, the variant `podbench`). The list `generic`, from the paper's Table 4, is derived without
knowledge of podcasts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import AliasChoices, Field, model_validator

from podeval.judges import Conversation, Grade, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.text.characters import HAN, keep_letters
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script import Script

# This module is separate from the metric `instruction_following` because together they would have 430 lines, and
# because `rubric_writing` also derives lists.


Kind = Literal["explicit", "implied"]

_TAG = re.compile(r"\s*[\[【(（]([^\]】)）]*)[\]】)）]\s*")
_IMPLIED = re.compile(r"隐性|推断|impli|inferred", re.IGNORECASE)
_POINT = AliasChoices("requirement", "instruction_point")


_OR_NONE = (
    "Copy the words exactly as they are there; where the script has nothing to copy, give no quotes and the score 0."
)


class Requirement(JudgeAnswer):
    """One thing that the script must do."""

    requirement: str = Field(min_length=3, validation_alias=_POINT, description="one checkable sentence")
    kind: Kind = Field(description="explicit: stated by the user; implied: not stated, and yet expected")

    @model_validator(mode="before")
    @classmethod
    def _kind_from_tag(cls, data: Any) -> Any:
        """Read the kind of a requirement from a tag such as `[Implicit/Inferred]` that the paper's judge writes before
        the text.
        """
        if not isinstance(data, Mapping):
            return data
        text = data.get("requirement", data.get("instruction_point"))
        tag = _TAG.match(text) if isinstance(text, str) else None
        if not isinstance(text, str) or not tag or "kind" in data:
            return data
        kind = "implied" if _IMPLIED.search(tag[1]) else "explicit"
        return {**data, "requirement": text[tag.end() :], "kind": kind}


class Checklist(JudgeAnswer):
    """What a request asks for."""

    genre: str = Field(default="", description="what kind of podcast is asked for, and for whom")
    checklist: list[Requirement] = Field(min_length=3)


class Audited(JudgeAnswer):
    """What became of one item of the checklist."""

    number: int = Field(description="number of the item")
    quotes: list[str] = Field(description="passages copied word for word from the script; none only where none exist")
    reason: str
    score: Grade


class Audit(JudgeAnswer):
    """Every item of the checklist, in its order."""

    items: list[Audited] = Field(min_length=1)


class Accepted(Requirement):
    """A requirement and what became of it, in one."""

    quotes: list[str] = Field(
        default=[], description="passages copied word for word from the script; none only where none exist"
    )
    reason: str
    score: Grade


class Acceptance(JudgeAnswer):
    """A checklist, audited."""

    checklist: list[Accepted] = Field(min_length=1)


_CHECKLIST_RULES = """\
Write the requirements as a list that a person with the script in hand can check one by one:
- Each is one sentence about one thing, specific to this request, and can be met, met in part, or not met. A wish for \
two things is two requirements; three requirements are the least, and most requests make more.
- Nothing twice, nothing that every text meets.
- Leave out the language, the number of speakers and the length: these are counted elsewhere."""

DERIVE = Prompt(
    name="podcast_checklist",
    version="1.1",
    system=(
        "You prepare the acceptance of podcast scripts: from what a client asks for you derive what the script has to "
        "do, before anyone has seen the script."
    ),
    template="""\
What the client asks for:
{request}

What the script is to draw on:
{sources}

First say what kind of podcast is wanted and who would listen. Then list what the script has to do:
- explicit: what the client states, such as topics, their order and weight, roles, tone, structure, what to avoid.
- implied: what the client does not state and would still miss. How deep and how dense it should be follows from the \
kind of podcast, from its listeners (specialists, or anybody) and from how much there is to draw on: plenty of \
material and no wish for brevity call for detail, little material for a modest expansion.

"""
    + _CHECKLIST_RULES,
    answer=Checklist,
    source="PodBench appendix D.2 (stage 1, step 1), in our own words",
)

DERIVE_GENERIC = Prompt(
    name="generic_checklist",
    version="1.1",
    system="You derive from a request what an answer to it has to do.",
    template="""\
The request:
{request}

Material that came with it:
{sources}

List what a good answer to this request has to do, as requirements marked explicit (stated) or implied.

"""
    + _CHECKLIST_RULES,
    answer=Checklist,
    source="PodBench table 4, baseline protocol of a generic checklist; the paper prints no prompt for it",
)

AUDIT = Prompt(
    name="script_audit",
    version="1.1",
    system=(
        "You check work against a list. Every item is decided on its own, by what stands in the text and not by what "
        "you suppose; you are strict and fair."
    ),
    template="""\
What was asked for:
{request}

What there was to draw on:
{sources}

What was counted in the script, as a fact; it is no part of the script and is not copied:
{counted}

The checklist:
{checklist}

The script to check, which is all that passages are copied from:
{script}

For each item of the checklist, in its order, give its number; copy from the script, word for word, the passages that \
decide it (an ellipsis leaves words out; where the script has none, give none); say why; and give a score:
1: met fully.
0.5: attempted, and done inadequately, such as a point touched without depth.
0: ignored or violated; also where a thing that should be the focus is only mentioned.
A score above 0 without a passage from the script is not accepted.""",
    answer=Audit,
    source="PodBench appendix D.2 (stage 1, step 2), in our own words",
)

ACCEPT = Prompt(
    name="script_acceptance",
    version="1.1",
    system=(
        "You accept or reject podcast scripts for clients. First you make the law: from the request you derive what "
        "the script has to do. Then you judge: item by item, by evidence in the script and by nothing else."
    ),
    template="""\
What the client asks for:
{request}

The material that came with it:
{sources}

The script:
{script}

A minute of podcast is about 300 Chinese characters or 150 English words; unless the client is strict about it, 5 % \
more or less is as asked.

First derive the checklist:
- explicit: what the client states, such as duration, topics, tone.
- implied: what the client does not state and clearly expects. Say what genre it is; infer the depth from how much \
material there is where no duration is named (much material calls for detail, little for a modest expansion), and the \
density and difficulty from the topic and its listeners.

Then check each item against the script: copy the passages that decide it word for word, say why, and give a score: \
1 met fully; 0.5 attempted inadequately; 0 ignored or violated, also where what should be the focus is only mentioned. \
Duration is checked strictly by the rule above. A score above 0 without a passage is not accepted.""",
    answer=Acceptance,
    source="PodBench appendix D.2 (stage 1, both steps in one), in our own words",
)


Findings = tuple[list[dict[str, Any]], list[str]]
"""Each requirement with its kind, score, reason and quotes, and the records from which the findings can be replayed."""


def derive(request: PodcastRequest, generic: bool = False) -> Conversation[tuple[list[Requirement], list[str]]]:
    """Ask the judge to derive the checklist for a request; return it with the records of the answers."""
    answers = yield [JudgeRequest(DERIVE_GENERIC if generic else DERIVE, _request_inputs(request))]
    return select_values(Checklist, answers)[0].checklist, [answer.record_id for answer in answers]


def audit(
    request: PodcastRequest, script: Script, shown_text: str, counted: str, *, generic: bool = False
) -> Conversation[Findings]:
    """Derive the checklist, unless the request has an approved one, and audit the script against it.

    Args:
        request: the request for the script.
        script: the whole script, which is searched for evidence.
        shown_text: the text of the script that the judge sees.
        counted: a text that states the counts.
        generic: whether to derive the list without knowledge of podcasts.
    """
    requirements = [Requirement(requirement=text, kind=kind) for text, kind in request.checklist]
    records: list[str] = []
    if not request.checklist:
        requirements, records = yield from derive(request, generic)
    numbered = "\n".join(f"{number}. ({item.kind}) {item.requirement}" for number, item in enumerate(requirements, 1))
    inputs = {**_request_inputs(request), "checklist": numbered, "script": shown_text, "counted": counted}
    answers = yield [JudgeRequest(AUDIT, inputs, check=partial(_check_audit, count=len(requirements), script=script))]
    graded = select_values(Audit, answers)[0].items
    findings = [_describe(item, one) for item, one in zip(requirements, graded, strict=True)]
    return findings, [*records, answers[0].record_id]


def accept(request: PodcastRequest, script: Script, text: str) -> Conversation[Findings]:
    """Ask for the checklist and the audit in a single answer, as the paper does."""
    inputs = {**_request_inputs(request), "script": text}
    answers = yield [JudgeRequest(ACCEPT, inputs, check=partial(_check_acceptance, script=script))]
    graded = select_values(Acceptance, answers)[0].checklist
    return [_describe(one, one) for one in graded], [answers[0].record_id]


def _describe(item: Requirement, graded: Audited | Accepted) -> dict[str, Any]:
    verdict = {"score": graded.score, "reason": graded.reason, "quotes": graded.quotes}
    return {"requirement": item.requirement, "kind": item.kind, **verdict}


def _request_inputs(request: PodcastRequest) -> dict[str, str]:
    numbered = (f"[{number}] {source}" for number, source in enumerate(request.sources, 1))
    return {"request": request.text, "sources": "\n\n".join(numbered) or "(nothing was given)"}


def _check_audit(answer: Any, count: int, script: Script) -> None:
    numbers = [item.number for item in answer.items]
    if numbers != list(range(1, count + 1)):
        raise ValueError(f"the checklist has items 1 to {count}; give each once, in this order, not {numbers}")
    _require_evidence([(f"item {item.number}", item) for item in answer.items], script)


def _check_acceptance(answer: Any, script: Script) -> None:
    _require_evidence([(f"“{item.requirement[:60]}”", item) for item in answer.checklist], script)


def _require_evidence(items: Sequence[tuple[str, Audited | Accepted]], script: Script) -> None:
    bare = [name for name, item in items if item.score > 0 and not item.quotes]
    if bare:
        raise ValueError(f"{', '.join(bare[:5])}: a score above 0 needs a passage from the script")
    require_found([quote for _, item in items for quote in item.quotes], script, _OR_NONE)


# Check evidence: whether the passages that a judge quotes occur in the text that it judges. Only letters and digits are
# compared, regardless of case and in compatibility form, so spacing, punctuation and the kind of quotation marks do not
# matter. `…` or `...` inside a quote marks omitted words; the parts around it must occur in order.

_GAP = re.compile(r"\.{3,}|…+|\[…\]|\[\.{3}\]")
_WORDS, _CHARACTERS = 3, 6
"""Minimum number of words in a quote, and of Chinese characters if it has any; a single word is not evidence."""


def list_missing(quotes: Iterable[str], script: Script) -> list[str]:
    """Return the quotes that are too short, or do not occur in the script with or without speakers' names."""
    texts = [keep_letters(script.lines), keep_letters(script.text)]
    return [
        quote
        for quote in quotes
        if not any(_contains(quote, text) for text in texts) and not _is_said_by(quote, script)
    ]


def require_found(
    quotes: Iterable[str], script: Script, advice: str = "Copy the words exactly as they are there."
) -> None:
    """Refuse quotes that do not occur in the script.

    Args:
        quotes: the passages that a judge quoted.
        script: the script in which they should occur.
        advice: a sentence that tells the judge what to do instead.

    Raises:
        ValueError: a quote is not in the script; the message, which goes to the judge, names it.
    """
    if missing := list_missing(quotes, script):
        quoted = "; ".join(f"“{quote[:80]}”" for quote in missing[:3])
        raise ValueError(f"these quotes do not stand in the script: {quoted}. {advice}")


def _is_said_by(quote: str, script: Script) -> bool:
    """Return whether a quote is a speaker's name, a colon, and words from inside one of that speaker's turns."""
    name, *words = re.split("[:：]", quote, maxsplit=1)
    turns = (turn for turn in script.turns if words and keep_letters(turn.speaker) == keep_letters(name))
    return any(_contains(words[0], keep_letters(turn.text)) for turn in turns)


def _contains(quote: str, text: str) -> bool:
    parts = [part for piece in _GAP.split(quote) if (part := keep_letters(piece))]
    if not _says_enough(quote) and not (parts and "".join(parts) == text):
        return False
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part)
    return True


def _says_enough(quote: str) -> bool:
    """Return whether a quote has enough words, or Chinese characters, to be evidence."""
    characters = len(re.findall(f"[{HAN}]", quote))
    words = [word for word in re.split(rf"[\s{HAN}]+", quote) if keep_letters(word)]
    return len(words) >= _WORDS or characters >= _CHARACTERS or len(words) + characters / 2 >= _WORDS
