"""Dialogues of people with planted defects: readers' clips cut into turns, for the study in docs/defects-study.md.

A clip of LibriTTS-R is cut into turns of a few seconds, at the quietest moments between words. Four readers take turns
in random order. For an omitted word, its time according to the recogniser is cut out of the sound, and the script keeps
the word. For a turn in a wrong voice, the script gives the turn to another of the four readers. For half a turn in a
wrong voice, the script joins the turns of two readers into one.
"""

import json
import random
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from podeval.recording import Recording
from podeval.recording.spoken_script import align_recording
from podeval.text.script import Script, Turn
from studies.planted_dialogues import DATA, Dialogue, Line, Samples, join_lines, measure_level, open_clip

Times = tuple[tuple[float, float] | None, ...]
RATE = 24_000
READERS, TURNS = 4, 3
SHORTEST_TURN = 2.2
"""Approximate minimum length of a turn in seconds."""

LONGEST_SHIFT = 0.9
"""Maximum distance in seconds between a cut and an equal division."""

EDGE = 0.005
"""Length in seconds of the fade at a cut."""


@dataclass(frozen=True)
class Piece:
    """The sound of a turn with its words; a word has its times if it was recognised as written."""

    reader: int
    samples: Samples
    words: tuple[str, ...]
    times: Times

    @property
    def text(self) -> str:
        """The words as written."""
        return " ".join(self.words)


def make_readers_dialogue(chance: random.Random, *, clean: bool) -> Dialogue:
    """Make a dialogue of four readers in turn; unless it is clean, one word is omitted, and one turn and one half turn
    are in another voice.
    """
    pieces = _take_turns(chance)
    turns = [[piece] for piece in pieces]
    label = [piece.reader for piece in pieces]
    plants: dict[int, str] = {}
    if not clean:
        plants = _choose_turns(pieces, chance)
        for at, kind in plants.items():
            if kind == "turn_wrong_voice":
                label[at] = chance.choice([reader for reader in set(label) if reader != pieces[at].reader])
            if kind == "half_turn_wrong_voice":
                turns[at] = [pieces[at], pieces[at + 1]]
                turns[at + 1] = []
            if kind == "word_omitted":
                turns[at] = [_cut_a_word(pieces[at], chance)]
    kept = [at for at, turn in enumerate(turns) if turn]
    script = Script(tuple(Turn(str(label[at] + 1), " ".join(piece.text for piece in turns[at])) for at in kept))
    lines = []
    for number, at in enumerate(kept):
        for part, piece in enumerate(turns[at]):
            kind = plants.get(at, "")
            own = kind if kind != "half_turn_wrong_voice" or part else ""
            lines.append(Line(number, piece.text, piece.samples, own))
    return join_lines(script, lines, RATE)


def _take_turns(chance: random.Random) -> list[Piece]:
    """Return the pieces of four readers in an order in which no reader has two pieces in a row."""
    readers = chance.sample([cut for cut in read_clips() if len(cut) == TURNS], READERS)
    pieces = [Piece(reader, *each) for reader, cut in enumerate(readers) for each in cut]
    for _ in range(1000):
        chance.shuffle(pieces)
        if all(one.reader != other.reader for one, other in pairwise(pieces)):
            return pieces
    raise AssertionError("no order without neighbours")


def _choose_turns(pieces: list[Piece], chance: random.Random) -> dict[int, str]:
    """Choose the turns in which defects are planted, at least two apart; return the kinds by turn. Half a turn also
    takes up the next turn.
    """
    while True:
        half, turn, word = chance.sample(range(1, len(pieces) - 1), 3)
        apart = min(abs(half - turn), abs(half - word), abs(turn - word)) > 1 and half + 1 not in (turn - 1, word - 1)
        if apart and _find_words(pieces[word]):
            return {half: "half_turn_wrong_voice", turn: "turn_wrong_voice", word: "word_omitted"}


def _find_words(piece: Piece) -> list[int]:
    """Find the words inside a turn that have at least four letters and a time, and whose neighbours have times too."""
    return [
        at
        for at in range(1, len(piece.words) - 1)
        if sum(map(str.isalpha, piece.words[at])) >= 4 and all(piece.times[at - 1 : at + 2])
    ]


def _cut_a_word(piece: Piece, chance: random.Random) -> Piece:
    """Cut a word out of the sound, at the quietest moments near its edges; the text keeps the word."""
    start, end = piece.times[chance.choice(_find_words(piece))] or (0.0, 0.0)
    first, last = (_find_softest(piece.samples, at, 0.06) for at in (start, end))
    before, after = piece.samples[:first].copy(), piece.samples[last:].copy()
    fade = np.linspace(0, 1, round(EDGE * RATE), dtype=np.float32)
    before[-len(fade) :] *= fade[::-1]
    after[: len(fade)] *= fade
    return Piece(piece.reader, np.concatenate([before, after]), piece.words, piece.times)


@cache
def read_clips() -> tuple[tuple[tuple[Samples, tuple[str, ...], Times], ...], ...]:
    """Return every reader's clip cut into turns (sound, words, times of the words); a clip that cannot be cut has no
    turns.
    """
    rows = [
        row
        for name in ("real_pod_voices.json", "real_pod_long_voices.json")
        for row in json.loads((DATA / name).read_text(encoding="utf-8"))["voices"]
    ]
    return tuple(_cut_clip(row["file"], row["words"]) for row in rows)


def _cut_clip(file: str, text: str) -> tuple[tuple[Samples, tuple[str, ...], Times], ...]:
    samples, words = open_clip(file), tuple(text.split())
    own = _time_words(file, text)
    # A clip can be cut between words only if its words are compared as written.
    if len(own) != len(words):
        return ()
    seconds = len(samples) / RATE
    count = min(TURNS, int(seconds / SHORTEST_TURN))
    edges = [(0, 0)]
    for number in range(1, count):
        able = {at: (a[1] + b[0]) / 2 for at, (a, b) in enumerate(pairwise(own), 1) if a and b}
        middle = number * seconds / count
        near = {at: _find_softest(samples, t, 0.08) for at, t in able.items() if abs(t - middle) < LONGEST_SHIFT}
        if not near:
            return ()
        edges.append(min(near.items(), key=lambda cut: measure_level(samples[cut[1] - 600 : cut[1] + 600])))
    pieces = []
    for (first, begin), (last, end) in pairwise([*edges, (len(words), len(samples))]):
        offset = begin / RATE
        times = tuple(each and (each[0] - offset, each[1] - offset) for each in own[first:last])
        pieces.append((samples[begin:end], words[first:last], times))
    return tuple(pieces)


def _time_words(file: str, text: str) -> list[tuple[float, float] | None]:
    """Return the time of every word of a clip; None for a word that is not recognised as written."""
    alignment, _ = align_recording(Recording.open(DATA / file), Script((Turn("1", text),)))
    own: list[tuple[float, float] | None] = [None] * len(alignment.written)
    for word, partner in zip(alignment.heard, alignment.partners, strict=True):
        if partner is not None and alignment.written[partner].text == word.text:
            own[partner] = (float(word.start), float(word.end))
    return own


def _find_softest(samples: Samples, moment: float, reach: float) -> int:
    """Return the frame, within `reach` seconds of a moment, around which 10 ms are quietest."""
    half = round(0.005 * RATE)
    first, last = max(half, round((moment - reach) * RATE)), min(len(samples) - half, round((moment + reach) * RATE))
    return min(range(first, max(first + 1, last), half), key=lambda at: measure_level(samples[at - half : at + half]))
