"""Instruction following: the share of a request's requirements that a script meets, checked with a checklist.

From the request alone, a judge derives a checklist of requirements that are stated (explicit) or implied. It then
checks the script against it: each item scores 0, 0.5 or 1 and is supported by passages quoted word for word from the
script. The value is 100 times the mean, 0 to 100, higher is better. Language, number of speakers and length are
measured rather than judged. The results are given to the judge as facts and reported as `language`, `speakers` and
`length`: 100 if as requested, 0 if not, and None if nothing was requested or the language cannot be identified (the
judge is then not given a language either). These measurements do not affect the value; `as_a_whole` is the value times
the share of the measured properties that are as requested. A script counts as being in a language if three quarters of
its words are. Speakers are counted if they have lines; names that differ only in case and spaces are the same speaker.
A minute is taken as 150 English words or 300 Chinese characters, with a tolerance of 20 % (5 % if the request is
strict). A request may come with an approved checklist. PodBench, stage 1.

Differs from the paper, whose judge sees the script when it derives the list, derives it again for each system, and
estimates the length itself with a tolerance of 5 %, at temperature 1 on the first 16,000 characters
(`variant="podbench"`). `checklist="generic"` is the baseline of the paper's Table 4: a checklist derived without
guidance on podcasts.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from podeval.errors import BadInput
from podeval.judges import Conversation, Prompt
from podeval.metrics import JudgeUse, Key, Reach, Result, Score, Unscored, facts, metric
from podeval.metrics.checklists import (
    ACCEPT,
    AUDIT,
    DERIVE,
    DERIVE_GENERIC,
    accept,
    audit,
)
from podeval.text.podcast_request import STRICT_TOLERANCE, Counted, PodcastRequest, count_facts
from podeval.text.script import Script

Variant = Literal["default", "podbench"]

CUT = 16_000
"""Number of characters of a script that the paper's judge reads."""

_LEAST_KEPT = 0.8
_SENTENCE_END = re.compile(r"[.!?。！？…][\"'”’」』)）]*\s*")
_CUT_NOTICE = "[The rest of the script is left out, as it is too long.]"


def get_sampling(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the paper's sampling parameters for the paper's variant; the judge's high effort is set in its YAML file,
    under `extra`.
    """
    if parameters.get("variant") != "podbench":
        return {}
    return {"temperature": 1.0, "top_p": 0.95, "max_tokens": 16_384}


def cut_script(script: Script, variant: Variant) -> tuple[str, bool]:
    """Return the part of a script that the judge reads, and whether it was cut.

    The paper's code cuts at 16,000 characters, or at the end of the last complete sentence before that, if this keeps
    more than 80 % of them.
    """
    text = script.lines
    if variant != "podbench" or len(text) <= CUT:
        return text, False
    kept = text[:CUT]
    ends = [end.end() for end in _SENTENCE_END.finditer(kept)]
    if ends and ends[-1] > _LEAST_KEPT * CUT:
        kept = kept[: ends[-1]]
    return f"{kept.rstrip()}\n{_CUT_NOTICE}", True


def _prompts(parameters: Mapping[str, Any]) -> Sequence[Prompt]:
    if parameters["variant"] == "podbench":
        return (ACCEPT,)
    return (DERIVE_GENERIC if parameters["checklist"] == "generic" else DERIVE, AUDIT)


@metric(
    name="instruction_following",
    title="Instruction following",
    version="1.3",
    dimension="script.instructions",
    keys=(
        Key(
            "instruction_following",
            "higher",
            "%",
            (0, 100),
            about="the whole checklist",
            reach=Reach(facts.PODBENCH, systems=(95.5, 96.6)),
        ),
        Key(
            "explicit",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            only_for="a request that states requirements",
            about="requirements that the request states",
        ),
        Key(
            "implied",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            only_for="a request that implies requirements",
            about="requirements that the request implies",
        ),
        Key(
            "language",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            only_for="a request for a language",
            about="whether the language is as requested, measured",
        ),
        Key(
            "speakers",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            only_for="a request for a number of speakers",
            about="whether the number of speakers is as requested, measured",
        ),
        Key(
            "length",
            "higher",
            "%",
            (0, 100),
            unreached=facts.PART,
            only_for="a request for a length",
            about="whether the length is as requested, measured",
        ),
        Key(
            "as_a_whole",
            "higher",
            "%",
            (0, 100),
            unreached=facts.VARIANT,
            about="the checklist value times the share of measured requirements that are met",
        ),
    ),
    paper="PodBench",
    caution=(
        "Length, language and number of speakers do not enter the main value: a script of a tenth of the requested "
        "length may score 100. Read it together with their three columns, or read `as_a_whole`."
    ),
    asks=JudgeUse(prompts=_prompts, sampling=get_sampling),
    intended_use="Checking whether scripts meet the requirements of a request: format, speakers, length, content.",
    limitations=(
        "Half of the checks are measured and half are judged by a language model, which makes errors. A vaguely worded"
        " requirement is scored as the author of the checklist understood it."
    ),
)
def instruction_following(
    script: Script,
    request: PodcastRequest,
    *,
    variant: Variant = "default",
    checklist: Literal["podcast", "generic"] = "podcast",
) -> Conversation[Result]:
    """Score one script.

    Args:
        script: the script that is judged.
        request: the request for the script.
        variant: `podbench` derives the list and checks the script in one answer, and cuts the script and samples
            answers as the paper does.
        checklist: `podcast` is derived with guidance on podcasts, `generic` without it.
    """
    if variant == "podbench" and (checklist == "generic" or request.checklist):
        raise BadInput("the variant podbench derives its own checklist, as in the paper; leave out any other checklist")
    counted = count_facts(script, request, STRICT_TOLERANCE if variant == "podbench" else None)
    text, cut = cut_script(script, variant)
    if variant == "podbench":
        findings, records = yield from accept(request, script, text)
    else:
        sentences = " ".join(counted.sentences)
        findings, records = yield from audit(request, script, text, sentences, generic=checklist == "generic")
    checks = {
        "language": counted.language_as_asked,
        "speakers": counted.speakers_as_asked,
        "length": counted.length_as_asked,
    }
    countables = {name: None if fits is None else 100.0 * fits for name, fits in checks.items()}
    counted_wishes = [value for value in countables.values() if value is not None]
    whole = _percent(findings)
    share = sum(counted_wishes) / (100 * len(counted_wishes)) if counted_wishes else 1.0
    return Score(
        values={
            "instruction_following": whole,
            "explicit": _percent(findings, "explicit"),
            "implied": _percent(findings, "implied"),
            **countables,
            "as_a_whole": None if whole is None else whole * share,
        },
        notes={
            "checklist": findings,
            "counted": list(counted.sentences),
            **_languages(counted, request),
            **({"approved_checklist": True} if request.checklist else {}),
            **({"cut": True} if cut else {}),
            "records": records,
        },
    )


def _percent(findings: Sequence[Mapping[str, Any]], kind: str = "") -> float | None:
    """Return 100 times the mean score of all requirements, or of the requirements of one kind; None if there are none
    of that kind.
    """
    scores = [finding["score"] for finding in findings if kind in ("", finding["kind"])]
    return 100 * sum(scores) / len(scores) if scores else None


def _languages(counted: Counted, request: PodcastRequest) -> dict[str, Any]:
    """Return notes on the languages of a script that has several, and on why a requested key has no value."""
    notes: dict[str, Any] = {"languages": dict(counted.shares)} if counted.shares else {}
    if request.language and counted.language_as_asked is None:
        notes["language_unscored"] = Unscored(
            "the script is too short, or its language could not be determined", "system"
        ).to_json()
    if request.minutes and counted.length_as_asked is None:
        notes["length_unscored"] = Unscored("words cannot be counted in the script's language", "ours").to_json()
    return notes
