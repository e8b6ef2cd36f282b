"""LFS-Bench constructed from nothing: written, refined, reviewed, made up for, finished, built; by a scripted model."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("datasets")

from podeval.benchmarks.lfs_bench import SCENARIOS
from podeval.construction.lfs import compute_statistics, read_published_cases
from podeval.construction.lfs_cases import BY_NAME, Case, CaseTurn, clean, parse_turns
from podeval.construction.lfs_refining import (
    Detail,
    Replacement,
    Softening,
    TextScreening,
    find_warnings,
    list_replacements,
    replace_words,
)
from podeval.datasets.build import build, verify
from podeval.errors import BadInput


class Writer:
    """What the model answers: topics with numbers, texts of the length that is ordered, plain judgements."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.topics = 0
        self.overall: dict[str, int] = {}
        self.screenings: dict[str, dict[str, Any]] = {}

    def __call__(self, question: str) -> Any:
        if found := re.match(r"Suggest exactly (\d+) topics", question):
            first = self.topics
            self.topics += int(found[1])
            return {"suggestions": [f"topic {n}" for n in range(first, self.topics)]}
        if found := re.search(r"About (\d+) (English|Chinese)", question):
            topic = self.model.material(question, "topic")
            several = re.search(r"exactly (\d) speakers", question)
            return self.text(topic, int(found[1]), found[2], int(several[1]) if several else 1)
        text = self.model.material(question, "text")
        topic = (re.search(r"topic \d+", text) or ["?"])[0]
        if question.startswith("Read this text"):
            return {"topics": [topic], "keywords": ["k"], "summary": f"It is about {topic}."}
        if question.startswith("Is this text worth"):
            overall = self.overall.get(topic, 4)
            return {"reasoning": "so so", "expressiveness": 3, "consistency": 3, "overall": overall}
        plain = {"reasoning": "nothing", "details": [], "softened": [], "harm": "none"}
        return plain | self.screenings.get(topic, {})

    def text(self, topic: str, length: int, language: str, speakers: int) -> dict[str, Any]:
        first = f"This is {topic}, as Karl Klein says." if language == "English" else f"这是{topic}，柯小林说的。"
        word = ("word " if language == "English" else "字") * (length // speakers)
        turns = [{"speaker": f"Speaker{n + 1}", "text": (first if n == 0 else "") + word} for n in range(speakers)]
        return {"content": turns, "summary": topic}


@pytest.fixture
def writer(model: Any, monkeypatch: pytest.MonkeyPatch) -> Writer:
    """The model's answers; sentences on one topic have one embedding, others are orthogonal."""

    def encode(texts: Any) -> Any:
        topics = [int(re.search(r"topic (\d+)", text)[1]) for text in texts]  # type: ignore[index]
        return np.eye(400)[topics]

    monkeypatch.setattr("podeval.construction.steps.make_encoder", lambda profile: encode)
    writer = Writer(model)
    model.answers.append(writer)
    return writer


def test_from_a_plan_to_a_built_dataset(
    tmp_path: Path, writer: Writer, podeval: Any, model: Any, rows: Any, edit: Any
) -> None:
    into, judge = tmp_path / "mine", ("--judge", model.name)
    chosen = ("--set", "each=2", "--set", "scenarios=lesson,chat,seminar")
    podeval("lfs_bench", "write", "--into", into, *chosen, *judge)
    orders, written = rows(into / "orders.jsonl"), rows(into / "written.jsonl")
    # Two of each: lesson for one speaker, chat for two, seminar for two and three; in both languages.
    assert len(orders) == len(written) == 2 * 4 * 2
    assert len({order["topic"] for order in orders}) == 16
    assert all(80 <= order["length"] <= 500 for order in orders)
    assert [case["num_speakers"] for case in written] == [order["speakers"] for order in orders]
    asked = len(model.asked)
    podeval("lfs_bench", "write", "--into", into, *chosen, *judge)
    assert (len(model.asked), rows(into / "written.jsonl")) == (asked, written)

    by_topic = {order["topic"]: order["id"] for order in orders}
    dull, severe, private, no = list(by_topic)[:4]
    # A private name is English in an English text, and occurs in it.
    private_id = by_topic[private]
    name = "Karl Klein" if "-en-" in private_id else "柯小林"
    stand_in = "Otto Brandt" if "-en-" in private_id else "李明华"
    writer.overall[dull] = 2
    writer.screenings[severe] = {"harm": "severe", "reasoning": "cannot be published"}
    details = [{"quote": name, "kind": "name", "public": False, "stand_in": stand_in}]
    writer.screenings[private] = {"details": details}
    done = podeval("lfs_bench", "refine", "--into", into, *judge)
    assert "quality: 15 kept, 1 left out" in done.output
    assert "review: 14 of 14 rows await a decision" in done.output
    assert {left["id"]: left["step"] for left in rows(into / "left_out.jsonl")} == {
        by_topic[dull]: "quality",
        by_topic[severe]: "privacy and safety",
    }
    with pytest.raises(BadInput, match="no case has been accepted yet"):
        raise podeval("lfs_bench", "finish", "--into", into, code=None).exception
    assert not (into / "finished").exists()

    edit(into / "review.csv", {by_topic[no]: {"keep": "no"}}, {"keep": "yes"})
    podeval("lfs_bench", "finish", "--into", into)
    assert sum(len(rows(into / "finished" / f"{part}_speaker.jsonl")) for part in ("mono", "two", "multi")) == 13
    text = "".join(path.read_text(encoding="utf-8") for path in (into / "finished").glob("*.jsonl"))
    (case,) = [case for case in read_published_cases(into / "finished") if case.theme == private]
    assert stand_in in case.text
    assert name not in case.text
    assert text.count("Karl Klein") + text.count("柯小林") == 12

    done = podeval("lfs_bench", "write", "--into", into, *chosen, *judge)
    assert "planned: 3 new rows and 16 earlier rows, 3 of which were removed" in done.output
    assert "written: 3 kept" in done.output
    done = podeval("lfs_bench", "refine", "--into", into, *judge)
    assert "review: 3 of 17 rows await a decision" in done.output
    # What somebody said no to stays out; the new ones wait until somebody decides.
    done = podeval("lfs_bench", "finish", "--into", into, code=1)
    assert "review: 13 kept, 1 left out, 3 waiting" in done.output
    podeval("lfs_bench", "finish", "--into", into, "--accept-all")
    found = json.loads((into / "finished" / "statistics.json").read_text(encoding="utf-8"))
    assert found["counts"]["scenario"] | {"chat": 4, "lesson": 4, "seminar": 8} == found["counts"]["scenario"]
    assert found["counts"]["language"] == {"English": 8, "Chinese": 8}

    build("lfs_bench", tmp_path / "built", source=str(into / "finished"), configs=("texts",), cache=tmp_path / "cache")
    assert list(verify(tmp_path / "built")) == []


def test_a_text_that_is_not_as_ordered_is_asked_for_again(tmp_path: Path, model: Any, podeval: Any, rows: Any) -> None:
    writer, tries = Writer(model), list[str]()

    def short_first(question: str) -> Any:
        if "About" in question:
            tries.append(question)
            if len(tries) == 1:
                return {"content": [{"speaker": "Speaker1", "text": "Too short."}], "summary": "s"}
        return writer(question)

    model.answers.append(short_first)
    only = ("--set", "scenarios=speech", "--set", "languages=english", "--judge", model.name)
    podeval("lfs_bench", "write", "--into", tmp_path, *only)
    assert len(tries) == 2
    (case,) = rows(tmp_path / "written.jsonl")
    (order,) = rows(tmp_path / "orders.jsonl")
    assert order["length"] * 0.9 < len(case["content"][0]["text"].split()) < order["length"] * 1.2


def test_a_case_that_is_not_written_waits_and_is_named(tmp_path: Path, model: Any, podeval: Any, rows: Any) -> None:
    writer = Writer(model)
    model.answers.append(lambda question: "I would rather not." if "About" in question else writer(question))
    only = ("--set", "scenarios=speech", "--set", "languages=english", "--judge", model.name)
    done = podeval("lfs_bench", "write", "--into", tmp_path, *only, code=1)
    assert "speech-en-0001 is waiting: the judge gave no usable answer in 3 tries" in done.output
    assert rows(tmp_path / "written.jsonl") == []
    assert len(rows(tmp_path / "orders.jsonl")) == 1
    model.answers[-1] = writer
    before = len(model.asked)
    podeval("lfs_bench", "write", "--into", tmp_path, *only)
    assert [row["id"] for row in rows(tmp_path / "written.jsonl")] == ["speech-en-0001"]
    assert len(model.asked) == before + 1, "the judge is mended, and the same command asks it again; topics are there"


def test_what_stopped_on_the_way_goes_on_and_asks_nothing_twice(
    tmp_path: Path, writer: Writer, podeval: Any, model: Any, rows: Any
) -> None:
    """A budget that is used up stops a step as a kill does: what was answered is recorded, the rest waits."""
    arguments = ("--into", tmp_path, "--set", "each=3", "--set", "scenarios=news", "--judge", model.name)
    model.usage = {"prompt_tokens": 2000, "completion_tokens": 10, "total_tokens": 2010}
    capped = ("--workers", 1, "--most-tokens", 9000)
    done = podeval("lfs_bench", "write", *arguments, *capped, code=1)
    assert "the budget is used up" in done.output
    assert len(rows(tmp_path / "orders.jsonl")) == 6
    assert 0 < len(rows(tmp_path / "written.jsonl")) < 6
    podeval("lfs_bench", "write", *arguments)
    assert [row["id"] for row in rows(tmp_path / "written.jsonl")] == [
        row["id"] for row in rows(tmp_path / "orders.jsonl")
    ]
    done = podeval("lfs_bench", "refine", "--into", tmp_path, "--judge", model.name, *capped, code=1)
    assert re.search(r"digested: [1-5] kept, [1-5] waiting", done.output)
    podeval("lfs_bench", "refine", "--into", tmp_path, "--judge", model.name)
    assert len(rows(tmp_path / "refined.jsonl")) == 6
    assert len(set(model.asked)) == len(model.asked)


def test_ones_own_texts(tmp_path: Path, writer: Writer, podeval: Any, model: Any, rows: Any) -> None:
    only = ("--set", "scenarios=speech", "--set", "languages=english", "--judge", model.name)
    podeval("lfs_bench", "write", "--into", tmp_path / "m", *only)
    mine = {"content": [{"speaker": "A", "text": "See https://x.org/a it is topic 0 too 🙂."}], "theme": "t"}
    mine |= {"source": "my novel", "scene": "speech", "language": "english", "num_speakers": 7}
    (tmp_path / "own.jsonl").write_text(json.dumps(mine) + "\n", encoding="utf-8")
    podeval("lfs_bench", "take", tmp_path / "own.jsonl", "--into", tmp_path / "m")
    (taken,) = rows(tmp_path / "m" / "taken.jsonl")
    assert taken["id"] == "own-0001"
    assert taken["content"] == [{"speaker": "A", "text": "See it is topic 0 too ."}]
    assert taken["num_speakers"] == 1
    podeval("lfs_bench", "refine", "--into", tmp_path / "m", "--judge", model.name)
    # The earlier one stays: what was taken comes before what was written.
    (left,) = rows(tmp_path / "m" / "left_out.jsonl")
    assert (left["id"], left["step"]) == ("speech-en-0001", "de-duplication")
    assert left["reason"] == "similar to own-0001, cosine 1.000"


def test_every_scenario_has_a_template() -> None:
    assert BY_NAME.keys() == SCENARIOS.keys()


def case(*turns: str, language: str = "english") -> Case:
    content = tuple(CaseTurn(speaker=f"Speaker{n}", text=text) for n, text in enumerate(turns, 1))
    facts: dict[str, Any] = {"theme": "", "source": "", "scene": "chat", "language": language}
    return Case(id="c", content=content, num_speakers=len(turns), **facts)


def test_private_names_go_everywhere_and_public_ones_stay() -> None:
    talk = case("Ann Lee met Obama. Ann laughed; Annabel did not.", "Hello Ann Lee!")
    details = [
        Detail(quote="Ann Lee", kind="name", public=False, stand_in="Eve Fox"),
        Detail(quote="Ann", kind="name", public=False, stand_in="Eve"),
        Detail(quote="Obama", kind="name", public=True, stand_in=""),
    ]
    screening = TextScreening(reasoning="", details=details, softened=[], harm="none")
    found = replace_words(talk, list_replacements(screening))
    assert [turn.text for turn in found.content] == [
        "Eve Fox met Obama. Eve laughed; Annabel did not.",
        "Hello Eve Fox!",
    ]


def test_chinese_names_need_no_gaps() -> None:
    found = replace_words(case("我见到王小明了。", language="chinese"), [Replacement(was="王小明", now="李四", why="")])
    assert found.text == "我见到李四了。"


def test_patterns_of_personal_data_are_pointed_at_whatever_the_judge_finds() -> None:
    talk = case("Write to ann@x.org or call +44 20 7946 0958. It costs 1,234.56 and began in 1999.")
    softened = [Softening(quote="x", replacement="y")]
    found = find_warnings(talk, TextScreening(reasoning="rude", details=[], softened=softened, harm="minor"))
    assert found == [
        "looks like an e-mail: ann@x.org",
        "looks like a phone number: +44 20 7946 0958",
        "minor harm: rude",
    ]


def test_a_quote_that_is_not_in_the_text_is_asked_for_again(
    tmp_path: Path, writer: Writer, podeval: Any, model: Any, rows: Any
) -> None:
    details = [{"quote": "Nobody Here", "kind": "name", "public": False, "stand_in": "X"}]
    podeval("lfs_bench", "write", "--into", tmp_path, "--set", "scenarios=speech",
            "--set", "languages=english", "--judge", model.name)  # fmt: skip
    writer.screenings["topic 0"] = {"details": details}
    done = podeval("lfs_bench", "refine", "--into", tmp_path, "--judge", model.name, code=1)
    assert "'Nobody Here' does not occur in any turn of the text" in done.output
    assert rows(tmp_path / "refined.jsonl") == []


def test_texts_are_cleaned_and_corrected_lines_are_read() -> None:
    assert clean("A\u200b b 🙂 http://x.y/z，好\n\ufffdthe end") == "A b ，好 the end"
    assert parse_turns("[A] Hi.\n\n[B b] Oh [really]?\n") == [
        CaseTurn(speaker="A", text="Hi."),
        CaseTurn(speaker="B b", text="Oh [really]?"),
    ]
    with pytest.raises(BadInput, match="line 2 is 'no speaker'"):
        parse_turns("[A] Hi.\nno speaker")


@pytest.mark.long
def test_the_published_texts_have_the_papers_statistics(shared_data: Path) -> None:
    """LFS-Bench, appendix B: 50.7 % English, means of 174.6 words and 271.8 characters, over 1,101 texts; 1,059 are
    published."""
    found = compute_statistics(read_published_cases(shared_data / "lfs_swanbench"))
    assert (found["cases"], found["counts"]["speakers"]["multi"]) == (1059, 101)
    assert found["counts"]["language"]["English"] / 1059 == pytest.approx(0.507, abs=0.02)
    assert found["lengths"]["English"]["mean"] == pytest.approx(174.6, rel=0.02)
    assert found["lengths"]["Chinese"]["mean"] == pytest.approx(271.8, rel=0.02)
    assert found["counts"]["challenge"]["acoustics"] / 1059 == pytest.approx(0.345, abs=0.06)


@pytest.mark.long
@pytest.mark.models
def test_real_embeddings_tell_the_same_matter_from_another() -> None:
    """all-MiniLM-L6-v2, the paper's encoder."""
    from podeval.construction.steps import make_encoder
    from podeval.construction.workshop import find_near_duplicates

    texts = [
        "Bicycle maintenance. chain, oil, wear. How a bicycle chain wears out and when to replace it.",
        "History of tea. China, trade, ceremony. How tea came from China to Europe.",
        "Bike upkeep. chain, oil, wear. When to replace a worn chain on a bicycle and how it wears out.",
    ]
    assert {row: of for row, (of, _) in find_near_duplicates(make_encoder("embedded")(texts)).items()} == {2: 0}
