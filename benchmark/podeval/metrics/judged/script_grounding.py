"""Grounding in sources: whether the sources that come with a request support what a script claims.

A judge reads the script in parts of at most about 1,200 words or Chinese characters, cut between sentences. It lists up
to twelve claims from each part that could be looked up, and decides for each whether the sources support it, contradict
it, or do not mention it. `grounded` is the percentage of claims that the sources support, `contradicted` the percentage
that they contradict, and `claims` the number of claims. The judge quotes every claim from the script, and the decisive
passage from the sources; if a quote is not found there, the judge is asked again. A request without sources has no
value. 0 to 100 %, higher is better except for `contradicted`.

Differs from PodBench, which asks a judge for the credibility of a script without comparing it with its sources. The
metric `grounding` asks the same about the transcript of a finished podcast.
"""

import re

from podeval.errors import CannotScore
from podeval.judges import Conversation, Prompt, select_values
from podeval.metrics import JudgeUse, Key, Result, Score, facts, metric
from podeval.metrics.judged.grounding import LOOK_UP, PART_WORDS, Claims, compute_support, request_claims
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script import Script, Turn
from podeval.text.script_format import count_length

PROTOCOL = """\
Whether a script is grounded in the sources that came with its request.

The judge reads it in parts of at most about 1,200 words. Up to twelve claims of each part are looked up in the sources.
Every verdict quotes the part and the sources, and the quotes are checked: if evidence is invented, the judge is asked
again.
"""
"""Description of the question, for the prompts page of the docs."""

_SENTENCE = re.compile(r".+?(?:[.!?。！？…]+[\"”’」』)）]*(?=\s|$|[^\W\d_a-zA-Z])\s*|$)", re.DOTALL)

ASK_CLAIMS = Prompt(
    name="script_claims",
    version="1.0",
    system="You check scripts before they are recorded. You go by what is written, not by what you know.",
    template=f"""\
A podcast script was written from these sources:
{{sources}}

A part of the script:
{{part}}

{LOOK_UP}""",
    answer=Claims,
    source="podeval",
)


def cut_parts(script: Script) -> list[Script]:
    """Cut a script between sentences into parts of about equal length, with at most about `PART_WORDS` words each.

    Raises:
        CannotScore: the script has no words.
    """
    pieces = [Turn(turn.speaker, text) for turn in script.turns for text in _SENTENCE.findall(turn.text)]
    lengths = [count_length(piece.text) for piece in pieces]
    total = sum(lengths)
    if not total:
        raise CannotScore("the script has no words")
    parts: list[list[Turn]] = [[] for _ in range(-(-total // PART_WORDS))]
    before = 0
    for piece, length in zip(pieces, lengths, strict=True):
        part = parts[min(before * len(parts) // total, len(parts) - 1)]
        if part and part[-1].speaker == piece.speaker:
            part[-1] = Turn(piece.speaker, part[-1].text + piece.text)
        else:
            part.append(piece)
        before += length
    return [Script(tuple(part)) for part in parts if part]


@metric(
    name="script_grounding",
    title="Grounding in sources",
    version="1.0",
    dimension="script.grounding",
    keys=(
        Key(
            "grounded",
            "higher",
            "%",
            (0, 100),
            unreached=facts.NEW,
            only_for="a request with sources, and a script that makes claims",
            about="claims that the sources support",
        ),
        Key(
            "contradicted",
            "lower",
            "%",
            (0, 100),
            unreached=facts.NEW,
            only_for="a request with sources, and a script that makes claims",
            about="claims that the sources contradict",
        ),
        Key(
            "claims",
            "informative",
            "",
            (0, None),
            unreached=facts.NEW,
            only_for="a request with sources",
            about="claims that were looked up",
        ),
    ),
    paper="ours",
    asks=JudgeUse(prompts=lambda _: (ASK_CLAIMS,)),
    intended_use="Finding scripts whose claims their sources do not support, with each claim and the decisive passage.",
    limitations=(
        "It takes the sources as the only truth: a claim that they do not contain counts as unsupported, even if it is "
        "true. A script that claims little can be grounded throughout, so read the value together with `claims`. A "
        "language model picks the claims and judges them, and its agreement with people has not been measured."
    ),
)
def script_grounding(script: Script, request: PodcastRequest) -> Conversation[Result]:
    """Score one script.

    Args:
        script: the script that is checked.
        request: the request, with the sources for the script.
    """
    requests = request_claims(ASK_CLAIMS, [(part.lines, part) for part in cut_parts(script)], request)
    if not requests:
        return Score(values=dict.fromkeys(("grounded", "contradicted", "claims")), notes={"sources": 0})
    answers = yield requests
    claims = [claim for answer in select_values(Claims, answers) for claim in answer.claims]
    return Score(
        values={
            **compute_support(claims),
            "claims": float(len(claims)),
        },
        notes={
            "claims": [claim.model_dump() for claim in claims],
            "records": [answer.record_id for answer in answers],
        },
    )
