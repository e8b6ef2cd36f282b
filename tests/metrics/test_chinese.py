"""What Chinese pages say of metrics is Chinese: names, sentences, units, sources, and why something is unscored."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podeval
from podeval import benchmarks
from podeval.audio.samples import describe_silent_ends
from podeval.board.columns import Column, get_column
from podeval.board.words import explain
from podeval.metrics import catalogue
from podeval.metrics.score import Score, describe_notes
from podeval.runs import composite_scores, reliability
from podeval.text.message_catalogue import read_texts
from podeval.texts import CAUSES, REASONS, translate_reason

ENGINE = Path(podeval.__file__).parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
ENGLISH_WORD = re.compile(r"\b(the|of|and|is|are|over|with|than|by)\b")
PLACE = re.compile(r"\{\d\}")
SEAMS = re.compile(r"\{\d\}|the recording |the system produced no |, only|found |not ranked: | \(|; ")
"""Where the engine puts a sentence together."""


def every_column() -> list[Column]:
    """Every column that any board can show."""
    columns = [
        get_column(metric.name, key.name, metric.dimension)
        for metric in catalogue.load_all_metrics()
        for key in metric.keys
    ]
    for benchmark in map(benchmarks.get, benchmarks.list_benchmarks()):
        for composite in benchmark.composites:
            declared = composite_scores.declare(benchmark, composite)
            columns += [get_column(declared.name, key.name, declared.dimension) for key in declared.keys]
    figures = ("catastrophic", "wer_mean", "wer_worst", "dnsmos_ovrl_spread", "sim_worst_window")
    return columns + [get_column(reliability.NAME, figure, reliability.DIMENSION) for figure in figures]


def words() -> dict[str, Any]:
    space = ENGINE.parents[1] / "space"
    return dict(read_texts(space / "locale", "zh", ("board",))["board"]["causes"])


def test_every_column_is_explained_in_chinese() -> None:
    for of in every_column():
        said = explain(of, "zh")
        assert CHINESE.search(said["about"]), of.id
        assert said["about"].endswith(("。", "）。")), of.id
        assert of.metric not in catalogue.NAMES or CHINESE.search(said["of_metric"]), of.id
        for sentence in filter(None, (said["about"], said["of_metric"], said["source"], said["unreached"])):
            assert CHINESE.search(sentence), f"{of.id}: {sentence}"
            assert not ENGLISH_WORD.search(sentence), f"{of.id}: {sentence}"
        assert " to " not in said["range"], of.id
        assert " and " not in said["range"], of.id
        assert explain(of)["about"] != said["about"]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("the recording contains no speech", "录音中没有听到语音"),
        ("the recording contains no speech, only 12.0 s of music", "录音中没有听到语音，只有 12.0 秒音乐"),
        ("not ranked: its WER of 0.97 is above the ceiling of 0.30", "不排名：WER 为 0.97，高于上限 0.30"),
        ("needs at least two speakers, found one speaker", "至少需要两位说话人，只听到一位"),
        ("something that nobody has translated", "something that nobody has translated"),
    ],
)
def test_reasons_are_said_in_chinese_and_unknown_ones_stay(reason: str, said: str) -> None:
    assert translate_reason(reason, words()) == said
    assert translate_reason(reason, CAUSES) == reason


JOINED = {"note-stem", "note-both", "note-silence", "note-silence-begin", "note-silence-end"}
"""Sentences that the engine joins from parts: the test below makes each."""


def test_sentences_that_are_joined_from_parts_are_translated() -> None:
    rate, tone = 16_000, np.sin(np.arange(16_000 * 4) / 9)
    silence = np.zeros(rate * 5)
    pieces = ([silence, tone], [tone, silence], [silence, tone, silence])
    made = [describe_silent_ends(np.concatenate(piece), rate) for piece in pieces]
    made += describe_notes(Score({"x": 1.0}, notes={"scored": "stem", "music_seconds": 12.0}))
    made += describe_notes(Score({"x": 1.0}, notes={"stem": {"music_seconds": 12.0}}))
    assert len(made) == len(JOINED)
    translated = [translate_reason(one, words()) for one in made]
    assert not [text for text in translated if re.search("[a-z]{3}", text)], translated


def test_every_translated_reason_is_one_that_the_engine_gives() -> None:
    """A sentence that was reworded would stay English without anybody noticing."""
    folders = [
        "audio",
        "board",
        "judges",
        "measuring",
        "metrics",
        "recording",
        "runs",
        "submissions",
        "systems",
        "text",
    ]
    files = [path for folder in folders for path in (ENGINE / folder).rglob("*.py")]
    source = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text("utf-8") for path in files))
    gone = []
    translations = words()["sentences"]
    assert translations.keys() == REASONS.keys()
    for code, sentence in REASONS.items():
        if code in JOINED:
            continue
        gone += [part for part in map(str.strip, SEAMS.split(sentence)) if len(part) > 8 and part not in source]
        assert set(PLACE.findall(translations[code])) <= set(PLACE.findall(sentence)), sentence
    assert not gone
