"""Rubrics: three levels, by dimension, capability, scenario and turn; two ways to aggregate; read or heard."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.errors import BadInput
from podeval.measuring.compute import compute
from podeval.metrics import catalogue, judge_use
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.judged.rubric import build_hearing_prompt
from podeval.metrics.spoken_dialogue import SpokenDialogue, parse_criteria

METRIC = catalogue.get("rubric")
TURNS = [
    {"user": "Invite my family to a barbecue.", "answer": "Hey, come on Saturday!", "user_tags": ["birdsong"]},
    {"user": "They worry about the weather. (sigh)", "answer": "Tell them there is a tent.", "answer_tags": ["gently"]},
]


def dialogue(number: int = 1, sample: int = 2, **others: Any) -> dict[str, Any]:
    criteria = {"sample": [f"Sample criterion {n} of dialogue {number}." for n in range(1, sample + 1)]}
    return {"id": f"semantic-1-{number}", "turns": TURNS, "criteria": criteria, "dimension": "semantic", **others}


def ids(question: Any) -> list[str]:
    return [line.partition(":")[0] for line in question.inputs["criteria"].splitlines()]


def verdicts(met: dict[str, int]) -> Callable[[Any], Any]:
    def answer(question: Any) -> Any:
        return {"verdicts": [{"criterion": name, "reason": "r", "met": met[name]} for name in ids(question)]}

    return answer


def scored(dialogues: list[Any], bench: JudgeConfig, **parameters: Any) -> dict[str, Any]:
    items = [{"dialogue": SpokenDialogue.parse(one)} for one in dialogues]
    return compute(METRIC, items, input_names=METRIC.inputs, bench=bench, parameters=parameters)


MET = {
    "criteria_s_1": 1, "criteria_s_2": 1, "criteria_m_1": 0, "criteria_m_2": 1, "criteria_d_1": 1, "criteria_d_2": 0,
    "criteria_d_3": 0, "criteria_d_4": 0,
}  # fmt: skip


def test_by_level_dimension_capability_and_scenario_computed_by_hand(judge: Callable[..., Any]) -> None:
    made = judge(verdicts(MET))
    found = scored([dialogue(capability="understanding_and_memory", scenario="family_and_domestic")], made.bench)
    # s: 2 of 2, m: 1 of 2, d: 1 of 2, all: 4 of 6
    expected = {"general": 100.0, "dimension": 50.0, "sample": 50.0, "rubric": pytest.approx(400 / 6)}
    assert {key: found[key] for key in expected} == expected
    assert found["semantic"] == found["rubric"] == found["capability.understanding_and_memory"]
    assert found["scenario.family_and_domestic"] == found["rubric"]
    assert "paralinguistic" not in found
    assert not any(key.startswith("turn_") for key in found)
    # As in the paper's code: the standing criteria in one question, the sample's in another.
    assert sorted(ids(question) for question in made.questions) == [
        ["criteria_d_1", "criteria_d_2"],
        ["criteria_s_1", "criteria_s_2", "criteria_m_1", "criteria_m_2"],
    ]


def test_the_mean_of_dialogues_by_default_and_pooled_over_criteria_in_the_mtalk_variant(
    judge: Callable[..., Any],
) -> None:
    made = judge(verdicts(MET))
    short, long = dialogue(1, sample=1), dialogue(2, sample=4)
    # 4 of 5 and 4 of 8: mean of shares 65, pooled 8 of 13
    assert scored([short, long], made.bench)["rubric"] == pytest.approx(65.0)
    pooled = scored([short, long], made.bench, variant="mtalk")
    assert pooled["rubric"] == pytest.approx(100 * 8 / 13)
    assert pooled["sample"] == pytest.approx(100 * 2 / 5)
    low, high = pooled["ci95"]["rubric"]
    assert low < pooled["rubric"] < high
    assert made.questions[-1].body["temperature"] == 0.1


def test_turn_scores_come_from_criteria_written_for_the_dialogue_cut_off_there(judge: Callable[..., Any]) -> None:
    def answer(question: Any) -> Any:
        cut_off = "Turn 2" not in question.inputs["dialogue"]
        met = {**MET, "criteria_d_1": 0} if cut_off else MET
        return verdicts(met)(question)

    made = judge(answer)
    found = scored([dialogue(turn_criteria={"1": ["Suits an invitation."]})], made.bench)
    # Turn 1: 3 of 4 standing criteria and 0 of 1; turn 2 is the whole dialogue: 4 of 6
    assert found["turn_1"] == pytest.approx(100 * 3 / 5)
    assert found["turn_2"] == found["rubric"] == pytest.approx(400 / 6)
    asked = {question.inputs["criteria"]: question.inputs["dialogue"] for question in made.questions}
    assert "tent" not in asked["criteria_d_1: Suits an invitation."]


def test_transcripts_show_sounds_and_tones(judge: Callable[..., Any]) -> None:
    made = judge(verdicts(MET))
    scored([dialogue()], made.bench)
    assert made.questions[0].inputs["dialogue"].splitlines() == [
        "Turn 1, user: Invite my family to a barbecue. [birdsong]",
        "Turn 1, system (as it wrote it): Hey, come on Saturday!",
        "Turn 2, user: They worry about the weather. (sigh)",
        "Turn 2, system (as it wrote it): Tell them there is a tent. [gently]",
    ]


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A dialogue of noise, in which nobody looks for words to the judge."""
    monkeypatch.setattr(judge_use, "transcribe_spoken_words", lambda inputs: {})
    turns = []
    for number, turn in enumerate(TURNS):
        paths = {}
        for who in ("user", "answer"):
            paths[f"{who}_audio"] = str(tmp_path / f"{who}-{number}.wav")
            noise = np.random.default_rng(number).normal(0, 0.1, 8000).astype(np.float32)
            soundfile.write(paths[f"{who}_audio"], noise, 16_000)
        turns.append({**turn, **paths})
    return dialogue(turns=turns)


def test_a_judge_that_hears_gets_every_turn_s_audio_in_its_place(
    judge: Callable[..., Any], heard: dict[str, Any]
) -> None:
    made = judge(verdicts(MET), hears=True)
    found = scored([heard], made.bench, modality="audio")
    assert found["rubric"] == pytest.approx(400 / 6)
    assert [question.clips for question in made.questions] == [4, 4]
    kinds = [part["type"] for part in made.questions[0].body["messages"][1]["content"]]
    assert kinds == ["text", "input_audio"] * 4 + ["text"]
    assert found["protocol"]["models"]["prompts"] == [build_hearing_prompt(1).id]
    assert found["protocol"]["id"] != scored([heard], made.bench)["protocol"]["id"]


def test_a_judge_that_does_not_hear_is_named_as_the_cause(judge: Callable[..., Any], heard: dict[str, Any]) -> None:
    found = scored([heard], judge(verdicts(MET), hears=False).bench, modality="audio")
    assert found["items"][0]["cause"] == "ours"
    assert "not declared to accept audio" in found["items"][0]["unscored"]


def test_an_answer_that_is_missing_is_the_system_s_fault(judge: Callable[..., Any], heard: dict[str, Any]) -> None:
    made = judge(verdicts(MET), hears=True)
    silent = dialogue(turns=[TURNS[0], {"user": "And then?", "answer": " "}])
    lost = {**heard, "turns": [heard["turns"][0], {**heard["turns"][1], "answer_audio": "/nowhere.wav"}]}
    absent = {**heard, "turns": [{**heard["turns"][0], "answer_audio": None}]}
    read, unheard = scored([silent], made.bench), scored([lost, absent], made.bench, modality="audio")
    assert [item["cause"] for item in (*read["items"], *unheard["items"])] == ["system"] * 3
    assert "answer in turn 2 has no words" in read["items"][0]["unscored"]
    assert made.questions == []


@pytest.mark.parametrize("dimension", ["paralinguistic", "ambient"])
@pytest.mark.parametrize("words", [{}, {"answer_heard": "What a pity."}, {"answer_tags": []}, {"answer_tags": [" "]}])
def test_how_an_answer_sounds_is_not_judged_from_plain_words(
    judge: Callable[..., Any], dimension: str, words: dict[str, Any]
) -> None:
    made = judge(verdicts(MET))
    plain = {"user": "I lost my job.", "answer": "(warmly) What a pity.", **words}
    (item,) = scored([dialogue(turns=[plain], dimension=dimension)], made.bench)["items"]
    assert item["cause"] == "ours"
    assert f"cannot tell how an answer sounds, which {dimension} dialogues are about" in item["unscored"]
    assert "modality=audio" in item["unscored"]
    assert made.questions == [], "nobody pays for a question that cannot be answered"
    meant = scored([dialogue(turns=[plain])], made.bench)["items"][0]
    assert meant["notes"]["judged_from"] == "plain words"


def test_a_tone_noted_for_every_answer_counts_as_heard_and_for_one_of_two_not(judge: Callable[..., Any]) -> None:
    made = judge(verdicts(MET))
    noted = [{**turn, "answer_tags": ["gently"]} for turn in TURNS]
    every, one = scored(
        [dialogue(turns=noted, dimension="paralinguistic"), dialogue(dimension="paralinguistic")], made.bench
    )["items"]
    assert every["paralinguistic"] == every["rubric"]
    assert every["notes"]["judged_from"] == "annotated transcript"
    assert one["cause"] == "ours"


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"verdicts": [{"criterion": "criteria_s_1", "met": 1}]}, "each once and in this order"),
        ({"criteria_s_1": 1, "criteria_s_2": 0.5, "criteria_m_1": 1, "criteria_m_2": 1}, "met"),
        ({"criteria_s_1": 1, "criteria_s_2": 2, "criteria_m_1": 1, "criteria_m_2": 1}, "less than or equal to 1"),
    ],
    ids=["criterion left out", "half", "two"],
)
def test_wrong_verdicts_are_asked_again_and_then_unscored(
    judge: Callable[..., Any], wrong: dict[str, Any], told: str
) -> None:
    made = judge(lambda question: wrong)
    found = scored([dialogue(sample=0)], made.bench)
    assert (found["scored"], found["unscored"]) == (0, 1)
    assert told in found["items"][0]["unscored"]
    assert len(made.questions) == 3


def test_verdicts_in_the_paper_s_form_are_read(judge: Callable[..., Any]) -> None:
    made = judge(lambda question: {name: MET[name] for name in ids(question)})
    assert scored([dialogue()], made.bench)["rubric"] == pytest.approx(400 / 6)


def test_criteria_are_read_from_the_prompts_of_the_authors_dataset() -> None:
    prompt = (
        "## Evaluation Criteria:\n- criteria_s_1: The answer is on topic.\n- criteria_d_2: It names a tent.\n"
        '```json\n{\n  "criteria_s_1": 1,\n  "criteria_d_2": 0\n}\n```'
    )
    found = parse_criteria(prompt)
    assert [(c.id, c.level, c.text) for c in found] == [
        ("criteria_s_1", "general", "The answer is on topic."),
        ("criteria_d_2", "sample", "It names a tent."),
    ]
    parsed = SpokenDialogue.parse({"turns": TURNS, "criteria": prompt})
    assert [c.id for c in parsed.criteria] == ["criteria_m_1", "criteria_m_2", "criteria_s_1", "criteria_d_2"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("not JSON", "a spoken dialogue must be JSON"),
        ({"turns": []}, "needs its `turns`"),
        ({"turns": TURNS, "dimension": "visual"}, "one of semantic, paralinguistic, ambient"),
        ({"turns": ["hello"]}, "turn 1: a turn must be an object"),
        ({"turns": [{"user": 1}]}, "user must be a transcript"),
        ({"turns": TURNS, "criteria": {"sample": "one"}}, "sample criteria must be a list"),
        ({"turns": TURNS, "criteria": {"other": ["x"]}}, "under general, dimension, sample"),
        ({"turns": TURNS, "turn_criteria": ["x"]}, "a list for each turn"),
    ],
)
def test_a_dialogue_that_is_none_is_refused_with_a_sentence(data: Any, reason: str) -> None:
    with pytest.raises(BadInput, match=reason):
        SpokenDialogue.parse(data)


def test_what_has_no_occasion_is_the_judge_s_to_decide_and_the_former_rule_a_protocol_of_its_own() -> None:
    asks = catalogue.get("rubric").asks
    assert asks
    judged, met = (
        asks.prompts(catalogue.get("rubric").read_parameters(chosen)) for chosen in ({}, {"no_occasion": "met"})
    )
    assert [prompt.id for prompt in judged] != [prompt.id for prompt in met]
    assert "no occasion" not in judged[0].template
    assert "also where the dialogue gives no occasion" in met[0].template
