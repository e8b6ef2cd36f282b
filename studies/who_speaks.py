"""Measure the error of diarisation on real meetings, and the effect of a script in its place on the figures of rhythm.

    python studies/who_speaks.py meetings ../shared/data/samples [--against CHECKOUT]
    python studies/who_speaks.py script [--topics 3] [--one-voice] [--read NAME=AUDIO,SCRIPT.json]

`meetings` diarises every `ami_NAME.flac` in a folder whose turns are in its `ami.rttm`, and prints the diarisation
error: missed speech, false alarms and speech of the wrong speaker as a share of all speech. It is measured in frames of
10 ms, including overlaps, without a collar, after the best assignment of speakers. `--against` does the same with the
code of another checkout, and prints how many turns are equal.

`script` arranges dialogues of Real-Pod, read by two systems, with people's gaps and overlaps, so that the speaker at
each moment is known. The floor events and the melody are then computed from the known times, from diarisation (as in
the metrics), and from diarised speech with the names given by a script's aligned words. `--read` adds a recording with
its turns and their times, as `[{"speaker", "start", "end", "text"}, …]`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

sys.path.insert(0, str(Path(__file__).parents[1]))

from podeval.audio.samples import mix_to_mono, resample
from podeval.benchmarks import real_pod
from podeval.benchmarks.item import read_scripts
from podeval.metrics.speech.pace import describe_speakers, join_speech
from podeval.models.interfaces import SpeakerTurn
from podeval.recording import Recording
from podeval.recording.speaker_turns import align_turns, find_overlapping_turns
from podeval.stats.turn_taking import count_people, follow_the_floor, jensen_shannon_distance
from podeval.systems import registry
from podeval.text.script import Script
from studies.dialogue_distortions import RATE, draw_offsets, lay_out

FRAME = 0.01
DIARISE = """
import json, sys
from pathlib import Path
from podeval.recording import Recording
print(json.dumps({
    path.stem.removeprefix("ami_"): [(one.speaker, one.start, one.end) for one in Recording.open(path).diarization()]
    for path in sorted(Path(sys.argv[1]).glob("ami_*.flac"))
}))
"""
"""The program that is run with the code of each checkout."""

READERS = ("hibari_piper", "espeak_ng")
Turn = tuple[str, float, float]


def read_rttm(path: Path, name: str) -> list[Turn]:
    """Read the turns of one recording."""
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return [(row[7], float(row[3]), float(row[3]) + float(row[4])) for row in rows if row[1] == name]


def mark(turns: Sequence[Turn], seconds: float) -> np.ndarray:
    """Return who speaks in each frame, shape (speakers, frames)."""
    names = list(dict.fromkeys(turn[0] for turn in turns))
    marked = np.zeros((len(names), round(seconds / FRAME)), dtype=bool)
    for name, start, end in turns:
        marked[names.index(name), round(start / FRAME) : round(end / FRAME)] = True
    return marked


def count_errors(truth: Sequence[Turn], heard: Sequence[Turn], seconds: float) -> tuple[int, int]:
    """Count the wrong frames of speech and all frames of speech; two simultaneous speakers count twice."""
    there, said = mark(truth, seconds), mark(heard, seconds)
    rows, columns = linear_sum_assignment(-(there.astype(int) @ said.T.astype(int)))
    right = sum(int((there[row] & said[column]).sum()) for row, column in zip(rows, columns, strict=True))
    return int(np.maximum(there.sum(axis=0), said.sum(axis=0)).sum()) - right, int(there.sum())


def show_meetings(folder: Path, against: Path | None) -> None:
    """Print the errors, next to those of the other checkout."""
    checkouts = {"this code": Path(__file__).parents[1], **({str(against): against} if against else {})}
    sides: dict[str, dict[str, list[Turn]]] = {}
    for side, checkout in checkouts.items():
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "PYTHONPATH": str(checkout / "benchmark"), "PODEVAL_CACHE": cache}
            command = [sys.executable, "-c", DIARISE, str(folder)]
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        heard = json.loads(done.stdout.splitlines()[-1])
        sides[side] = {name: [(who, start, end) for who, start, end in turns] for name, turns in heard.items()}
    for side, meetings in sides.items():
        wrong = speech = 0
        for name, heard in meetings.items():
            seconds = Recording.open(folder / f"ami_{name}.flac").duration
            errors = count_errors(read_rttm(folder / "ami.rttm", name), heard, seconds)
            wrong, speech = wrong + errors[0], speech + errors[1]
            print(f"{side:24} {name:8} error {errors[0] / errors[1]:.3f}, {len(heard)} turns")
        print(f"{side:24} {'all':8} error {wrong / speech:.3f}")
    if against:
        first, second = sides.values()
        same = sum(turn in second[name] for name, turns in first.items() for turn in turns)
        print(f"{same} of {sum(map(len, first.values()))} turns are the same to the last digit")


def list_dialogues(topics: int, one_voice: bool) -> Iterator[tuple[str, np.ndarray, list[Turn], Script]]:
    """Yield dialogues arranged with people's gaps and overlaps, with their known turns; with `one_voice`, one voice
    reads all lines.
    """
    chosen = [
        (name, script.script)
        for name, script in read_scripts(real_pod.SCRIPTS).items()
        if len(script.speakers) == 2 and len(script.turns) >= 24
    ]
    for reader in READERS:
        for seed, (name, script) in enumerate(chosen[:topics]):
            lines = [{"speaker": "Ann" if one_voice else turn.speaker, "text": turn.text} for turn in script.turns]
            speech = registry.get(reader).speak(Script.parse(lines))
            whole = resample(mix_to_mono(speech.samples.reshape(len(speech.samples), -1)), speech.rate, RATE)
            said = [whole[round(turn.start * RATE) : round(turn.end * RATE)] for turn in speech.turns]
            offsets = draw_offsets(len(said), seed)
            truth, start = [], 0
            for turn, sound, offset in zip(script.turns, said, [*offsets, 0.0], strict=True):
                truth.append((turn.speaker, start / RATE, (start + len(sound)) / RATE))
                start = max(start, start + len(sound) + round(offset * RATE))
            yield f"{reader}, {name}", lay_out(said, offsets), truth, script


def measure(recording: Recording, turns: Sequence[Turn]) -> dict[str, float]:
    """Compute the figures of turn-taking and melody for these turns."""
    floor = follow_the_floor(turns)
    spoken = [SpeakerTurn(*turn) for turn in turns]
    melody, dynamics, _ = describe_speakers(recording.prosody(), spoken, join_speech(recording.speech()))
    return {
        "speakers": len({turn[0] for turn in turns}),
        "events": len(floor.kinds),
        "human_distance": jensen_shannon_distance(floor.counts, count_people("broadcast")),
        "gap_median": float(np.median(floor.offsets)) if floor.offsets else float("nan"),
        "overlap_share": floor.overlap / floor.speech if floor.speech else float("nan"),
        "backchannels": floor.backchannels,
        "f0_range": melody or float("nan"),
        "energy_range": dynamics or float("nan"),
    }


def compare(name: str, samples: np.ndarray, rate: int, truth: list[Turn], script: Script) -> None:
    """Print the figures for the known times, for diarisation, and with names from the script."""
    recording = Recording.from_samples(samples, rate)
    diarised, aligned = recording.diarization(), align_turns(recording, script, "en")
    sides: dict[str, Any] = {"truth": truth, "diarised, for pace": diarised, "script, for pace": aligned}
    sides["diarised"] = find_overlapping_turns(recording)
    recording.diarization = lambda: aligned  # type: ignore[method-assign]
    sides["names by script"] = find_overlapping_turns(recording)
    for side, turns in sides.items():
        plain = [turn if isinstance(turn, tuple) else (turn.speaker, turn.start, turn.end) for turn in turns]
        errors = count_errors(truth, plain, recording.duration)
        figures = {"error": errors[0] / errors[1], **measure(recording, plain)}
        print(f"| {name} | {side} | " + " | ".join(f"{value:.3f}" for value in figures.values()) + " |", flush=True)


def main() -> None:
    """Run the given command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["meetings", "script"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--against", type=Path)
    parser.add_argument("--topics", type=int, default=3)
    parser.add_argument("--one-voice", action="store_true", help="one voice reads the lines of both")
    parser.add_argument("--read", action="append", default=[], metavar="NAME=AUDIO,TURNS.json")
    options = parser.parse_args()
    if options.what == "script":
        titles = ("error", "speakers", "events", "human_distance", "gap_median", "overlap_share", "backchannels")
        print(
            "| dialogue | turns by | " + " | ".join((*titles, "f0_range", "energy_range")) + " |\n" + "|---" * 11 + "|"
        )
        for name, samples, truth, script in list_dialogues(options.topics, options.one_voice):
            compare(name, samples, RATE, truth, script)
        for given in options.read:
            name, _, files = given.partition("=")
            audio, turns = map(Path, files.split(","))
            lines = json.loads(turns.read_text(encoding="utf-8"))
            recording = Recording.open(audio)
            script = Script.parse([{"speaker": line["speaker"], "text": line["text"]} for line in lines])
            truth = [(line["speaker"], line["start"], line["end"]) for line in lines]
            compare(name, recording.samples, recording.rate, truth, script)
    elif options.folder is None:
        parser.error("meetings needs a folder")
    else:
        show_meetings(options.folder, options.against)


if __name__ == "__main__":
    main()
