"""The text metrics on real scripts lie where PodEval's tables 4 to 7 put comparable texts.

A check of sanity, not of equality: the papers' own scripts are not public. Spans are the lowest and highest figure of
any category. Semantic diversity is left out: its figures, 0.108 to 0.192, are of BERT base, whose weights need the Hub.
"""

import json
from pathlib import Path
from statistics import median

import pytest

from podeval.metrics import catalogue

GENERATED = {"distinct_2": (0.8889, 0.9825), "mattr": (0.6035, 0.7399), "info_dens": (5.8031, 7.3791)}
"""GPT-4, PodAgent and MoonCast, tables 4 to 6."""

REAL = {"distinct_2": (0.8932, 0.9439), "mattr": (0.5823, 0.6582), "info_dens": (7.6949, 8.8282)}
"""Real-Pod, table 7: whole episodes, so that information density, which grows with length, is highest."""

MODULES = {"distinct_2": "distinct_n", "mattr": "mattr", "info_dens": "info_dens"}


def values(text: str) -> dict[str, float]:
    return {key: catalogue.get(module)({"text": text}).values[key] for key, module in MODULES.items()}


def scenes(shared_data: Path, name: str) -> list[str]:
    """English scripts of a scene of LFS-Bench, its turns joined."""
    found = []
    for file in ("mono", "two", "multi"):
        path = shared_data / "lfs_swanbench" / f"{file}_speaker.jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if (row["scene"], row["language"]) == (name, "english"):
                found.append(" ".join(turn["text"] for turn in row["content"]))
    return found


def transcript(shared_data: Path, episode: str) -> str:
    """An episode that PodAgent made, as PodEval transcribed it."""
    path = shared_data / "podeval" / "real_pod" / "example_processed" / episode / "transcription.txt"
    return " ".join(line.partition("]:")[2].strip() for line in path.read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("episode", ["Arts_19", "Arts_20", "Arts_21"])
def test_podagent_s_example_episodes_lie_among_generated_scripts(shared_data: Path, episode: str) -> None:
    for key, value in values(transcript(shared_data, episode)).items():
        low, high = GENERATED[key]
        assert low <= value <= high, (key, value)


def test_fillers_make_a_script_less_diverse_and_leave_it_among_generated_ones(shared_data: Path) -> None:
    """The words of Arts_19 were made to sound spontaneous; its transcript leaves "um", "uh" and "like" out."""
    script = json.loads((shared_data / "podeval" / "ref_info" / "Arts_19.json").read_text(encoding="utf-8"))
    spontaneous = values(" ".join(turn["text"] for turn in script["dialogue"]))
    heard = values(transcript(shared_data, "Arts_19"))
    for key, (low, high) in GENERATED.items():
        assert low <= spontaneous[key] <= high, (key, spontaneous[key])
        assert spontaneous[key] < heard[key]


def test_podcast_scripts_of_lfs_bench_lie_among_generated_scripts(shared_data: Path) -> None:
    found = [values(text) for text in scenes(shared_data, "podcast") if len(text.split()) >= 170]
    assert len(found) >= 20
    for key, (low, high) in GENERATED.items():
        assert low <= median(scores[key] for scores in found) <= high, key


def test_real_conversation_lies_among_real_episodes(shared_data: Path) -> None:
    """Interviews, transcribed from people talking, joined to the length of an episode."""
    found = values(" ".join(scenes(shared_data, "interview")))
    for key, (low, high) in REAL.items():
        assert low <= found[key] <= high, (key, found[key])


def test_people_repeat_themselves_more_than_written_podcasts(shared_data: Path) -> None:
    """As tables 5 and 7 have it: PodAgent above Real-Pod in both."""
    spoken, written = (values(" ".join(scenes(shared_data, name))) for name in ("interview", "podcast"))
    assert written["distinct_2"] > spoken["distinct_2"] + 0.01
    assert written["mattr"] > spoken["mattr"] + 0.01
