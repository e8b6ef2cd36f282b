"""Dialogues of chance, and what meeteval 0.4.3 counts in them: `python studies/meeteval_counts.py [SAMPLES]` writes
the counts; with the folder of the excerpts of AMI also those of real meetings.

Needs meeteval and kaldialign on PYTHONPATH; the tests need neither. Run from the checkout with `benchmark` on it too.
"""

import random
from pathlib import Path

from podeval.text.comparison.alignment import HeardWord

MEETINGS = ("trn00", "trn01", "trn02")
COUNTS_OF_MEETINGS = Path(__file__).parent / "data" / "meeteval_ami_counts.json"
COUNTS = Path(__file__).parent / "data" / "meeteval_counts.json"
CASES = 240
Talk = dict[str, list[HeardWord]]


def make_cases() -> list[tuple[Talk, Talk, float]]:
    """Make a reference, a hypothesis and a collar for each case: two to six speakers, English words or characters."""
    chance = random.Random(25)
    cases = []
    for number in range(CASES):
        size = chance.choice((4, 12, 40))
        words = [chr(0x4E00 + index) if number % 2 else f"word{index}" for index in range(size)]
        reference = _talk(chance, chance.randint(2, 6), words)
        heard = _garble(chance, reference, words) if number % 3 else _talk(chance, chance.randint(1, 6), words)
        cases.append((reference, heard, chance.choice((0.5, 1.0, 5.0))))
    return cases


def make_meetings(samples: Path) -> list[tuple[Talk, Talk, float]]:
    """Two transcripts of each of three excerpts of AMI, for three collars: real words at real times.

    The reference are the words of Whisper base, by the speaker whose turn of the annotation they lie in or nearest to;
    the hypothesis those of Whisper tiny.en, by the voice that the diariser hears.
    """
    from podeval.audio.windows import Span
    from podeval.recording import Recording
    from podeval.recording.spoken_script import listen_again
    from podeval.text.comparison.alignment import split_words

    rows = [line.split() for line in (samples / "ami.rttm").read_text(encoding="utf-8").splitlines()]
    cases = []
    for name in MEETINGS:
        recording = Recording.open(samples / f"ami_{name}.flac")
        turns = [(row[7], float(row[3]), float(row[3]) + float(row[4])) for row in rows if row[1] == name]
        voices = [(turn.speaker, turn.start, turn.end) for turn in recording.diarization()] or [("one", 0.0, 30.0)]
        whole = [Span(0.0, recording.duration)]
        first = recording.transcript("en").words
        second = listen_again(recording, whole, "en", job="second_transcriber")
        talks = []
        for words, spoken in ((first, turns), (second, voices)):
            talk: Talk = {}
            for word in words:
                middle = (word.start + word.end) / 2
                who = min(spoken, key=lambda turn: max(turn[1] - middle, middle - turn[2], 0.0))[0]
                for text in split_words(word.text, "en"):
                    end = max(word.end, word.start + 0.01)
                    talk.setdefault(who, []).append(HeardWord(text, round(word.start, 3), round(end, 3)))
            talks.append(talk)
        cases += [(talks[0], talks[1], collar) for collar in (0.5, 1.0, 5.0)]
    return cases


def _talk(chance: random.Random, speakers: int, words: list[str]) -> Talk:
    talk: Talk = {}
    for speaker in range(speakers):
        time, said = 0.0, []
        for _ in range(chance.randint(1, 30)):
            start = round(time + 2 * chance.random(), 3)
            time = round(start + 0.1 + chance.random(), 3)
            said.append(HeardWord(chance.choice(words), start, time))
        talk[f"speaker {speaker}"] = said
    return talk


def _garble(chance: random.Random, reference: Talk, words: list[str]) -> Talk:
    """What a recogniser makes of it: words lost, others in their place, some in another speaker's column."""
    heard: Talk = {name: [] for name in reference}
    for name, said in reference.items():
        for word in said:
            fate = chance.random()
            text = chance.choice(words) if fate < 0.15 else word.text
            if fate < 0.9:
                heard[chance.choice(list(reference)) if fate > 0.8 else name].append(
                    HeardWord(text, word.start, word.end)
                )
    return {name: sorted(said, key=lambda word: word.start) for name, said in heard.items() if said}
