"""Refine cases of an LFS-Bench dataset: drop duplicates and dull cases, replace private names (LFS-Bench, appendix
A.3).

There are four steps. A judge describes every case with topics, keywords and a summary, which are compared instead of
the texts, because the same subject can be expressed in different words. Sentence embeddings find duplicates. A judge
gives two ratings and an overall rating, which must be above 2. A judge checks privacy and safety.

There are three differences from the paper. Topics, keywords and summaries are requested in English, so that one encoder
can compare cases in both languages. In the privacy step, the judge does not rewrite the text but names the words to
replace, so the rest of the text cannot change. The judge invents the names that replace private ones, and people check
these names in the review; in the paper, people invented the names.
"""

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from podeval.construction.lfs_cases import Case, CaseTurn, clean
from podeval.construction.workshop import Sifted, StagedRow, ask_each
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt
from podeval.text.characters import HAN

DULL, UNSAFE = "quality", "privacy and safety"

PERSONAL = {
    "e-mail": re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+"),
    "phone number": re.compile(r"(?<![\w.+])\+?\d(?:[ ()-]{0,2}\d){8,14}(?!\w)"),
    "number of an identity card": re.compile(r"(?<!\d)\d{17}[\dXx](?!\d)"),
}
"""Patterns of personal data; every text is searched for these patterns, regardless of the judge's findings."""


class Digest(JudgeAnswer):
    """What a text is about, in English."""

    topics: list[str] = Field(min_length=1)
    keywords: list[str] = Field(min_length=1)
    summary: str = Field(min_length=1)

    @property
    def sentence(self) -> str:
        """The sentence by which cases are compared."""
        return f"{'; '.join(self.topics)}. {', '.join(self.keywords)}. {self.summary}"


class SpeechFitness(JudgeAnswer):
    """How fit a text is for long speech."""

    reasoning: str
    expressiveness: int = Field(ge=1, le=5)
    consistency: int = Field(ge=1, le=5)
    overall: int = Field(ge=1, le=5)


class Detail(JudgeAnswer):
    """A personal detail in a text."""

    quote: str = Field(min_length=1, description="exactly as it stands in the text")
    kind: Literal["name", "address", "phone", "e-mail", "account", "other"]
    public: bool = Field(description="whether it is of a public figure: known, in office, historical")
    stand_in: str = Field(description="something made up to stand in its place; empty where it is public")


class Softening(JudgeAnswer):
    """Words that are better put otherwise."""

    quote: str = Field(min_length=1, description="exactly as it stands in the text")
    replacement: str


class TextScreening(JudgeAnswer):
    """What a text tells of people, and what harm is in it."""

    reasoning: str
    details: list[Detail]
    softened: list[Softening]
    harm: Literal["none", "minor", "severe"]


class Replacement(BaseModel):
    """Words of a text that were replaced, and their replacement."""

    model_config = ConfigDict(frozen=True)

    was: str
    now: str
    why: str


class RefinedCase(StagedRow):
    """A case with its digest, its ratings, the replaced private details, and hints for a reviewer."""

    case: Case
    digest: Digest
    rating: SpeechFitness | None = None
    replaced: tuple[Replacement, ...] = ()
    warnings: tuple[str, ...] = ()


DIGEST = Prompt(
    name="lfs_digest",
    version="1.0",
    system="You index texts, so that those on the same matter can be found whatever words and language they use.",
    template=(
        "Read this text:\n{text}\n\nIn English, whatever the text's language: one to three topics, three to eight "
        "keywords, and a summary of one or two sentences. Say what happens or is claimed, not what kind of text it is."
    ),
    answer=Digest,
    source="LFS-Bench appendix A.3, in our own words",
)

RATE = Prompt(
    name="lfs_quality",
    version="1.0",
    system="You are a linguist who chooses texts for tests of long speech synthesis. You explain before you rate.",
    template="""\
Is this text worth being spoken in a test of long speech?
{text}

After a short reasoning that names what is good and bad, rate from 1 (poor) to 5 (excellent), in whole numbers:
- expressiveness: is it fluent and natural, in language that lives and has a rhythm for speaking?
- consistency: does it hold together, without contradictions and sudden changes of the matter?
- overall: how strongly you would keep it.""",
    answer=SpeechFitness,
    source="LFS-Bench figure 6, in our own words",
)

SCREEN = Prompt(
    name="lfs_privacy",
    version="1.0",
    system="You protect the privacy of people and the readers of a published collection of texts.",
    template="""\
Check this text before it is published:
{text}

1. List every name of a person, and every address, telephone number, e-mail address or account in it, as quoted. Is it \
of a public figure (a celebrity, a politician, somebody of history, a character of known fiction)? That stays. \
Otherwise give something made up to stand in its place, of the same kind, language and gender. Labels such as Speaker1 \
are no names.
2. Is there hate, cruelty in detail, sex, or a grave prejudice? none: no. minor: a few words; quote them and give \
better ones. severe: so much that the text cannot be published.
Reason first, then answer. Every quote must be exactly as in the text; a part of a name that occurs alone is quoted \
by itself too.""",
    answer=TextScreening,
    source="LFS-Bench figure 7, in our own words",
)


def digest_cases(cases: Sequence[Case], judging: Asked) -> Sifted[RefinedCase]:
    """Have a judge summarise every case."""
    return ask_each(
        judging,
        cases,
        lambda case: JudgeRequest(DIGEST, {"text": case.lines}),
        lambda case, digest: RefinedCase(id=case.id, case=case, digest=digest),
    )


def rate(rows: Sequence[RefinedCase], judging: Asked, least: int) -> Sifted[RefinedCase]:
    """Remove cases that are rated too low."""

    def keep(row: RefinedCase, rating: SpeechFitness) -> RefinedCase | str:
        if rating.overall < least:
            return f"rated {rating.overall} of 5 overall: {rating.reasoning}"
        return row.model_copy(update={"rating": rating})

    return ask_each(judging, rows, lambda row: JudgeRequest(RATE, {"text": row.case.lines}), keep, DULL)


def screen(rows: Sequence[RefinedCase], judging: Asked) -> Sifted[RefinedCase]:
    """Remove cases that cannot be published, and replace private details in the remaining cases."""

    def request(row: RefinedCase) -> JudgeRequest:
        return JudgeRequest(SCREEN, {"text": row.case.lines}, check=partial(_check_quotes, row.case))

    def keep(row: RefinedCase, screening: TextScreening) -> RefinedCase | str:
        if screening.harm == "severe":
            return screening.reasoning
        replaced = list_replacements(screening)
        case = replace_words(row.case, replaced)
        warnings = tuple(find_warnings(case, screening))
        return row.model_copy(update={"case": case, "replaced": tuple(replaced), "warnings": warnings})

    return ask_each(judging, rows, request, keep, UNSAFE)


def list_replacements(screening: TextScreening) -> list[Replacement]:
    """List a screening's replacements: stand-ins for private details, and better wordings for harmful words."""
    softened = {
        one.quote: Replacement(was=one.quote, now=clean(one.replacement), why="minor harm")
        for one in screening.softened
    }
    private = {
        one.quote: Replacement(was=one.quote, now=clean(one.stand_in), why=f"private {one.kind}")
        for one in screening.details
        if not one.public
    }
    return list((softened | private).values())


def replace_words(case: Case, replaced: Sequence[Replacement]) -> Case:
    """Replace every occurrence of the words in a case's turns and speaker names, starting with the longest words."""
    if not replaced:
        return case
    by_words = {one.was: one.now for one in replaced}
    pattern = re.compile("|".join(_match_whole(words) for words in sorted(by_words, key=len, reverse=True)))

    def change(text: str) -> str:
        return " ".join(pattern.sub(lambda match: by_words[match[0]], text).split())

    content = tuple(CaseTurn(speaker=change(turn.speaker), text=change(turn.text)) for turn in case.content)
    kept = tuple(turn for turn in content if turn.text)
    return case.model_copy(update={"content": kept, "theme": change(case.theme)}) if kept else case


def find_warnings(case: Case, screening: TextScreening) -> list[str]:
    """Return the points that a reviewer should check: remaining patterns of personal data, and softened words."""
    warnings = [
        f"looks like {'an' if name[0] in 'aeiou' else 'a'} {name}: {match[0]}"
        for name, pattern in PERSONAL.items()
        for match in pattern.finditer(case.text)
    ]
    if screening.harm == "minor":
        warnings.append(f"minor harm: {screening.reasoning}")
    return warnings


def _match_whole(words: str) -> str:
    """Return a pattern that matches only whole words, except in Chinese, which has no spaces between words."""
    edge = f"[^\\W_{HAN}]"
    before = f"(?<!{edge})" if re.match(edge, words[0]) else ""
    after = f"(?!{edge})" if re.match(edge, words[-1]) else ""
    return f"{before}{re.escape(words)}{after}"


def _check_quotes(case: Case, answer: TextScreening) -> None:
    """Check that every quote occurs in the text, and that every private detail has a different stand-in."""
    places = [text for turn in case.content for text in (turn.text, turn.speaker)]
    for quote in (*(one.quote for one in answer.details), *(one.quote for one in answer.softened)):
        if not any(re.search(_match_whole(quote), text) for text in places):
            raise ValueError(f"{quote!r} does not occur in any turn of the text; quote the words exactly")
    for detail in answer.details:
        if not detail.public and (not clean(detail.stand_in) or detail.quote in detail.stand_in):
            raise ValueError(f"{detail.quote!r} is private, so something else must be made up to stand in for it")
    if answer.softened and answer.harm == "none":
        raise ValueError("softer words are suggested, so `harm` cannot be none")
