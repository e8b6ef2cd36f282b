"""Topic and grounding: whether a podcast is about its topic, and whether its sources support what it claims.

A judge reads the transcript of the recording in parts of at most 1,200 words. `on_topic` is how far the parts serve the
topic (0, 0.5 or 1), averaged over the parts, weighted by number of words, as a percentage. If the podcast comes with
the sources that it was made from, the judge lists up to twelve claims from each part that could be looked up, and
decides for each whether the sources support it, contradict it, or do not mention it. `grounded` is the percentage of
claims that the sources support, `contradicted` the percentage that they contradict. The judge quotes every claim from
the part, and the decisive passage from the sources; if a quote is not found there, the judge is asked again. 0 to 100,
higher is better except for `contradicted`.

Differs from PodEval, whose questionnaire asks listeners how much they learned, not whether the content is true.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Literal

from pydantic import Field, model_validator

from podeval.errors import CannotScore
from podeval.judges import Conversation, Grade, JudgeAnswer, JudgeRequest, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Result, Score, facts, metric
from podeval.metrics.checklists import list_missing
from podeval.recording import Recording, speech_track
from podeval.text.comparison.alignment import join_words
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script import Script, Turn

PROTOCOL = """\
Whether a finished podcast is about its topic and grounded in its sources.

The judge reads a transcript of the podcast in parts of at most 1,200 words. Each part gets 0, 0.5 or 1 for the topic.
If there are sources, up to twelve claims of each part are looked up in them. Every verdict quotes the part and the
sources, and the quotes are checked: if evidence is invented, the judge is asked again.
"""
"""Description of the question, for the prompts page of the docs."""

PART_WORDS = 1_200
MOST_CLAIMS = 12
SAID_NOTHING = "not_found"


class OnTopic(JudgeAnswer):
    """How far one part serves the topic."""

    about: str = Field(description="what the part is about, in a sentence")
    score: Grade


class SourcedClaim(JudgeAnswer):
    """One claim, and what the sources say of it."""

    quote: str = Field(description="the claim, copied word for word from the part")
    verdict: Literal["supported", "contradicted", "not_found"]
    source_quote: str = Field(
        default="", description="the passage of the sources that decides, copied word for word; empty if not_found"
    )
    reason: str = ""

    @model_validator(mode="after")
    def _has_evidence(self) -> "SourcedClaim":
        if self.verdict != SAID_NOTHING and not self.source_quote.strip():
            raise ValueError(f"a claim that is {self.verdict} needs the passage of the sources that decides")
        return self


class Claims(JudgeAnswer):
    """The claims of one part; none where it makes none that could be looked up."""

    claims: list[SourcedClaim] = Field(max_length=MOST_CLAIMS)


_SYSTEM = "You check podcasts before they are published. You go by what is said and written, not by what you know."

ASK_TOPIC = Prompt(
    name="podcast_topic",
    version="1.0",
    system=_SYSTEM,
    template="""\
A podcast was asked for on this topic:
{topic}

A part of it, as a machine heard it (spelling and punctuation are the machine's):
{part}

Say what the part is about, and how far it serves the topic:
1: it is about the topic, or is what a podcast needs around it (a greeting, a summary, a goodbye).
0.5: it is about something near the topic, or half of it is about something else.
0: it is about something else, or says nothing.""",
    answer=OnTopic,
    source="podeval",
)

LOOK_UP = """\
List up to twelve claims of the part that somebody could look up: facts, figures, dates, names, causes. Leave out \
opinions, jokes, greetings and who the speakers are. Copy each claim word for word from the part. For each say:
supported: the sources say so; copy the passage.
contradicted: the sources say otherwise; copy the passage.
not_found: the sources say nothing of it, however true it may be."""
"""The task for every part of a podcast or of its script."""

ASK_CLAIMS = Prompt(
    name="podcast_claims",
    version="1.0",
    system=_SYSTEM,
    template=f"""\
A podcast was made from these sources:
{{sources}}

A part of it, as a machine heard it (spelling and punctuation are the machine's):
{{part}}

{LOOK_UP}""",
    answer=Claims,
    source="podeval",
)


@metric(
    name="grounding",
    title="Topic and grounding",
    version="1.0",
    dimension="podcast.content",
    keys=(
        Key(
            "on_topic",
            "higher",
            "%",
            (0, 100),
            about="how far the parts of the podcast serve the topic",
            unreached=facts.NEW,
        ),
        Key(
            "grounded",
            "higher",
            "%",
            (0, 100),
            unreached=facts.NEW,
            only_for="a podcast with sources that makes claims",
            about="claims that the sources support",
        ),
        Key(
            "contradicted",
            "lower",
            "%",
            (0, 100),
            unreached=facts.NEW,
            only_for="a podcast with sources that makes claims",
            about="claims that the sources contradict",
        ),
    ),
    needs=(*speech_track.NEEDS, "transcriber"),
    paper="ours",
    asks=JudgeUse(prompts=lambda _: (ASK_TOPIC, ASK_CLAIMS)),
    intended_use="Finding podcasts that stray from their topic, or whose claims their sources do not support.",
    limitations=(
        "It takes the sources as the only truth: a claim that they do not contain counts as unsupported. The "
        "transcriber's errors in names and figures may count as the podcast's. A language model picks the claims and "
        "judges them, and its agreement with people has not been measured."
    ),
)
def grounding(recording: Recording, request: PodcastRequest) -> Conversation[Result]:
    """Score one recording.

    Args:
        recording: a podcast, 16 kHz.
        request: the podcast's topic as the instruction, and the sources that the podcast was made from.
    """
    recording.require_sound()
    track = recording.speech_track()
    words = [text for word in track.transcript().words if (text := word.text.strip())]
    if not words:
        raise CannotScore("no words are heard in the recording")
    count = -(-len(words) // PART_WORDS)
    bounds = [round(number * len(words) / count) for number in range(count + 1)]
    parts = [join_words(words[begin:end]) for begin, end in pairwise(bounds)]
    answers = yield [
        *(JudgeRequest(ASK_TOPIC, {"topic": request.text, "part": part}) for part in parts),
        *request_claims(ASK_CLAIMS, [(part, Script((Turn("", part),))) for part in parts], request),
    ]
    topics = select_values(OnTopic, answers)
    claims = [claim for answer in select_values(Claims, answers) for claim in answer.claims]
    weights = [end - begin for begin, end in pairwise(bounds)]
    return Score(
        values={
            "on_topic": 100 * sum(w * t.score for w, t in zip(weights, topics, strict=True)) / len(words),
            **compute_support(claims),
        },
        notes={
            "about": [topic.about for topic in topics],
            "claims": [claim.model_dump() for claim in claims],
            "records": [answer.record_id for answer in answers],
            **track.notes,
        },
    )


def request_claims(prompt: Prompt, parts: Sequence[tuple[str, Script]], request: PodcastRequest) -> list[JudgeRequest]:
    """Ask for the claims of each part and for what the sources say about them, if the sources have any words.

    Args:
        prompt: the question, with placeholders for the sources and the part.
        parts: each part in two forms: as the judge reads it, and as it is searched for quotes.
        request: the request with the sources.
    """
    sources = "\n\n".join(request.sources)
    if not sources.strip():
        return []
    return [
        JudgeRequest(
            prompt, {"sources": sources, "part": text}, check=partial(require_quotes, part=part, sources=sources)
        )
        for text, part in parts
    ]


def compute_support(claims: Sequence[SourcedClaim]) -> dict[str, float | None]:
    """Return the percentages of claims that the sources support and contradict; None if there are no claims."""
    verdicts = {"grounded": "supported", "contradicted": "contradicted"}
    return {
        key: 100 * sum(claim.verdict == verdict for claim in claims) / len(claims) if claims else None
        for key, verdict in verdicts.items()
    }


def require_quotes(answer: Any, part: Script, sources: str) -> None:
    """Refuse claims that are not in the part, and evidence that is not in the sources.

    Raises:
        ValueError: claims or evidence are not found; the message, which goes to the judge, names them.
    """
    quotes: Mapping[str, tuple[Script, list[str]]] = {
        "part": (part, [claim.quote for claim in answer.claims]),
        "sources": (
            Script((Turn("", sources),)),
            [claim.source_quote for claim in answer.claims if claim.verdict != SAID_NOTHING],
        ),
    }
    for name, (text, quoted) in quotes.items():
        if missing := list_missing(quoted, text):
            listed = "; ".join(f"“{quote[:80]}”" for quote in missing[:3])
            raise ValueError(f"these quotes are not in the {name}: {listed}. Copy the words exactly as they are there.")
