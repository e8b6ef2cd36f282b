"""Real-Pod's scripts: people and voices differ from script to script."""

import json
from collections import Counter
from statistics import mean, median

import pytest

from podeval.benchmarks.item import read_scripts, read_voices
from podeval.benchmarks.real_pod import SCRIPTS, VOICES


def test_voices_and_pairs_of_the_benchmark_are_balanced() -> None:
    scripts, voices = read_scripts(SCRIPTS).values(), read_voices(VOICES)
    sexes = {script.id: [voices[speaker.voice].gender for speaker in script.speakers] for script in scripts}
    hosts = {
        script.id: next(voices[speaker.voice].gender for speaker in script.speakers if speaker.role == "host")
        for script in scripts
    }
    assert Counter(map(len, sexes.values())) == {2: 38, 3: 8, 4: 5}
    pairs = Counter(tuple(sorted(pair)) for pair in sexes.values() if len(pair) == 2)
    assert pairs == {("female", "female"): 13, ("male", "male"): 13, ("female", "male"): 12}
    assert Counter(hosts[name] for name, pair in sexes.items() if sorted(pair) == ["female", "male"]) == {
        "female": 6,
        "male": 6,
    }
    assert Counter(hosts.values()) == {"female": 25, "male": 26}
    used = Counter(speaker.voice for script in scripts for speaker in script.speakers)
    assert used == dict.fromkeys(voices, 5)
    assert Counter(voice.gender for voice in voices.values()) == {"female": 12, "male": 12}


def test_who_speaks_how_much_differs_from_script_to_script() -> None:
    quieter, turns = 0, []
    for line in SCRIPTS.read().decode("utf-8").splitlines():
        script = json.loads(line)
        words: dict[str, list[int]] = {speaker["name"]: [] for speaker in script["speakers"]}
        for turn in script["turns"]:
            words[turn["speaker"]].append(len(turn["text"].split()))
        host = next(speaker["name"] for speaker in script["speakers"] if speaker["role"] == "host")
        quieter += max(words, key=lambda name: sum(words[name])) != host
        means = [mean(lengths) for lengths in words.values()]
        turns.append(max(means) / min(means))
    # A third of the hosts talk most, and the speaker with the longest turns has them twice as long.
    assert quieter == 32
    assert median(turns) == pytest.approx(2.05, abs=0.01)
