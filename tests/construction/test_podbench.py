"""PodBench constructed from documents: clustered by query, requests over the dimensions, filtered, reviewed, built."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("datasets")

from podeval.construction.podbench import make_generation_prompt, make_token_counter
from podeval.construction.podbench_requests import (
    DIMENSIONS,
    Asking,
    cluster_documents,
    draw_dimensions,
    read_documents,
)
from podeval.datasets import catalogue, podbench_meta
from podeval.datasets.build import build, read_stored_rows, verify
from podeval.errors import BadInput, ModelMissing
from podeval.text.script_format import read_any_script
from podeval.text.tokens import detect_language

TOPICS = ("tea", "chess", "rivers")


class User:
    """What the model answers; requests name what they are told to."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.verdicts: dict[str, dict[str, bool]] = {}
        self.forget: set[str] = set()

    def __call__(self, question: str) -> Any:
        if question.startswith("Here is a document"):
            text = self.model.material(question, "document")
            topic = next((topic for topic in TOPICS if topic in text), "tea")
            return {"query": f"all about {topic}", "domain": "Leisure"}
        material = self.model.material(question, "materials")
        if question.startswith("The materials"):
            instruction = self.model.material(question, "instruction")
            plain = {"harmful": False, "related": True, "sensible": True, "reasoning": "it is fine"}
            topic = next(topic for topic in TOPICS if topic in instruction)
            return plain | self.verdicts.get(topic, {})
        asked = re.findall(r"^- (\w+): ", question, re.MULTILINE)
        topic = next(topic for topic in TOPICS if topic in material)
        values = {"speaker_number": "3", "podcast_language": "English"}
        spoken = "请做一期播客，谈谈" if "in Chinese" in question else "Make a podcast on "
        named = [{"dimension": d, "value": values.get(d, f"{d} of {topic}")} for d in asked]
        return {"instruction": f"{spoken}{topic}", "requirements": named}


@pytest.fixture
def user(model: Any, monkeypatch: pytest.MonkeyPatch) -> User:
    def encode(texts: Any) -> Any:
        rows = [[float(topic in text) for topic in TOPICS] for text in texts]
        return np.asarray(rows) + 0.05 * np.random.default_rng(len(rows)).normal(size=(len(rows), 3))

    monkeypatch.setattr("podeval.construction.steps.make_encoder", lambda profile: encode)
    user = User(model)
    model.answers.append(user)
    return user


@pytest.fixture
def documents(tmp_path: Path) -> list[Path]:
    """Two texts on tea, one on chess, one on rivers, one in Chinese."""
    folder = tmp_path / "documents"
    folder.mkdir()
    lines = [
        {"id": "tea-1", "text": "How tea is grown.", "licence": "CC BY 4.0"},
        {"id": "chess", "text": "Openings of chess."},
        {"id": "tea-2", "text": "How tea is poured."},
        {"id": "zh", "text": "关于 tea 的文章，茶叶来自中国南方的山区，历史很长。"},
    ]
    (folder / "some.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "rivers.txt").write_text("Where rivers end.\n", encoding="utf-8")
    return [folder / "some.jsonl", folder / "rivers.txt"]


def test_from_documents_to_a_built_dataset(
    tmp_path: Path, documents: list[Path], user: User, podeval: Any, model: Any, rows: Any, edit: Any
) -> None:
    into, judge = tmp_path / "mine", ("--judge", model.name)
    done = podeval("podbench", "take", *documents, "--into", into)
    assert "5 documents (4 en, 1 zh)" in done.output
    assert "4 documents state no licence" in done.output
    podeval("podbench", "cluster", "--into", into, *judge)
    clusters = rows(into / "clusters.jsonl")
    assert [one["documents"] for one in clusters] == [["tea-1", "tea-2"], ["chess"], ["zh"], ["rivers"]]
    user.verdicts["chess"] = {"harmful": True}
    done = podeval("podbench", "write", "--into", into, *judge)
    assert "filtering: 3 kept, 1 left out" in done.output
    asked = len(model.asked)
    podeval("podbench", "write", "--into", into, *judge)
    assert len(model.asked) == asked
    (left,) = rows(into / "left_out.jsonl")
    assert (left["id"], left["step"], left["reason"]) == ("chess", "filtering", "harmful: it is fine")
    for request in rows(into / "filtered.jsonl"):
        named = tuple(requirement["dimension"] for requirement in request["requirements"])
        assert set(named) == set(draw_dimensions(request["cluster"]["id"]))

    with pytest.raises(BadInput, match="no request has been accepted yet"):
        raise podeval("podbench", "finish", "--into", into, code=None).exception
    corrected = "Make a podcast on tea, please, with two voices."
    cells = {"keep": "yes", "instruction (edit)": corrected, "requirements (edit)": "speaker_number: 2"}
    edit(into / "review.csv", {"tea-1": cells, "rivers": {"keep": "no"}})
    done = podeval("podbench", "finish", "--into", into, code=1)
    assert "review: 1 kept, 1 left out, 1 waiting" in done.output
    podeval("podbench", "finish", "--into", into, "--accept-all")

    build("podbench", tmp_path / "built", source=str(into / "finished"), cache=tmp_path / "cache")
    assert list(verify(tmp_path / "built")) == []
    (file,) = (tmp_path / "built" / "instructions").glob("*.parquet")
    found = {row["id"]: dict(row) for row in read_stored_rows(catalogue.get("podbench"), "instructions", [file])}
    assert list(found) == ["tea-1", "zh"]
    tea = found["tea-1"]
    assert tea["instruction"] == corrected
    assert tea["sources"] == ["How tea is grown.", "How tea is poured."]
    assert (tea["speakers"], tea["speakers_bucket"]) == (2, tea["speakers_bucket"])
    assert [(d["dimension"], d["value"]) for d in tea["dimensions"]] == [("speaker_number", "2")]
    assert corrected in tea["input_prompt"]
    assert "How tea is poured." in tea["input_prompt"]
    assert tea["domain"] == "leisure"
    counts = json.loads((into / "finished" / "statistics.json").read_text(encoding="utf-8"))["counts"]
    assert counts["language"] == {"chinese": 1, "english": 1}
    assert counts["documents"] == {"1": 1, "2": 1}
    # Nothing that was written is not understood by the builder.
    understood = [note for row in found.values() for note in row["notes"] if "is not read" not in note]
    assert all(note.startswith("speakers: meta does not say how many") for note in understood)


def test_a_request_that_names_other_dimensions_is_asked_for_again(
    tmp_path: Path, documents: list[Path], user: User, podeval: Any, model: Any, rows: Any
) -> None:
    missed = list[str]()

    def forgetful(question: str) -> Any:
        found = user(question)
        if "requirements" in found and len(missed) < 1:
            missed.append(question)
            found["requirements"] = []
        return found

    model.answers[:] = [forgetful]
    podeval("podbench", "take", documents[1], "--into", tmp_path / "m")
    podeval("podbench", "cluster", "--into", tmp_path / "m", "--judge", model.name)
    podeval("podbench", "write", "--into", tmp_path / "m", "--judge", model.name)
    (request,) = rows(tmp_path / "m" / "filtered.jsonl")
    assert request["requirements"]
    assert len([question for question in model.asked if "These are your materials" in question]) == 2


def test_dimensions_are_the_papers_and_drawn_in_all_numbers() -> None:
    assert set(DIMENSIONS) == {name for name, of in podbench_meta.read_facts()["dimensions"].items() if of["paper"]}
    drawn = [draw_dimensions(f"cluster-{number}") for number in range(400)]
    assert {len(one) for one in drawn} == set(range(1, 9))
    assert all(0.4 < sum(name in one for one in drawn) / 400 < 0.75 for name in DIMENSIONS)
    assert draw_dimensions("cluster-1") == draw_dimensions("cluster-1")
    assert draw_dimensions("cluster-1", seed=1) != draw_dimensions("cluster-1", seed=2)


def made(vectors: Any, **options: Any) -> list[tuple[str, ...]]:
    names = [f"d{n}" for n in range(len(vectors))]
    queries = [Asking(id=name, text="t", language="en", query="q", domain="d") for name in names]
    return [c.documents for c in cluster_documents(queries, lambda _: np.asarray(vectors, float), **options)]


def test_every_document_is_in_one_cluster_no_larger_than_the_most() -> None:
    draws = np.random.default_rng(1)
    vectors = np.repeat(np.eye(6), 20, axis=0) + 0.1 * draws.normal(size=(120, 6))
    found = made(vectors, most=7)
    assert sorted(name for cluster in found for name in cluster) == sorted(f"d{n}" for n in range(120))
    assert max(map(len, found)) <= 7
    # Nobody is with documents on another topic.
    assert all(len({int(name[1:]) // 20 for name in cluster}) == 1 for cluster in found)


def test_documents_that_are_all_the_same_are_cut_in_order() -> None:
    found = made([[1.0, 0.0]] * 5, most=2)
    assert sorted(map(len, found)) == [1, 2, 2]


def test_how_alike_decides() -> None:
    at = np.radians([0, 20, 80])
    vectors = np.stack([np.cos(at), np.sin(at)], axis=1)
    assert made(vectors, alike=0.5) == [("d0", "d1"), ("d2",)]
    assert made(vectors, alike=0.3) == [("d0", "d1", "d2")]
    assert made(vectors, alike=0.95) == [("d0",), ("d1",), ("d2",)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ('{"text": ""}\n', "document 1 has no text"),
        ("{]\n", "line 1 is not JSON"),
        ("[1]\n", "line 1 is a list, not an object"),
    ],
)
def test_documents_that_are_none_are_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "d.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=sentence):
        read_documents([tmp_path / "d.jsonl"])


def test_tokens_are_counted_by_ones_own_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    word_level = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1, "?": 2}, unk_token="?"))
    word_level.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    word_level.save(str(tmp_path / "tokenizer.json"))
    assert make_token_counter(tmp_path / "tokenizer.json")("a b c a") == 4
    with pytest.raises(BadInput, match=r"is not a readable tokenizer\.json"):
        make_token_counter(tmp_path / "other.json")


def test_without_its_extra_the_command_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ModelMissing, match=r"pip install 'podeval\[construction\]'"):
        make_token_counter(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_everything_given_stands_in_the_prompt(language: str) -> None:
    prompt = make_generation_prompt(
        "On $5 bread & ${yeast}", ["Yeast eats sugar.", "Gluten holds gas."], language=language, speakers=2
    )
    for part in ("On $5 bread & ${yeast}", "Yeast eats sugar.", "Gluten holds gas.", "300", "150"):
        assert part in prompt
    assert not re.search(r"\$[a-z]", prompt.replace("${yeast}", ""))
    assert detect_language(prompt) == language


@pytest.mark.parametrize(("language", "words"), [("en", "Bread is alive."), ("zh", "面包是活的。")])
@pytest.mark.parametrize("speakers", [1, 2])
def test_the_form_it_shows_is_read_as_that_many_speakers(language: str, words: str, speakers: int) -> None:
    prompt = make_generation_prompt("Bread", [], language=language, speakers=speakers)
    shown = [line for line in prompt.splitlines() if line.endswith("…")]
    script = "\n".join(line.replace("…", words) for line in shown)
    assert len(shown) == speakers
    assert len(read_any_script(script).speakers) == speakers
