"""Real-Pod's scripts: the written version stands alone, and people and voices differ from script to script."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import pytest

from podeval.benchmarks.item import read_scripts, read_voices
from podeval.benchmarks.real_pod import SCRIPTS, VOICES
from podeval.datasets.real_pod_scripts import find_missing_joint, find_unsourced_turn, make_script_rules
from podeval.datasets.row_rules import RowRule


def rule_named(name: str) -> RowRule:
    """A rule that has checked no script yet."""
    return next(rule for rule in make_script_rules() if rule.name == name)


STANDS_ALONE = rule_named("stands alone")


def lost_joints() -> Iterator[Any]:
    """The sentences of the revision before (sha256:d1cd79e9…) that had lost a clause or its joint, numbered from 0."""
    with (Path(__file__).parent / "lost_joints.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield pytest.param(row["written"], row["spontaneous"], id=row["turn"])


@pytest.mark.parametrize(("written", "spontaneous"), list(lost_joints()))
def test_a_written_sentence_that_lacks_a_clause_of_the_spontaneous_one_breaks_a_rule(
    written: str, spontaneous: str
) -> None:
    turns = [{"text": "Yes.", "spontaneous": "Yes."}, {"text": written, "spontaneous": spontaneous}]
    assert str(STANDS_ALONE.broken_by({"turns": turns})).startswith("turn 2 has no ")


@pytest.mark.parametrize(
    ("written", "spontaneous", "missing"),
    [
        ("It rains, we stay.", "It rains, and, um, we stay.", ("and", "we stay")),
        ("I like what it cannot do feel.", "I like what it can't do, which is, uh, feel.", ("which is", "feel")),
        ("It rains, and we stay.", "It rains, and, um, and we stay.", None),
        ("It is a tidy idea, I think.", "It's, uh, it's a tidy idea, I think.", None),
        ("It rains. We stay.", "It rains. And, um, we stay.", None),
        ("One thing is hard: to stay.", "One thing is hard, and, uh, that is: to stay.", None),
        ("They drew, they sewed, and they wrote.", "They drew, and, and they sewed, and they wrote.", None),
        (
            "They drew, they sewed. And they wrote.",
            "They drew, and, and they sewed. And they wrote.",
            ("and and", "they"),
        ),
        ("A list before bed, in a drawer.", "A list before bed, um, you know, in a drawer.", None),
        ("I bought a camera.", "I bought a camera, which, uh, leaked.", None),
    ],
)
def test_a_joint_is_missed_within_a_sentence_unless_it_is_a_restart_or_a_lists(
    written: str, spontaneous: str, missing: tuple[str, str] | None
) -> None:
    found = find_missing_joint(written, spontaneous)
    assert (found and (found[0], found[1][: len(missing[1])] if missing else found[1])) == missing


WOMEN, MEN = ([voice.id for voice in read_voices(VOICES).values() if voice.gender == sex] for sex in ("female", "male"))


def made(number: int, *texts: str, voices: tuple[str, ...] = ("x", "y")) -> dict[str, Any]:
    """A script of Ann, who is host, Ben and others, who say these texts by turns."""
    names = ("Ann", "Ben", "Cat", "Dan")[: len(voices)]
    speakers = [
        {"name": name, "role": "guest" if place else "host", "voice": voice}
        for place, (name, voice) in enumerate(zip(names, voices, strict=True))
    ]
    turns = [{"speaker": names[place % len(names)], "text": text} for place, text in enumerate(texts)]
    return {"id": f"script {number}", "speakers": speakers, "turns": turns}


def first_broken(rule: RowRule, script: Callable[[int], dict[str, Any]]) -> tuple[int, str]:
    """The first of a hundred scripts that breaks a rule, and what is said of it."""
    return next((number, said) for number in range(100) if (said := rule.broken_by(script(number))))


def test_only_some_scripts_may_begin_with_a_name_and_a_question() -> None:
    rule = rule_named("asked at once")
    assert not any(rule.broken_by(made(number, "A riddle. What is it?", "Yes.")) for number in range(20))
    assert not any(rule.broken_by(made(number, "Ben is here.", "Yes.")) for number in range(20, 40))
    assert first_broken(rule, lambda number: made(number + 40, "A riddle. Ben, what is it?", "Yes.")) == (
        10,
        "is one more script that begin with a name and a question, beyond 10",
    )


def test_only_some_scripts_may_end_with_a_word_of_their_beginning() -> None:
    rule = rule_named("called back")
    assert not any(rule.broken_by(made(number, "There's a toaster.", "There's a lamp.")) for number in range(20))
    number, said = first_broken(rule, lambda number: made(number + 20, "There's a toaster.", "Toaster!", "Ha."))
    assert (number, said) == (12, "is one more script whose end takes up a word of its beginning, beyond 12")


def test_no_two_scripts_have_last_sentences_that_begin_alike() -> None:
    rule = rule_named("ending")
    assert rule.broken_by(made(1, "Hm.", "Yes. Nobody has ever met a shark.")) is None
    assert rule.broken_by(made(2, "Hm.", "Nobody has ever met a shark, and then he left. Goodbye.")) is None
    assert rule.broken_by(made(3, "Hm.", "Goodbye.")) is None, "one word is not a habit"
    assert rule.broken_by(made(4, "Hm.", "Nobody has ever been awake!")) == "ends as script 1: 'nobody has ever'"


@pytest.mark.parametrize(
    ("voices", "allowed", "said"),
    [
        (lambda n: (WOMEN[n % 5], WOMEN[5 + n % 5]), 13, "of two female voices, beyond 13"),
        (lambda n: (MEN[n % 5], MEN[5 + n % 5]), 13, "of two male voices, beyond 13"),
        (lambda n: (WOMEN[n % 12], MEN[n % 12]), 6, "of a woman and a man with a female host, beyond 6"),
        (lambda n: (MEN[n % 12], WOMEN[n % 12]), 6, "of a woman and a man with a male host, beyond 6"),
        (lambda n: (WOMEN[n % 12], MEN[n % 12], WOMEN[(n + 1) % 12]), 8, "of 3 speakers, beyond 8"),
        (lambda n: (*WOMEN[n % 6 * 2 :][:2], *MEN[n % 6 * 2 :][:2]), 5, "of 4 speakers, beyond 5"),
        (lambda n: (WOMEN[0], MEN[n % 12]), 5, f"with the voice {WOMEN[0]}, beyond 5"),
        (lambda n: (WOMEN[0],), 0, "of 1 speakers, beyond 0"),
    ],
)
def test_pairs_and_voices_occur_equally_often(
    voices: Callable[[int], tuple[str, ...]], allowed: int, said: str
) -> None:
    rule = rule_named("pairs")
    number, sentence = first_broken(rule, lambda number: made(number, "Hm.", voices=voices(number)))
    assert (number, sentence) == (allowed, f"is one more script {said}")


def test_voices_of_ones_own_are_not_counted() -> None:
    rule = rule_named("pairs")
    assert not any(rule.broken_by(made(number, "Hm.", voices=(WOMEN[0], "mine"))) for number in range(60))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It was in nineteen seventy-three.", "turn 1 says 'nineteen seventy' without a source"),
        ("That was two thousand and eight.", "turn 1 says 'two thousand' without a source"),
        ("It's by Mark Granovetter.", "turn 1 names 'Mark Granovetter' without a source"),
        ("Simone de Beauvoir said so.", "turn 1 names 'Simone de Beauvoir' without a source"),
        ("And Mark Granovetter said so.", "turn 1 names 'Mark Granovetter' without a source"),
        ("In Norway. Every Sunday.", None),
        ("Twenty people met Ann.", None),
        ("We asked Ann Ben.", None),
    ],
)
def test_a_year_or_a_name_needs_a_source(text: str, said: str | None) -> None:
    turns = [{"speaker": "Ann", "text": text, "claims": []}, {"speaker": "Ben", "text": "Hm.", "claims": []}]
    assert find_unsourced_turn({"turns": turns}) == said
    assert find_unsourced_turn({"turns": [{**turns[0], "claims": [{"claim": "c", "source": "s"}]}, turns[1]]}) is None


def test_every_script_of_the_benchmark_keeps_the_rules() -> None:
    rules, said = make_script_rules(), {}
    for script in (json.loads(line) for line in SCRIPTS.read().decode("utf-8").splitlines()):
        row = script | {"voices": len(script["speakers"])}
        said |= {(script["id"], rule.name): sentence for rule in rules if (sentence := rule.broken_by(row))}
    assert said == {}


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
