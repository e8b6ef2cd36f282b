"""Measure how well `podeval proof` finds sentences that differ from the text: the study behind docs/proof.md.

    python studies/proof_faults.py run WORK --source hibari_piper --chapters 10
    python studies/proof_faults.py report WORK

A chapter is a script of Real-Pod in one built-in voice, or a random sequence of clips by LibriTTS-R's readers. One
sentence in eight has a planted fault: it is left out, said twice, preceded by a sentence of another text, or differs
from the book in one word (any word of at least four letters in place of any other, similar or not). WORK/proofed.jsonl
has a line for each chapter, so the same command resumes after a run was killed; transcripts stay in WORK/cache.
`report` adds the counts of each chapter to docs/studies/proof-faults.csv, and chapters in that file are not checked
again, so ten hours can be measured on several machines. The 51 scripts last about 2.8 hours in each voice.
"""

import argparse
import csv
import json
import os
import random
import re
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import soundfile

from podeval.measuring.proof import FAULTY, proof_book
from podeval.text.book import read_book
from podeval.text.script import Script
from podeval.text.tokens import split_sentences
from studies import log
from studies.planted_dialogues import DATA, INVENTED, PAUSE, PEOPLE, Voices, open_clip, read_scripts

EXPECTED = {"left out": "missing", "said twice": "twice", "word exchanged": "misread", "sentence added": "added_before"}
"""The expected verdict on a sentence, by its planted fault."""
ONE_OF = 8
"""Number of sentences of which one has a fault."""
OUTCOME = Path(__file__).parents[1] / "docs" / "studies" / "proof-faults.csv"
COLUMNS = ("source", "chapter", "seconds", "planted", "sentences", "found", "right_verdict")
NOTHING = "nothing (false alarms)"
CLIPS = 18
"""Number of clips in a chapter that people read."""


def make_chapter(source: str, number: int, folder: Path) -> list[str]:
    """Make a chapter as `chapter.md` and `chapter.wav`; return the planted fault of each sentence."""
    chance = random.Random(f"{source} {number}")
    if source == PEOPLE:
        lists = [(DATA / f"real_pod_{name}.json").read_text(encoding="utf-8") for name in ("voices", "long_voices")]
        voices = [row for text in lists for row in json.loads(text)["voices"]]
        clips = chance.sample([row for row in voices if len(split_sentences(row["words"])) == 1], CLIPS + 3)
        texts, rate = [row["words"] for row in clips[3:]], 24_000
        sounds, added = [open_clip(row["file"]) for row in clips[3:]], [open_clip(row["file"]) for row in clips[:3]]
    else:
        script, system = read_scripts()[number], Voices(source)
        texts = [text for turn in script.turns for text in split_sentences(turn.text) if len(text.split()) > 2]
        one = Script.from_turns([("1", text) for text in (*texts, *INVENTED)])
        said = [system.say(one, at, 0, text) for at, text in enumerate((*texts, *INVENTED))]
        sounds, added, rate = said[: len(texts)], said[len(texts) :], system.rate
    words = [word for text in texts for word in re.findall(r"[A-Za-z]{4,}", text)]
    planted, parts = [], list[Any]()
    for at, sound in enumerate(sounds):
        kind = chance.choice([*EXPECTED]) if 0 < at < len(sounds) - 1 and chance.randrange(ONE_OF) == 0 else ""
        planted.append(kind)
        if kind == "word exchanged":
            old = chance.choice(re.findall(r"[A-Za-z]{4,}", texts[at]) or [""])
            new = chance.choice([word for word in words if word.lower() != old.lower()])
            texts[at] = texts[at].replace(old, new, 1) if old else texts[at]
            planted[-1] = kind if old else ""
        times = {"left out": 0, "said twice": 2}.get(kind, 1)
        parts += [chance.choice(added)] * (kind == "sentence added") + [sound] * times
    pause = np.zeros(round(PAUSE * rate), np.float32)
    sound = np.concatenate([piece for part in parts for piece in (part, pause)])
    sound = sound + np.random.default_rng(number).normal(0, 2e-5, len(sound))
    folder.mkdir(parents=True, exist_ok=True)
    soundfile.write(folder / "chapter.wav", sound.astype(np.float32), rate)
    (folder / "chapter.md").write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return planted


def read_outcome() -> dict[tuple[str, int], list[dict[str, str]]]:
    """Return the counts of every chapter that was ever checked, by source and number."""
    chapters = defaultdict[tuple[str, int], list[dict[str, str]]](list)
    with OUTCOME.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            chapters[row["source"], int(row["chapter"])].append(row)
    return chapters


def run(work: Path, source: str, chapters: int) -> None:
    """Check the chapters that have not been checked yet."""
    os.environ["PODEVAL_CACHE"] = str(work / "cache")
    done = {(row["source"], row["number"]) for row in log.read(work / "proofed.jsonl")} | read_outcome().keys()
    for number in range(chapters):
        if (source, number) in done:
            continue
        folder = work / source / str(number)
        planted, begin = make_chapter(source, number, folder), time.process_time()
        proof = proof_book(read_book(folder / "chapter.md"), "chapter.md", [folder / "chapter.wav"])
        rows = [sentence.to_json() for sentence in proof.sentences if sentence.kind != "end"]
        assert len(rows) == len(planted), "each paragraph is a sentence"
        line = {
            "source": source,
            "number": number,
            "seconds": sum(proof.recordings.values()),
            "processor": time.process_time() - begin,
            "planted": planted,
            "sentences": rows,
        }
        with log.append(work / "proofed.jsonl") as file:
            file.write(json.dumps(line) + "\n")
        print(source, number, f"{line['seconds']:.0f} s proofed in {line['processor']:.0f} s", flush=True)


def report(work: Path) -> None:
    """Add the chapters' counts to the table of all chapters, and print its totals and the wrong verdicts in these
    chapters.
    """
    outcome = read_outcome()
    sure: dict[str, Counter[bool]] = defaultdict(Counter)
    for row in log.read(work / "proofed.jsonl"):
        pairs = list(zip(row["planted"], row["sentences"], strict=True))
        counts = list[dict[str, str]]()
        for kind, verdict in {**EXPECTED, "": "as_written"}.items():
            of_kind = [sentence["verdict"] for planted, sentence in pairs if planted == kind]
            found = sum(each in FAULTY for each in of_kind)
            figures = (len(of_kind), found, of_kind.count(verdict))
            cells = (row["source"], row["number"], round(row["seconds"], 1), kind or NOTHING, *figures)
            counts.append(dict(zip(COLUMNS, map(str, cells), strict=True)))
        outcome[row["source"], row["number"]] = counts
        for planted, sentence in pairs:
            if sentence["verdict"] in FAULTY:
                sure[sentence["confidence"]][bool(planted)] += 1
                if not planted:
                    print(
                        "false:", sentence["verdict"], sentence["confidence"], sentence["text"], "|", sentence["heard"]
                    )
    print({confidence: f"{count[True]} of {count.total()} faults are real" for confidence, count in sure.items()})
    with OUTCOME.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(row for chapter in sorted(outcome) for row in outcome[chapter])
    for source in dict.fromkeys(source for source, _ in sorted(outcome)):
        of_source = [rows for (name, _), rows in outcome.items() if name == source]
        minutes = sum(float(rows[0]["seconds"]) for rows in of_source) / 60
        print(
            f"\n{source}: {minutes:.1f} minutes\n\n| planted | sentences | found | right verdict |\n|---|---|---|---|"
        )
        for kind in (*EXPECTED, NOTHING):
            sums = Counter[str]()
            for row in (row for rows in of_source for row in rows if row["planted"] == kind):
                sums.update({name: int(row[name]) for name in COLUMNS[4:]})
            print(f"| {kind} | {' | '.join(str(sums[name]) for name in COLUMNS[4:])} |")


def main() -> None:
    """Run the study, or report the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=("run", "report"))
    parser.add_argument("work", type=Path)
    parser.add_argument("--source", default="hibari_piper")
    parser.add_argument("--chapters", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.step == "run":
        run(arguments.work, arguments.source, arguments.chapters)
    report(arguments.work)


if __name__ == "__main__":
    main()
