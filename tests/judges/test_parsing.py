import json
import time
from typing import Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podeval.judges.parsing import UnreadableAnswer, parse, read_answer
from podeval.models.chat import ChatAnswer, read_completion


class Item(pydantic.BaseModel):
    score: int = pydantic.Field(ge=0, le=5, validation_alias=pydantic.AliasChoices("score", "得分"))
    met: bool = True
    half: Literal[0, 0.5, 1] = 0


class Answer(pydantic.BaseModel):
    total: float = pydantic.Field(ge=0, le=45, validation_alias=pydantic.AliasChoices("total", "总分"))
    items: list[Item] = pydantic.Field(validation_alias=pydantic.AliasChoices("items", "条目"))
    note: str = ""


class Mark(pydantic.BaseModel):
    score: int


GOOD = '{"total": 36, "items": [{"score": 4}], "note": "a {brace} and \\"quotes\\", /* none */ // x ,]"}'
EXPECTED = Answer.model_validate_json(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```",
        f"```json {GOOD} ```",
        f'A draft: {{"total": 1}}\n```json\n{GOOD}\n```',
        f"```JSON\n{GOOD}",
        f"Here is my judgement.\n\n{GOOD}\n\nI hope that helps.",
        f'<think>Perhaps {{"total": 1}}? No.</think>\n{GOOD}',
        f'Perhaps {{"total": 1}}? No.</think>{GOOD}',
        f"<|channel|>analysis<|message|>{{}}<|end|><|channel|>final<|message|>{GOOD}",
        GOOD.replace("}]", "},]").replace("36,", "36 , // of 45\n"),
        GOOD.replace('"total": 36,', '"total"：36，'),
        GOOD.replace('"total"', '"Total"').replace('"score"', '"SCORE"'),
        GOOD.replace('"total"', '"总分"').replace('"items"', '"条目"').replace('"score"', '"得分"'),
        GOOD.replace("36", '"36/45"'),
        GOOD.replace("36", '" 36 / 45 "'),
        GOOD.replace("36", '"36.0"'),
        GOOD.replace("4}", "4.0}"),
        GOOD.replace("4}", '"4"}'),
        GOOD.replace("4}", '"4/5"}'),
        GOOD.replace("4}", '4, "met": 1}'),
        GOOD.replace("4}", '4, "met": "yes"}'),
        GOOD.replace("4}", '4, "half": "0"}'),
        f"{GOOD}\n{GOOD}",
        f"I weigh {{evidence}} first.\n{GOOD}",
    ],
    ids=lambda text: text[:24],
)
def test_an_answer_is_read_however_it_is_written(text: str) -> None:
    assert parse(text, Answer) == EXPECTED


def test_line_breaks_and_chinese_inside_strings_stay() -> None:
    answer = parse('{"total": 1, "items": [], "note": "第一，\n“好”：1/2"}', Answer)
    assert answer.note == "第一，\n“好”：1/2"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("I would give this 4 of 5.", "contains no JSON object"),
        ("", "empty"),
        (GOOD[:-20], "breaks off"),
        ('{"total": 36, "items": [{"score": 4}, {"sc', "breaks off"),
        ('```json\n{"total": 36, "items": [{"score": 4}]', "breaks off"),
        ("<think>Let me think about it. {", "empty"),
        (GOOD.replace("36", "46"), "total: .*less than or equal to 45"),
        (GOOD.replace("36", "-1"), "greater than or equal to 0"),
        (GOOD.replace("36", '"36/50"'), "total: .*36/50"),
        (GOOD.replace("36", "NaN"), "NaN is not a valid value"),
        (GOOD.replace("36", "Infinity"), "Infinity is not a valid value"),
        (GOOD.replace("36", "1e999"), "less than or equal to 45"),
        (GOOD.replace("36", '"high"'), "total"),
        (GOOD.replace("36", "null"), "total"),
        (GOOD.replace("36", "true"), "total"),
        (GOOD.replace("4}", "4.5}"), "items.0.score|items.0.得分"),
        (GOOD.replace("4}", '4, "half": 0.7}'), "half"),
        (GOOD.replace("4}", '4, "met": "perhaps"}'), "met"),
        (GOOD.replace('"total": 36, ', ""), "total: Field required"),
        (GOOD.replace('"note"', '"Total": 1, "note"'), "contains total twice"),
        (GOOD.replace('"note"', '"total": 1, "note"'), "twice, with different values"),
        (GOOD + GOOD.replace("36", "35"), "2 different answers"),
        ("[1, 2]", "contains no JSON object"),
        ('{"answer": ' + GOOD + "}", "total: Field required"),
        ("{'total': 36}", "not valid JSON"),
    ],
    ids=lambda value: value[:24],
)
def test_an_answer_that_is_none_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(UnreadableAnswer, match=why):
        read_answer(ChatAnswer(text), Answer)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ChatAnswer(None, refusal="I cannot judge people."), "refused: I cannot judge people"),
        (ChatAnswer(GOOD, refusal="I cannot judge people."), "refused"),
        (ChatAnswer(None, tools=("search",)), "called the tool search"),
        (ChatAnswer(None, finish="content_filter"), "content filter"),
        (ChatAnswer("{", finish="content_filter"), "content filter"),
        (ChatAnswer(None, finish="length"), "cut off"),
        (ChatAnswer(GOOD[:30], finish="length"), "cut off .* breaks off"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_what_the_backend_says_of_the_answer_is_part_of_the_reason(answer: ChatAnswer, why: str) -> None:
    with pytest.raises(UnreadableAnswer, match=why):
        read_answer(answer, Answer)


def test_an_answer_that_is_whole_counts_though_more_was_cut_off() -> None:
    assert read_answer(ChatAnswer(GOOD + "\n\n\n", finish="length"), Answer) == EXPECTED


@given(st.integers(min_value=0, max_value=len(GOOD) - 1))
def test_half_an_answer_is_never_an_answer(length: int) -> None:
    with pytest.raises(UnreadableAnswer):
        parse(GOOD[:length], Answer)


scores = st.integers(min_value=0, max_value=5)


@given(st.floats(0, 45), st.lists(scores, max_size=5), st.text(max_size=50))
def test_every_valid_answer_is_read_as_written(total: float, values: list[int], note: str) -> None:
    data = {"total": total, "items": [{"score": value} for value in values], "note": note}
    for text in (json.dumps(data), f"```json\n{json.dumps(data, ensure_ascii=False)}\n```"):
        found = parse(text, Answer)
        assert (found.total, [item.score for item in found.items], found.note) == (total, values, note)


@given(st.text(max_size=200))
def test_any_text_is_an_answer_or_a_sentence(text: str) -> None:
    with pytest.raises(UnreadableAnswer, match=r"."):
        parse(text + "{", Answer)


@pytest.mark.parametrize("note", ["<THINK>", "</THINK>", "<think>a</think>"])
def test_tags_of_thinking_inside_a_whole_answer_are_words(note: str) -> None:
    text = json.dumps({"total": 0.0, "items": [], "note": note})
    assert parse(text, Answer).note == note


def test_an_answer_of_thousands_of_objects_takes_time_by_its_length() -> None:
    began = time.process_time()
    with pytest.raises(UnreadableAnswer, match="give only one"):
        parse("".join(f'{{"score": {number}}}' for number in range(20_000)), Mark)
    assert time.process_time() - began < 2
    assert parse('{"score": 1} ' * 20_000, Mark).score == 1


@pytest.mark.parametrize("part", [{"type": "reasoning"}, {"type": "thinking"}, {"type": "text", "thought": True}])
def test_what_a_judge_thinks_in_a_part_of_its_own_is_no_answer(part: dict[str, object]) -> None:
    content = [{**part, "text": '{"score": 1}'}, {"type": "text", "text": '{"score": 4}'}]
    body = json.dumps({"choices": [{"message": {"content": content}}]})
    assert read_answer(read_completion(body, "text"), Mark).score == 4
    cut = json.dumps({"choices": [{"message": {"content": content[:1]}, "finish_reason": "length"}]})
    with pytest.raises(UnreadableAnswer, match="cut off"):
        read_answer(read_completion(cut, "text"), Mark)


@pytest.mark.parametrize("tags", ["[THINK] [/THINK]", "◁think▷ ◁/think▷", "<analysis> </analysis>"])
def test_thoughts_in_other_brackets_are_no_answer(tags: str) -> None:
    begin, end = tags.split()
    assert read_answer(ChatAnswer(f'{begin}{{"score": 1}}{end}{{"score": 4}}'), Mark).score == 4
    with pytest.raises(UnreadableAnswer):
        read_answer(ChatAnswer(f'{begin}perhaps {{"score": 1}}', finish="length"), Mark)
