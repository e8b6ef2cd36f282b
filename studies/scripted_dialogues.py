"""Dialogues between two voices of the corpus with known words and speakers; each voice says its text in two halves."""

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from podeval.recording import Recording
from podeval.recording.spoken_script import align_recording
from podeval.text.comparison.alignment import join_words
from podeval.text.script import Script, Turn
from studies import corpus
from studies.corpus import RATE, Item, Samples, load

PAUSE = 0.5
"""Seconds between turns."""

MIDDLE = (0.3, 0.7)
"""Shares of a text between which it is cut, at the longest pause."""


def find_partner(item: Item, items: Sequence[Item]) -> Item:
    """Return another voice of the same kind from another collection, whose words are also known."""
    return corpus.other_recording(item, [each for each in items if each.text])


def make_scripted_dialogue(item: Item, items: Sequence[Item], folder: Path) -> tuple[Samples, Script]:
    """Return the first half of an item, that of its partner, and the second halves of both, with the script."""
    partner = find_partner(item, items)
    own, other = (cut_in_halves(folder / each.file, each.text or "") for each in (item, partner))
    pause = np.zeros(round(PAUSE * RATE), np.float32)
    sounds: list[Samples] = []
    turns: list[Turn] = []
    for half in (0, 1):
        for voice, halves in ((item.voice, own), (partner.voice, other)):
            sound, words = halves[half]
            sounds += [sound, pause]
            turns.append(Turn(voice, words))
    return np.concatenate(sounds[:-1]), Script(tuple(turns))


@cache
def cut_in_halves(path: Path, text: str) -> tuple[tuple[Samples, str], tuple[Samples, str]]:
    """Cut a recording at its longest pause near the middle of its words; return both halves with their words."""
    samples = load(path)
    alignment, _ = align_recording(Recording.from_samples(samples, RATE), Script((Turn("1", text),)))
    words = [word.text for word in alignment.written]
    times = {
        partner: word for word, partner in zip(alignment.heard, alignment.partners, strict=True) if partner is not None
    }
    places = [
        (times[after].start - times[before].end, after)
        for before, after in pairwise(range(len(words)))
        if before in times and after in times and MIDDLE[0] < after / len(words) < MIDDLE[1]
    ]
    _, after = max(places)
    cut = round((times[after - 1].end + times[after].start) / 2 * RATE)
    return (samples[:cut], join_words(words[:after])), (samples[cut:], join_words(words[after:]))
