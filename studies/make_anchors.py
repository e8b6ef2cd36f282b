"""Make the anchors of the judged benchmarks: items of planted quality that a judge must put in the right order.

    python studies/make_anchors.py

The script writes benchmark/podeval/benchmarks/data/anchors_*.json and prints the SHA-256 that each benchmark pins. The
scripts are those of Real-Pod, shortened, with some turns replaced by empty phrases; the dialogues were written for this
purpose; the clips are by Real-Pod's readers. Another run writes the same files. Any change makes new anchors, for which
earlier scores are not valid.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from podeval import benchmarks
from podeval.benchmarks.benchmark import Item
from podeval.benchmarks.item import read_voices
from podeval.benchmarks.records import compute_content_revision, locate_data

COUNT, TURNS = 10, 10
Turns = list[dict[str, str]]
LICENCE = {
    "licence": "CC-BY-4.0",
    "attribution": "Written for podeval; scripts from Real-Pod's own, clips LibriTTS-R as in real_pod_voices.json.",
}
FILLERS = {
    "en": ("Yes, exactly, that is right.", "Well, that is really very interesting indeed."),
    "zh": ("对，没错，确实是这样。", "嗯，这个真的非常有意思。"),
}
NAME = re.compile(r"(?<![.!?] )(?<!^)\b([A-Z][a-z]+ [A-Z][a-z]+)\b")

DIALOGUES = (
    ("My train leaves at six and I still have to pack. What should I do first?",
     "Pack your ticket, keys and medicine first, then two days of clothes; you can buy the rest there.",
     "Trains are a nice way to travel."),
    ("I have two eggs, some rice and an onion. What can I cook?",
     "Fry the onion, add the rice, push it aside, scramble the eggs in the pan and mix: egg fried rice in ten minutes.",
     "Cooking at home can be a lot of fun."),
    ("Remind me: I said I am allergic to nuts. Is pesto safe for me?",
     "Usually not: pesto has pine nuts and often cashews, so with your nut allergy ask for one that is made without.",
     "Pesto is a green sauce from Italy."),
    ("Can you tell me how to reset my router?",
     "Hold the small button at the back for ten seconds with a pin, wait until the lights blink, then reconnect.",
     "Routers connect a home to the internet."),
    ("My grandmother fell, she is awake but her hip hurts badly. What now?",
     "Do not move her; call an ambulance now, keep her warm, and tell them if the pain grows or she feels numb.",
     "I hope that she will feel better soon."),
    ("Which is farther from the sun, Mars or Venus?",
     "Mars: it is about 228 million kilometres from the sun, Venus about 108 million.",
     "Both of them are planets of our system."),
    ("I failed my driving test again and I feel stupid.",
     "That hurts, and it says nothing about how clever you are; ask what went wrong and practise just that twice.",
     "Driving tests exist in most countries."),
    ("Please book nothing yet. I only want to know what a room costs on Friday.",
     "On Friday a single room is 80 and a double 110 a night; I have not booked anything.",
     "I have booked a room for you on Friday."),
    ("How do I say thank you to a teacher in Japanese?",
     "Say “arigatou gozaimashita, sensei”: it is polite and thanks for something that is done.",
     "Japanese is spoken in Japan."),
    ("There is a gas smell in my kitchen, may I switch on the light to look?",
     "No, touch no switch: open the windows, close the gas tap, leave, and call the gas service from outside.",
     "Good light helps to find things in a kitchen."),
)  # fmt: skip
"""A user's question, a helpful answer, and an unhelpful one."""
PADDING = "Well, that is a good question, and thank you so much for asking it. {} So, as I said, there it is, really."


def scripts() -> Iterator[Item]:
    """Yield one English script from each of eight categories, and two Chinese scripts."""
    benchmark = benchmarks.get("real_pod")
    first = {item.category: item for item in reversed(benchmark.items("topics")) if item.script}
    yield from list(first.values())[: COUNT - 2]
    yield from [item for item in benchmark.items("zh") if item.script][:2]


def levels_of(item: Item) -> list[Turns]:
    """Return a script, the same script with empty phrases in every other turn, and the same with empty phrases in all
    turns.
    """
    assert item.script
    whole = [{"speaker": turn.speaker, "text": turn.text} for turn in item.script.turns[:TURNS]]
    empty = [
        {"speaker": turn["speaker"], "text": FILLERS[item.language][number % 2]} for number, turn in enumerate(whole)
    ]
    half = [turn if number % 2 == 0 else empty[number] for number, turn in enumerate(whole)]
    return [whole, half, empty]


def anchor(name: str, metric: str, key: str, levels: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """Return an anchor as data."""
    return {"id": name, "metric": metric, "key": key, **more, "levels": levels}


def of_real_pod() -> Iterator[dict[str, Any]]:
    """Yield anchors in which the levels of a script are compared with its best level."""
    for item in scripts():
        levels = levels_of(item)
        against = [{"script": level, "reference_script": levels[0]} for level in levels]
        yield anchor(f"compare_{item.id}", "dialogue_judge", "overall", against)


def of_podbench() -> Iterator[dict[str, Any]]:
    """Yield anchors of script quality, and anchors in which a request is paired with its own script or another one."""
    items = list(scripts())
    for item in items:
        yield anchor(f"quality_{item.id}", "script_quality", "script_quality", [{"script": s} for s in levels_of(item)])
    for item, other in zip(items, [*items[1:-2], items[0], items[-1], items[-2]], strict=True):
        meant, another = levels_of(item)[0], levels_of(other)[0]
        # The source contains the words of its own script, and nothing from another one.
        request = {"instruction": f"A podcast about: {item.topic}", "sources": [" ".join(t["text"] for t in meant)]}
        foreign = [turn if number % 2 == 0 else another[number] for number, turn in enumerate(meant)]
        yield anchor(
            f"grounding_{item.id}",
            "script_grounding",
            "grounded",
            [{"script": script, "request": request} for script in (meant, foreign)],
        )
        text = " ".join(turn["text"] for turn in meant)
        names = [name for name in NAME.findall(text) if name not in str(another)][:1]
        wishes = [f"The talk is about this topic: {item.topic}", "It says something particular about the topic."]
        wishes += [f"{name} is mentioned." for name in names]
        request = {
            "instruction": f"A podcast about: {item.topic}",
            "checklist": [{"requirement": wish, "kind": "explicit"} for wish in wishes],
        }
        yield anchor(
            f"request_{item.id}",
            "instruction_following",
            "instruction_following",
            [{"script": script, "request": request} for script in (meant, another)],
        )


def of_mtalk_bench() -> Iterator[dict[str, Any]]:
    """Yield anchors with helpful, unhelpful and padded answers, and battles with the answer from another dialogue."""
    answers = [good for _, good, _ in DIALOGUES]
    for number, (user, good, empty) in enumerate(DIALOGUES):
        other = answers[(number + 1) % len(answers)]

        def talk(answer: str, name: str = f"d{number}", user: str = user) -> dict[str, Any]:
            criteria = ["The answer gives what the user asked for.", "The answer can be acted on at once."]
            return {"dialogue": {"id": name, "turns": [{"user": user, "answer": answer}],
                                 "criteria": {"sample": criteria}}}  # fmt: skip

        yield anchor(f"rubric_{number}", "rubric", "rubric", [talk(good), talk(empty)])
        padded = PADDING.format(good)
        yield anchor(f"density_{number}", "content_density", "content_density", [talk(good), talk(padded)])
        yield anchor(f"battle_{number}", "battle", "winner", [talk(good), talk(other)])


def of_lfs_bench() -> Iterator[dict[str, Any]]:
    """Yield anchors with readers, the same readers with misplaced pauses, and a formant synthesiser that says the same
    words.
    """
    manifest = benchmarks.get("real_pod").split("topics").voices
    assert manifest
    for voice in list(read_voices(manifest).values())[:COUNT]:
        person = {"recording": {"reader": voice.id}}
        machine = {"recording": {"says": voice.words}}
        paused = {"recording": {"reader": voice.id, "fault": "pauses"}}
        words = {"reference_text": voice.words}
        yield anchor(
            f"prosody_{voice.id}", "prosodic_coherence", "prosodic_coherence",
            [person | words, paused | words], parameters={"runs": 2, "source": "mix"},
        )  # fmt: skip
        for metric in ("expressive_richness", "expressive_hierarchy"):
            levels, name = [person, machine], f"{metric.partition('_')[2]}_{voice.id}"
            yield anchor(name, metric, metric, levels, parameters={"source": "mix"})


def main() -> None:
    """Write the files."""
    for name, made in (
        ("real_pod", of_real_pod()),
        ("podbench", of_podbench()),
        ("mtalk_bench", of_mtalk_bench()),
        ("lfs_bench", of_lfs_bench()),
    ):
        file = f"anchors_{name}.json"
        content = json.dumps({**LICENCE, "anchors": list(made)}, ensure_ascii=False, indent=1)
        locate_data(file).write_text(content + "\n", encoding="utf-8")
        print(file, compute_content_revision(file))


if __name__ == "__main__":
    main()
