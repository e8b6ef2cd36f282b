"""Compute each peer's values on the inputs of tests/peers, record them, and print the table of docs/validity.md.

    PYTHONPATH=benchmark:. python studies/peers.py PEER… [--packages FOLDER]… [--sources FOLDER]

Each peer is a package in a folder that `--packages` appends to Python's path: meeteval 0.4.3 (built from source) with
kaldialign, torchmetrics 1.9.0 with torchaudio and gammatone, SRMRpy fee0097, speechmos 0.0.1.1, distillmos 0.9.1,
arena-rank 0.1.1 with jax 0.8.1. `--sources` contains checkouts of `meeteval` and `evalica`, whose own test data are
read.
"""

import argparse
import itertools
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.peers.ours import DATA, OURS, RATE, SAMPLES, is_equal, load_sound

Pair = tuple[str, dict[str, Any], list[float]]
"""The name of a case, its input, and the peer's values."""

VOICES = sorted(path.name for path in SAMPLES.glob("sense*.wav"))
DIALOGUES = ["dialogue_espeak.flac", "dialogue_kokoro.flac", "ami_trn00.flac", "speech_music_mix_0dB.flac"]


# Peers for words.


def ask_meeteval(sources: Path) -> Iterator[Pair]:
    """Yield meeteval's counts for the sessions in its example files, the talks in its docstrings, and random talks with
    silent speakers.
    """
    from meeteval.io import load
    from meeteval.wer import cp_word_error_rate

    def pair(name: str, reference: dict[str, str], heard: dict[str, str]) -> Pair:
        cp = cp_word_error_rate(reference, heard)
        return name, {"reference": reference, "heard": heard}, [cp.errors, cp.length]

    for one, other in (("ref", "hyp"), ("refA", "hypA"), ("refB", "hypB")):
        talks = [load(sources / "meeteval" / "example_files" / f"{name}.stm").to_seglst() for name in (one, other)]
        for session in sorted(talks[0].unique("session_id")):
            spoken: list[dict[str, str]] = []
            for talk in talks:
                words: dict[str, list[str]] = {}
                for segment in talk.filter(lambda each, session=session: each["session_id"] == session):
                    words.setdefault(segment["speaker"], []).append(segment["words"])
                spoken.append({who: " ".join(" ".join(said).split()) for who, said in words.items()})
            yield pair(f"example_files/{one}.stm, {session}", *spoken)
    for reference, heard in (
        (["a b c", "d e f"], ["a b c", "d e f"]),
        (["a b", "c d"], ["a b", "c d", "e f"]),
        (["a", "b", "c d"], ["a", "b"]),
        (["a", "b", "c"], ["b", "c", "d", "a"]),
        (["a b"], ["z", "a e f"]),
        (["a b", "k"], [" ", "a e f"]),
        (["Hello World"], ["Hello World"]),
    ):
        named = (
            {f"{letter}{at}": words for at, words in enumerate(said)}
            for letter, said in zip("rh", (reference, heard), strict=True)
        )
        yield pair("docstring of cp_word_error_rate", *named)
    chance = random.Random(7)
    for number in range(60):
        talks_of_chance = [
            {f"{letter}{at}": " ".join(chance.choices("abcdefg", k=chance.randint(0, 30))) for at in range(speakers)}
            for letter, speakers in zip("rh", (chance.randint(1, 8), chance.randint(1, 8)), strict=True)
        ]
        if all(any(talk.values()) for talk in talks_of_chance):
            yield pair(f"letters a to g, {number}", *talks_of_chance)


def ask_torchmetrics_text(sources: Path) -> Iterator[Pair]:
    """Yield torchmetrics' WER and CER for the inputs of its own tests, and for random words."""
    from torchmetrics.functional.text import char_error_rate, word_error_rate

    own = [
        ("hello world", "hello world"),
        ("what a wonderful day", "what a day"),
        ("i like monthy python", "i like python"),
        ("what do you mean, african or european swallow", "what you mean or swallow"),
        ("hello world", "hello duck"),
        ("this is the reference", "this is the prediction"),
        ("there is another one", "there is an other sample"),
        (
            "It is a guide to action that ensures that the military will forever heed Party commands",
            "It is a guide to action which ensures that the military always obeys the commands of the party",
        ),
        (
            "he was interested in world history because he read the book",
            "he read the book because he was interested in world history",
        ),
        ("the  cat is     on the mat ", "the cat the   cat on the mat "),
        ("the  cat is     on the mat ", "he read the book because he was interested in world history"),
    ]
    chance = random.Random(3)
    words = ["sea", "salt", "tide", "it's", "München", "naïve", "海", "25", "e-mail", "U.S."]
    made = [[" ".join(chance.choices(words, k=chance.randint(low, 25))) for low in (1, 0)] for _ in range(60)]
    for name, pairs in (("own tests", own), ("words of chance", made)):
        for reference, heard in pairs:
            theirs = [float(rate([heard], [reference])) for rate in (word_error_rate, char_error_rate)]
            yield name, {"reference": reference, "heard": heard}, theirs


# Peers for sound.


def _list_srmr_cases(seconds: float, sounds: list[str]) -> Iterator[dict[str, Any]]:
    for sound, rate, fast, norm in itertools.product(sounds, (8_000, RATE), (False, True), (False, True)):
        yield {"sound": sound, "seconds": seconds, "rate": rate, "fast": fast, "norm": norm}


def ask_torchmetrics_srmr(sources: Path) -> Iterator[Pair]:
    """Yield the SRMR of torchmetrics, which is SRMRpy in torch, in all four modes and at both sampling rates of its
    tests.
    """
    import torch
    from torchmetrics.functional.audio import speech_reverberation_modulation_energy_ratio as rate_reverberation

    for case in _list_srmr_cases(1.0, ["noise 1", "whispered 0", VOICES[0]]):
        samples = torch.from_numpy(load_sound(case["sound"], case["seconds"], case["rate"]).astype(np.float64))
        value = rate_reverberation(samples, case["rate"], norm=case["norm"], fast=case["fast"])
        yield "", case, [float(value)]


def ask_srmrpy(sources: Path) -> Iterator[Pair]:
    """Yield the SRMR of SRMRpy itself."""
    from srmrpy import srmr

    for case in _list_srmr_cases(2.0, ["noise 1", "whispered 0", VOICES[0], VOICES[3], DIALOGUES[1]]):
        samples = load_sound(case["sound"], case["seconds"], case["rate"]).astype(np.float64)
        highest = 30 if case["norm"] else 128
        yield "", case, [float(srmr(samples, case["rate"], fast=case["fast"], norm=case["norm"], max_cf=highest)[0])]


def _list_sounds(*lengths: float) -> Iterator[dict[str, Any]]:
    for sound, seconds in itertools.product(["noise 1", "whispered 0", *VOICES[:2], *DIALOGUES], lengths):
        yield {"sound": sound, "seconds": seconds}


def ask_speechmos_dnsmos(sources: Path) -> Iterator[Pair]:
    """Yield the means over the windows that speechmos scores; it repeats recordings shorter than one window, and omits
    some windows of longer ones.
    """
    from speechmos import dnsmos

    for case in _list_sounds(4.0, 18.5):
        means = dnsmos.run(load_sound(**case), sr=RATE)
        yield "", case, [float(means[key]) for key in ("sig_mos", "bak_mos", "ovrl_mos", "p808_mos")]


def ask_speechmos_plcmos(sources: Path) -> Iterator[Pair]:
    """Yield the mean PLCMOS of four calls, each with random listeners."""
    from speechmos import plcmos

    np.random.seed(0)
    for case in _list_sounds(4.0):
        yield "", case, [float(np.mean([plcmos.run(load_sound(**case), sr=RATE)["plcmos"] for _ in range(4)]))]


def ask_distillmos(sources: Path) -> Iterator[Pair]:
    """Yield the value of distillmos for recordings of at most one window; for longer ones, it returns the mean, and
    podeval a value for each window.
    """
    import distillmos
    import torch

    network = distillmos.ConvTransformerSQAModel().eval()
    for case in _list_sounds(2.0, 7.5):
        with torch.inference_mode():
            value = float(network(torch.from_numpy(load_sound(**case))[None]))
        yield "", case, [value]


# Peers for battles.


def _read_evalica(sources: Path, golden: str) -> Iterator[tuple[str, list[tuple[str, str, str]], dict[str, float]]]:
    import pandas

    for name in ("simple", "food", "llmfao"):
        table = pandas.read_csv(sources / "evalica" / f"{name}.csv", dtype=str)
        outcomes = table.winner.map({"left": "a", "right": "b", "tie": "tie"})
        battles = list(zip(table.left, table.right, outcomes, strict=True))
        of_method = pandas.read_csv(sources / "evalica" / f"{name}-golden.csv").query("algorithm == @golden")
        yield name, battles, dict(sorted(zip(of_method["item"].astype(str), map(float, of_method.score), strict=True)))


def ask_evalica_elo(sources: Path) -> Iterator[Pair]:
    """Yield evalica's expected Elo ratings for its own three tables."""
    for name, battles, golden in _read_evalica(sources, "elo"):
        yield f"{name}.csv", {"battles": battles}, list(golden.values())


def ask_evalica_newman(sources: Path) -> Iterator[Pair]:
    """Yield evalica's expected strengths for its own three tables by Newman's method (Bradley–Terry with ties)."""
    for name, battles, golden in _read_evalica(sources, "newman"):
        strengths = np.array(list(golden.values()))
        yield f"{name}.csv", {"battles": battles}, list(strengths / np.exp(np.log(strengths).mean()))


def ask_arena_rank(sources: Path) -> Iterator[Pair]:
    """Yield arena-rank's strengths for the battles of its own test (Wikipedia's example), and for random battles
    without ties.
    """
    import pandas
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    wikipedia = [
        ("A", "B", 2),
        ("B", "A", 3),
        ("A", "D", 1),
        ("D", "A", 4),
        ("B", "C", 5),
        ("C", "B", 3),
        ("C", "D", 1),
        ("D", "C", 3),
    ]
    sets = {"test_wikipedia_example": [(one, other, "a") for one, other, times in wikipedia for _ in range(times)]}
    chance = random.Random(5)
    for number in range(12):
        names = "ABCDEFG"[: chance.randint(2, 7)]
        pairs = [chance.sample(names, 2) for _ in range(chance.choice((20, 60)))]
        sets[f"battles of chance, {number}"] = [(one, other, chance.choice("ab")) for one, other in pairs]
    for name, battles in sets.items():
        table = pandas.DataFrame(battles, columns=["model_a", "model_b", "winner"])
        columns = {"competitor_cols": ["model_a", "model_b"], "outcome_map": {"a": 1.0, "b": 0.0}}
        dataset = PairDataset.from_pandas(table, **columns, reweighted=False)
        model = BradleyTerry(len(dataset.competitors), scale=1.0, base=np.e, init_rating=0.0, ftol=1e-14, gtol=1e-12)
        model.fit(dataset)
        strengths = np.asarray(model.params["ratings"])
        yield name, {"battles": battles}, list(map(float, np.exp(strengths - strengths.mean())))


ASK: dict[str, Callable[[Path], Iterator[Pair]]] = {
    name.removeprefix("ask_"): function for name, function in list(globals().items()) if name.startswith("ask_")
}
LARGEST = 60_000
"""Maximum number of characters in a recorded input."""


def main() -> None:
    """Query each peer, record its values, and print a line for it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peers", nargs="+", choices=sorted(ASK))
    parser.add_argument("--packages", action="append", default=[])
    parser.add_argument("--sources", type=Path, default=Path())
    given = parser.parse_args()
    sys.path.extend(given.packages)
    for peer in given.peers:
        recorded, different = [], 0
        for name, inputs, theirs in ASK[peer](given.sources):
            ours = OURS[peer](**inputs)
            equal = is_equal(peer, ours, theirs)
            different += not equal
            if not equal:
                print(f"  {peer}, {name}: {json.dumps(inputs, ensure_ascii=False)[:200]}\n    {theirs}, ours {ours}")
            case = {"name": name, "input": inputs, "theirs": theirs, **({} if equal else {"ours": ours})}
            if len(json.dumps(inputs)) < LARGEST:
                recorded.append(case)
            else:
                print(f"  {peer}, {name}: compared, and too large to be recorded")
        lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in recorded)
        (DATA / f"{peer}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        print(f"{peer}: {len(recorded)} recorded, {different} different")


if __name__ == "__main__":
    main()
