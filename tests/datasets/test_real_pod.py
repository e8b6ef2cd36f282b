"""Real-Pod: the benchmark's own topics, scripts and voices as a dataset, and rows of what is said in recordings."""

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import soundfile

datasets = pytest.importorskip("datasets")

from podeval.benchmarks.real_pod import BENCHMARK, CATEGORIES  # noqa: E402
from podeval.benchmarks.real_pod_splits import SPLITS  # noqa: E402
from podeval.datasets import catalogue  # noqa: E402
from podeval.datasets.build import build, read_lock, verify  # noqa: E402
from podeval.datasets.dataset_record import BrokenRules  # noqa: E402
from podeval.datasets.push import push  # noqa: E402
from podeval.errors import BadInput, ModelMissing  # noqa: E402
from podeval.models import registry  # noqa: E402
from podeval.models.interfaces import SpeakerTurn, Transcript, Word  # noqa: E402
from podeval.recording import recording  # noqa: E402
from podeval.recording.cache import Cache  # noqa: E402
from podeval.systems.espeak_ng import EspeakNg  # noqa: E402
from podeval.text.script import Script  # noqa: E402

RATE = 16_000


def made(tmp_path: Path, **options: Any) -> Path:
    build("real_pod", tmp_path / "out", cache=tmp_path / "cache", **options)
    assert list(verify(tmp_path / "out")) == []
    return tmp_path / "out"


def read(folder: Path, config: str, **options: Any) -> Any:
    return datasets.load_dataset(str(folder), config, split="test", cache_dir=str(folder.parent / "hf"), **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of the dataset, for tests that read it."""
    return made(tmp_path_factory.mktemp("real_pod"))


@pytest.mark.parametrize("streaming", [False, True])
def test_the_benchmarks_items_are_rows(whole: Path, streaming: bool) -> None:
    topics, demo = (list(read(whole, config, streaming=streaming)) for config in ("topics", "demo"))
    for row, item in zip(topics, BENCHMARK.items("topics"), strict=True):
        assert item.episode
        assert (row["id"], row["topic"], row["voices"]) == (item.id, item.topic, item.voices)
        assert (row["episode_title"], row["episode_link"]) == (item.episode.title, item.episode.link)
        assert CATEGORIES[row["category"]] == item.category
    for row, item in zip(demo, BENCHMARK.items("demo"), strict=True):
        assert Script.parse(row["turns"]) == item.script
    assert [row["topic_id"] for row in topics] == list(range(1, 52))
    assert [row["country"] for row in topics] == ["us"] * 27 + ["hk"] * 24
    assert topics[0]["show"] == 1332504968
    assert topics[0]["episode"] == 1000698848884
    lock = read_lock(whole)
    assert (lock["sample"], lock["source"]["pinned"], list(lock["configs"])) == (
        False,
        True,
        [
            *("topics", "scripts", "sources", "voices", "demo"),
            "spontaneous",
            *(split.name for split in SPLITS),
        ],
    )


@pytest.mark.parametrize("streaming", [False, True])
def test_scripts_and_voices_are_what_the_voice_track_speaks(whole: Path, streaming: bool) -> None:
    scripts = list(read(whole, "scripts", streaming=streaming))
    voices = read(whole, "voices", streaming=streaming).cast_column("audio", datasets.Audio(decode=False))
    recordings = {row["id"]: row["audio"]["bytes"] for row in voices}
    assert len(scripts) == 51
    for row, item in zip(scripts, BENCHMARK.items("topics"), strict=True):
        assert (row["id"], row["topic"], row["voices"]) == (item.id, item.topic, item.voices)
        assert Script.parse([(turn["speaker"], turn["text"]) for turn in row["turns"]]) == item.script
        given = {speaker["name"]: recordings[speaker["voice"]] for speaker in row["speakers"]}
        assert given == {name: voice.recording().read_bytes() for name, voice in item.reference_voices.items()}
        assert item.script
        assert row["words"] == len(item.script.text.split())


def test_spontaneous_shows_are_rows_that_say_which_turns_begin_early(whole: Path) -> None:
    for config in ("spontaneous", "zh_spontaneous"):
        rows = list(read(whole, config))
        for row, item in zip(rows, BENCHMARK.items(config), strict=True):
            assert Script.parse([(turn["speaker"], turn["text"]) for turn in row["turns"]]) == item.script
            assert (row["id"], row["voices"]) == (item.id, item.voices)
            for last, turn in pairwise(row["turns"]):
                assert last["text"].endswith(turn["overlap"])
        assert sum(bool(turn["overlap"]) for row in rows for turn in row["turns"]) > 0.8 * len(rows)


def test_what_scripts_claim_has_its_sources_in_a_config_apart(whole: Path) -> None:
    scripts, every = (list(read(whole, config)) for config in ("scripts", "sources"))
    claims = [row for row in every if row["split"] == "topics"]
    assert len(every) == 134
    assert [row["id"] for row in claims] == [row["id"] for row in scripts]
    for row, script in zip(claims, scripts, strict=True):
        assert [turn["text"] for turn in row["turns"]] == [turn["text"] for turn in script["turns"]]
    claimed = {row["id"]: [one for turn in row["turns"] for one in turn["claims"]] for row in claims}
    assert claimed["Society_and_Culture_1"][1]["source"].startswith("Granovetter, The Strength of Weak Ties")
    assert sum(map(len, claimed.values())) > 250
    # Nothing else that is published holds them.
    published = json.dumps([list(read(whole, config)) for config in ("topics", "scripts", "demo")])
    sources = {one["source"] for claims_of_one in claimed.values() for one in claims_of_one} - {"invented"}
    assert not [source for source in sources if source in published]


def test_the_sample_is_an_excerpt_and_says_so(tmp_path: Path) -> None:
    sample = made(tmp_path, source="sample")
    assert read_lock(sample)["sample"]
    assert "sample written by podeval" in (sample / "README.md").read_text("utf-8")
    assert [row["id"] for row in read(sample, "topics")] == [item.id for item in BENCHMARK.items("topics")[:2]]
    assert [speaker["name"] for speaker in list(read(sample, "scripts"))[1]["speakers"]] == ["Agnes", "Tariq", "Harold"]
    assert "voices" not in read_lock(sample)["configs"]
    (script,) = read(sample, "demo")
    assert Script.parse(script["turns"]) == BENCHMARK.items("demo")[0].script


def damaged(folder: Path, **items: list[dict[str, Any]]) -> Path:
    """A folder with the package's files, and these items instead of theirs."""
    folder.mkdir()
    for name in ("topics", "demo"):
        (folder / f"real_pod_{name}.json").write_text(json.dumps({"items": items.get(name, [])}), encoding="utf-8")
    lines = (json.dumps(script) + "\n" for script in items.get("scripts", []))
    (folder / "real_pod_scripts.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def two_scripts() -> list[dict[str, Any]]:
    """The sample's."""
    lines = (catalogue.locate_folder("real_pod") / "sample/real_pod_scripts.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def sample_items(name: str) -> list[dict[str, Any]]:
    """The sample's topics, or its scripts of the demo."""
    text = (catalogue.locate_folder("real_pod") / f"sample/real_pod_{name}.json").read_text("utf-8")
    found: list[dict[str, Any]] = json.loads(text)["items"]
    return found


def with_turn(script: dict[str, Any], number: int, **changes: str) -> dict[str, Any]:
    turns = [turn | changes if place == number else turn for place, turn in enumerate(script["turns"])]
    return script | {"turns": turns}


def swapped(script: dict[str, Any], **changes: str) -> dict[str, Any]:
    """The script with other things said of its first speaker."""
    return script | {"speakers": [script["speakers"][0] | changes, *script["speakers"][1:]]}


@pytest.mark.parametrize(
    ("broken", "rule", "told"),
    [
        (
            lambda s: with_turn(s, 0, speaker="Nobody"),
            "speakers",
            "the speakers are Dee, Nkechi, but the turns are by Dee, Nkechi, Nobody",
        ),
        (lambda s: swapped(s, role="guest"), "speakers", "exactly one of the speakers must be the host"),
        (
            lambda s: swapped(s, voice=s["speakers"][1]["voice"]),
            "speakers",
            "two speakers have the voice libritts_r_",
        ),
        (lambda s: s | {"turns": s["turns"][:7]}, "turns", "7 turns, not 8 to 44"),
        (lambda s: with_turn(s, 1, speaker="Dee"), "turns", "turns 1 and 2 are both by Dee"),
        (lambda s: with_turn(s, 0, text="Yes. " * 101), "length", "turn 1 has 101 words, not 1 to 100"),
        (lambda s: with_turn(s, 2, text="In 1973, true."), "readable", "turn 3 has '1'; write it out"),
        (lambda s: with_turn(s, 18, text=""), "turns.words", "turn 19 lacks its speaker or its words"),
    ],
)
def test_a_script_that_breaks_a_rule_is_told_by_it(tmp_path: Path, broken: Any, rule: str, told: str) -> None:
    first, second = two_scripts()
    source = damaged(tmp_path / "mine", topics=sample_items("topics"), scripts=[second, broken(first)])
    with pytest.raises(BrokenRules) as found:
        build("real_pod", tmp_path / "out", source=str(source), configs=["scripts"], cache=tmp_path / "cache")
    problems = [problem for problem in found.value.problems if problem.rule == rule]
    assert [(problem.row, problem.id) for problem in problems] == [(1, first["id"])]
    assert told in problems[0].sentence


def test_a_year_or_a_name_without_a_source_is_refused(tmp_path: Path) -> None:
    first, second = two_scripts()
    kept = [source for source in first["sources"] if source["turn"] != 4]
    source = damaged(tmp_path / "mine", topics=sample_items("topics"), scripts=[first | {"sources": kept}, second])
    with pytest.raises(BrokenRules) as found:
        build("real_pod", tmp_path / "out", source=str(source), configs=["sources"], cache=tmp_path / "cache")
    assert [(problem.id, problem.rule, problem.sentence) for problem in found.value.problems] == [
        (first["id"], "sources", "turn 4 says 'nineteen seventy' without a source")
    ]


def test_a_script_of_no_topic_is_refused(tmp_path: Path) -> None:
    source = damaged(tmp_path / "mine", scripts=two_scripts()[:1])
    with pytest.raises(BrokenRules, match="rule text: topic should be text"):
        build("real_pod", tmp_path / "out", source=str(source), configs=["scripts"], cache=tmp_path / "cache")


def test_scripts_and_topics_of_ones_own_make_the_dataset_without_the_voices(tmp_path: Path) -> None:
    source = damaged(tmp_path / "mine", topics=sample_items("topics"), scripts=two_scripts())
    lock = read_lock(made(tmp_path, source=str(source)))
    assert (lock["source"]["name"], lock["source"]["pinned"]) == ("own", False)
    assert {name: made["test"]["rows"] for name, made in lock["configs"].items()} == {
        "topics": 2,
        "scripts": 2,
        "sources": 2,
        "demo": 0,
    }


def test_every_wrong_row_is_named_by_its_rule_and_nothing_is_written(tmp_path: Path) -> None:
    topic, script = sample_items("topics")[0], sample_items("demo")[0]
    source = damaged(
        tmp_path / "mine",
        topics=[
            topic,
            topic,
            topic | {"id": "a_2", "category": "Cooking"},
            topic | {"id": "a_3", "topic": 3},
            topic | {"id": "a_4", "voices": "two"},
            topic | {"id": "a_5", "episode": {"title": "A", "link": "https://example.org"}},
            topic | {"id": "a", "language": "fr"},
            {"id": "a_7"},
        ],
        demo=[
            script | {"id": "b_0", "script": []},
            script | {"id": "b_1", "script": [{"speaker": "A", "text": " "}]},
            script | {"id": "b_2", "voices": 3},
            script | {"id": "b_3", "script": [{"text": "Hm."}, "Hm."]},
        ],
    )
    with pytest.raises(BrokenRules) as broken:
        build("real_pod", tmp_path / "out", source=str(source), cache=tmp_path / "cache")
    found = {(p.config, p.row, p.rule) for p in broken.value.problems}
    assert found >= {
        ("topics", 1, "id"),
        ("topics", 2, "category.known"),
        ("topics", 3, "text"),
        ("topics", 4, "voices.range"),
        ("topics", 5, "episode_link.form"),
        ("topics", 6, "topic_id.range"),
        ("topics", 6, "language.known"),
        ("topics", 7, "text"),
        ("demo", 0, "present"),
        ("demo", 1, "turns.words"),
        ("demo", 2, "turns.words"),
        ("demo", 3, "turns.words"),
    }
    assert ("topics", 0) not in {place[:2] for place in found}
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_none_of_its_kind_is_a_sentence(tmp_path: Path) -> None:
    source = damaged(tmp_path / "mine")
    (source / "real_pod_topics.json").write_text("[1, 2]")
    with pytest.raises(BadInput, match="contains no items"):
        build("real_pod", tmp_path / "out", source=str(source), cache=tmp_path / "cache")


WORDS = (Word("Good", 0.1, 0.4), Word("evening.", 0.4, 1.0), Word("Hello!", 1.3, 1.9), Word("And", 2.2, 2.4))
TURNS = (SpeakerTurn("A", 0.0, 1.1), SpeakerTurn("B", 1.2, 2.0), SpeakerTurn("A", 2.1, 2.6))


@pytest.fixture
def heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Models that hear the same in every recording, which can be changed; a cache of its own."""
    answers: dict[str, Any] = {"words": WORDS, "turns": TURNS, "languages": []}

    def transcribe(samples: Any, language: str | None) -> Transcript:
        answers["languages"].append(language)
        return Transcript(" ".join(word.text for word in answers["words"]), language or "en", answers["words"])

    model = SimpleNamespace(
        transcribe=transcribe, detect_language=lambda _: "en", diarize=lambda samples: answers["turns"]
    )
    monkeypatch.setattr(registry, "load", lambda job, profile: model)
    monkeypatch.setattr(recording, "open_default_cache", lambda: Cache(tmp_path / "facts"))
    return answers


def sound(path: Path, seconds: float = 3.0, seed: int = 0) -> Path:
    path.parent.mkdir(exist_ok=True)
    samples = np.random.default_rng(seed).uniform(-0.1, 0.1, round(RATE * seconds))
    soundfile.write(path, samples, RATE, format="FLAC")
    return path


def attempt(folder: Path, **facts: Any) -> None:
    line = {"id": "Arts_19", "link": "https://…", "checked": "2026-01-01", "status": "found"} | facts
    with (folder / "episodes.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def test_a_folder_of_recordings_is_texts_times_and_clips_but_no_audio(tmp_path: Path, heard: dict[str, Any]) -> None:
    folder = sound(tmp_path / "mine" / "Arts_19.flac").parent
    sound(folder / "own talk.bin", seed=1)
    (folder / "notes.txt").write_text("not audio")
    (folder / ".fetching").mkdir()
    sound(folder / ".fetching" / "part.flac")
    out = made(tmp_path, source=str(folder))
    fetched, own = read(out, "episodes")
    assert (fetched["id"], fetched["topic_id"], own["id"], own["topic_id"]) == ("Arts_19", 19, "own talk", None)
    assert fetched["duration"] == 3.0
    assert fetched["turns"] == [
        {"speaker": "A", "start": 0.1, "end": 1.0, "text": "Good evening."},
        {"speaker": "B", "start": 1.3, "end": 1.9, "text": "Hello!"},
        {"speaker": "A", "start": 2.2, "end": 2.4, "text": "And"},
    ]
    assert [clip["time_range"] for clip in fetched["clips"]] == [{"start": 0.1, "end": 1.9}, {"start": 1.3, "end": 2.4}]
    assert fetched["clips"][0]["text"] == fetched["transcript"].removesuffix(" And")
    assert fetched["transcriber"] == registry.get_card("transcriber", "embedded").id
    assert set(heard["languages"]) == {"en", None}
    assert not any(isinstance(column, datasets.Audio) for column in read(out, "episodes").features.values())
    assert sum(path.stat().st_size for path in out.rglob("*.parquet")) < (folder / "Arts_19.flac").stat().st_size
    assert read_lock(out)["source"]["name"] == "episodes"
    assert list(read_lock(out)["configs"]) == ["episodes"]
    with pytest.raises(BadInput, match="may not be redistributed"):
        push(out, "me/episodes")


def test_recordings_of_strangers_are_decoded_apart(
    tmp_path: Path, heard: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sound(tmp_path / "mine" / "a.flac").parent
    monkeypatch.setattr(recording, "decode", lambda *_: pytest.fail("it is decoded in this process"))
    (row,) = read(made(tmp_path, source=str(folder)), "episodes")
    assert row["duration"] == 3.0


def test_a_monologue_is_a_row_without_clips_that_says_why(tmp_path: Path, heard: dict[str, Any]) -> None:
    heard["turns"] = (SpeakerTurn("A", 0.0, 3.0),)
    (row,) = read(made(tmp_path, source=str(sound(tmp_path / "mine" / "a.flac").parent)), "episodes")
    assert row["clips"] == []
    assert "there is only one speaker" in row["reason"]
    assert len(row["turns"]) == 3


def test_recordings_of_no_use_are_named_by_rule_and_nothing_is_written(tmp_path: Path, heard: dict[str, Any]) -> None:
    folder = sound(tmp_path / "mine" / "a.flac").parent
    (folder / "b.mp3").write_bytes(b"<html>not found</html>")
    (folder / "c.flac").write_bytes((folder / "a.flac").read_bytes()[:30_000])
    soundfile.write(folder / "d.wav", np.zeros(RATE), RATE)
    sound(folder / "Arts_19.flac", seed=2)
    attempt(folder, file="Arts_19.flac", sha256="0" * 64)
    attempt(folder, id="Arts_20", file="Arts_20.mp3", sha256="1" * 64)
    attempt(folder, id="Arts_21", status="gone", reason="HTTP 404")
    with pytest.raises(BrokenRules) as broken:
        build("real_pod", tmp_path / "out", source=str(folder), cache=tmp_path / "cache")
    found = {problem.id: (problem.rule, problem.sentence) for problem in broken.value.problems}
    assert {name: rule for name, (rule, _) in found.items()} == {
        "Arts_19": "audio.readable",
        "Arts_20": "audio.readable",
        "b": "audio.readable",
        "c": "audio.readable",
        "d": "speech.heard",
    }
    assert "is not the file that was fetched" in found["Arts_19"][1]
    assert "does not exist" in found["Arts_20"][1]
    assert "silence" in found["d"][1]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"configs": ["episodes"]}, "episodes is built from episodes .*, not from paper"),
        ({"source": "episodes"}, "the source episodes is your own folder"),
        ({"source": "{folder}", "configs": ["topics"]}, "topics is built from paper "),
        ({"source": "{folder}"}, "contains no audio; fetch episodes with `podeval data fetch real_pod --into"),
    ],
)
def test_each_config_has_its_source(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("no audio")
    if "source" in options:
        options = options | {"source": options["source"].format(folder=tmp_path / "mine")}
    with pytest.raises(BadInput, match=sentence):
        build("real_pod", tmp_path / "out", cache=tmp_path / "cache", **options)
    assert not (tmp_path / "out").exists()


def test_a_missing_model_is_said_once_with_the_command_that_helps(
    tmp_path: Path, heard: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(job: str, profile: str) -> Any:
        raise ModelMissing("Whisper is not installed; run `podeval models install --profile embedded`")

    monkeypatch.setattr(registry, "load", missing)
    with pytest.raises(ModelMissing, match="podeval models install"):
        build(
            "real_pod", tmp_path / "out", source=str(sound(tmp_path / "mine" / "a.flac").parent), cache=tmp_path / "c"
        )


@pytest.mark.long
@pytest.mark.models
def test_a_real_conversation_becomes_turns_and_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two espeak voices; reference: the times at which the system spoke."""
    monkeypatch.setattr(recording, "open_default_cache", lambda: Cache(tmp_path / "facts"))
    system = EspeakNg()
    for reason in (
        system.available(),
        *(registry.get_card(job, "embedded").missing() for job in ("transcriber", "diarizer")),
    ):
        if reason:
            pytest.skip(reason)
    lines = [
        ("Ann", "Today we are talking about the history of coffee, and about the people who first made a drink of it."),
        ("Ben", "They lived in the mountains, and they wanted to stay awake during the long night."),
    ]
    speech = system.speak(Script.parse([{"speaker": speaker, "text": text} for speaker, text in lines]))
    (tmp_path / "mine").mkdir()
    soundfile.write(tmp_path / "mine" / "Arts_19.wav", speech.samples, speech.rate)
    (row,) = read(made(tmp_path, source=str(tmp_path / "mine")), "episodes")
    assert "coffee" in row["transcript"]
    (clip,) = row["clips"]
    assert clip["time_range"]["end"] == pytest.approx(speech.turns[1].end, abs=0.8)
    assert row["turns"][0]["start"] == pytest.approx(speech.turns[0].start, abs=0.5)
