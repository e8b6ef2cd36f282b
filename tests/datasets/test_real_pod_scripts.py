"""Real-Pod's scripts: voices and pairs are balanced, as the card says."""

from collections import Counter

from podeval.benchmarks.item import read_scripts, read_voices
from podeval.benchmarks.real_pod import SCRIPTS
from podeval.benchmarks.real_pod_splits import VOICES


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
