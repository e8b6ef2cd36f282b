"""A script looked up in its sources: planted claims are found, and evidence that is nowhere is refused."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from podeval.errors import CannotScore
from podeval.metrics import catalogue
from podeval.metrics.judged.grounding import Claims, SourcedClaim
from podeval.metrics.judged.script_grounding import PART_WORDS, cut_parts
from podeval.metrics.score import Score, Unscored
from podeval.text.script import Script, Turn
from podeval.text.script_format import count_length

SOURCES = [
    "Adults are advised to sleep at least seven hours a night.",
    "The heart beats more slowly in sleep. Teenagers need eight to ten hours.",
]
TRUE = (
    "Adults should sleep at least seven hours, so count yours.",
    "And teenagers need eight to ten hours, says the doctor.",
)
PLANTED = {
    "The heart beats faster in sleep than by day.": "contradicted",
    "Four out of five cats sleep eighteen hours a day.": "not_found",
}
KNOWN = {
    "Adults should sleep": ("supported", "sleep at least seven hours a night"),
    "And teenagers need": ("supported", "Teenagers need eight to ten hours"),
    "The heart beats faster": ("contradicted", "The heart beats more slowly in sleep"),
    "Four out of five": ("not_found", ""),
}
"""What a careful reader of the sources says of each sentence."""


def read_carefully(question: Any) -> Any:
    claims = []
    for begin, (verdict, source) in KNOWN.items():
        if begin in question.inputs["part"]:
            line = next(line for line in question.inputs["part"].splitlines() if begin in line)
            quote = line.partition(": ")[2]
            claims.append({"quote": quote, "verdict": verdict, "source_quote": source, "reason": "r"})
    return {"claims": claims}


def measure(made: Any, script: list[str], sources: list[str] = SOURCES) -> Any:
    from podeval.measuring.compute import compute
    from podeval.measuring.inputs import MetricInputs

    turns = [{"speaker": name, "text": text} for name, text in zip("AB" * 9, script, strict=False)]
    request = {"instruction": "A podcast about sleep", "sources": sources}
    inputs = MetricInputs({"script": turns, "request": request})
    metric = catalogue.get("script_grounding")
    return compute(metric, [inputs], input_names=("script", "request"), bench=made.bench, parameters={})["items"][0]


def test_planted_claims_are_found_and_every_claim_is_listed(judge: Callable[..., Any]) -> None:
    made = judge(read_carefully)
    clean = measure(made, [*TRUE])
    assert (clean["grounded"], clean["contradicted"], clean["claims"]) == (100, 0, 2)
    worse = measure(made, [TRUE[0], *PLANTED, TRUE[1]])
    assert (worse["grounded"], worse["contradicted"], worse["claims"]) == (50, 25, 4)
    listed = {claim["quote"]: claim["verdict"] for claim in worse["notes"]["claims"]}
    assert {quote: listed[quote] for quote in PLANTED} == PLANTED
    assert all(claim["source_quote"] for claim in worse["notes"]["claims"] if claim["verdict"] != "not_found")


@pytest.mark.parametrize(
    ("invented", "reason"),
    [
        ({"quote": "Dogs never sleep at all", "verdict": "not_found"}, "not in the part"),
        (
            {"quote": TRUE[0], "verdict": "supported", "source_quote": "every doctor says seven hours"},
            "not in the sources",
        ),
        ({"quote": TRUE[0], "verdict": "supported"}, "needs the passage of the sources"),
    ],
)
def test_evidence_that_is_nowhere_is_refused_and_asked_for_again(
    judge: Callable[..., Any], invented: dict[str, str], reason: str
) -> None:
    def answer(question: Any) -> Any:
        return {"claims": [invented]}

    made = judge(answer)
    result = measure(made, [*TRUE])
    assert result["cause"] == "ours"
    assert reason in result["unscored"]
    assert len(made.questions) > 1


def test_a_request_without_sources_has_no_value_and_costs_no_question(judge: Callable[..., Any]) -> None:
    made = judge(read_carefully)
    assert measure(made, [*TRUE], sources=[])["grounded"] is None
    assert made.questions == []


def hold(script: Script, *answers: Any) -> Score | Unscored:
    from podeval.text.podcast_request import PodcastRequest

    conversation: Any = catalogue.get("script_grounding").function(script, PodcastRequest("Sleep", tuple(SOURCES)))
    next(conversation)
    with pytest.raises(StopIteration) as end:
        conversation.send([SimpleNamespace(value=value, record_id=str(n)) for n, value in enumerate(answers)])
    result: Score | Unscored = end.value.value
    return result


def test_a_script_without_claims_has_no_share() -> None:
    result = hold(Script((Turn("A", "Hello there."),)), Claims(claims=[]))
    assert isinstance(result, Score)
    assert result.values == {"grounded": None, "contradicted": None, "claims": 0}
    one = SourcedClaim(quote="x", verdict="not_found")
    result = hold(Script((Turn("A", "Hello there."),)), Claims(claims=[one]))
    assert isinstance(result, Score)
    assert result.values == {"grounded": 0, "contradicted": 0, "claims": 1}


@pytest.mark.parametrize(
    "sentence", ["The sea is salty because rivers bring it salt. ", "海水是咸的，因为河流带来了盐。"]
)
@pytest.mark.parametrize("turns", [1, 90])
def test_a_long_script_is_cut_between_sentences_and_nothing_is_lost(sentence: str, turns: int) -> None:
    long = Script(tuple(Turn("AB"[n % 2], sentence * (450 // turns)) for n in range(turns)))
    parts = cut_parts(long)
    assert len(parts) >= 4
    assert "".join(part.text for part in parts).replace(" ", "") == long.text.replace(" ", "")
    assert all(count_length(part.text) <= PART_WORDS + count_length(sentence) for part in parts)
    assert all(part.turns[-1].text.rstrip().endswith((".", "。")) for part in parts)


def test_a_script_without_words_cannot_be_scored() -> None:
    with pytest.raises(CannotScore, match="no words"):
        cut_parts(Script((Turn("A", "..."),)))


def test_podbench_asks_for_it() -> None:
    from podeval import benchmarks

    benchmark = benchmarks.get("podbench")
    assert "script_grounding" in {use.name for use in benchmark.metrics("write")}
