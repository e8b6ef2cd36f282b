"""Every command that README and docs/ print is run as printed, or stands in `commands_not_run.yaml` with the reason.

A command is a line of a bash block, or a `podeval …` in the text that can be given as it stands. Those of a page are
run in its order, in a folder with what a reader has by then: a conversation of two people, two runs, manifests as
the pages themselves print them. What is not run has at least to be a command, with options that there are.
"""

import contextlib
import functools
import glob
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import soundfile
import typer
import typer.main
import yaml
from typer.testing import CliRunner

from podeval import benchmarks, cli
from podeval.errors import PodevalError
from podeval.runs.run import RunRequest, measure_run
from podeval.runs.run_folder import Output, RunFolder, RunPlan
from podeval.store.database import Database
from podeval.submissions.queue import Queue

REPOSITORY = Path(__file__).parents[1]
PAGES = ("README.md", *(str(page.relative_to(REPOSITORY)) for page in sorted(REPOSITORY.glob("docs/**/*.md"))))
BLOCK = re.compile(r"^```bash\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"`(podeval [^`]+)`")
PLACEHOLDER = re.compile(r"…|\b[A-Z]{1,9}\b(?![=@])")
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ID = "s0123456789ab"
"""The submission that pages speak of."""
SYSTEMS = ("hibari_piper", "espeak_ng")

WRONG = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""What podeval's parser raises; typer brings a click of its own."""
NOT_RUN: dict[str, str] = yaml.safe_load((Path(__file__).parent / "commands_not_run.yaml").read_text(encoding="utf-8"))


class Command(NamedTuple):
    """A command as it is printed, and where."""

    text: str
    place: str


def commands_of(page: str) -> list[Command]:
    """The commands of a page, in order."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    placed: dict[int, str] = {}
    for block in BLOCK.finditer(text):
        at = block.start(1)
        for line in re.sub(r"\\\n\s*", " ", block[1]).splitlines():
            command = re.sub(r"\s+#.*$", "", line).strip()
            if command:
                placed[at] = command
            at += len(line) + 1
    for inline in INLINE.finditer(text):
        words = " ".join(inline[1].split())
        if not PLACEHOLDER.search(words) and is_whole(words):
            placed[inline.start()] = words
    return [Command(placed[at], f"{page}:{text.count(chr(10), 0, at) + 1}") for at in sorted(placed)]


@functools.cache
def podeval() -> Any:
    """The command line, put together once: that takes a tenth of a second."""
    return typer.main.get_command(cli.app)


def parsed(words: list[str]) -> None:
    """Have podeval's own parser read a command, and run nothing.

    Raises:
        WRONG: there is no such command or option, or something is missing.
    """
    command = podeval()
    left = list(words)
    while hasattr(command, "get_command"):
        context = command.make_context("podeval", [], resilient_parsing=True)
        found = command.get_command(context, left[0]) if left else None
        if found is None:
            raise typer.BadParameter(f"podeval {' '.join(words)} is no command")
        command = found
        left.pop(0)
    command.make_context(command.name, left)


def is_whole(text: str) -> bool:
    """Whether it can be given as it stands."""
    with contextlib.suppress(WRONG):
        parsed(shlex.split(text)[1:])
        return True
    return False


COMMANDS = {page: commands_of(page) for page in PAGES}


def test_what_is_not_run_is_printed_somewhere_and_has_a_reason() -> None:
    printed = {command.text for commands in COMMANDS.values() for command in commands}
    assert set(NOT_RUN) <= printed, set(NOT_RUN) - printed
    assert all(len(reason.split()) > 2 for reason in NOT_RUN.values())
    # Run from here, they would change the environment that the tests run in.
    assert {text for text in printed if "pip install" in text} <= set(NOT_RUN)
    named = {file for reason in NOT_RUN.values() for file in re.findall(r"(?:studies|tests)/[\w/]+(?:\.py)?", reason)}
    assert not [file for file in named if not (REPOSITORY / file).exists()]


@pytest.mark.parametrize("text", [text for text in NOT_RUN if "podeval " in text and not text.startswith("pip")])
def test_a_command_that_is_not_run_is_one_that_podeval_takes(text: str) -> None:
    words = shlex.split(text)
    parsed(words[words.index("podeval") + 1 :])


def test_a_command_that_is_none_is_found_out() -> None:
    with pytest.raises(WRONG):
        parsed(["worker", "--onec"])
    with pytest.raises(WRONG):
        parsed(["wrok"])
    assert not is_whole("podeval run")


@pytest.fixture(scope="module")
def belongings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a reader of a page has: recordings, a script, runs of two systems."""
    folder = tmp_path_factory.mktemp("reader")
    voices = {
        voice.id: voice for item in benchmarks.get("real_pod").items("long") for voice in item.reference_voices.values()
    }
    pair = {"HOST": voices["libritts_r_1923"], "GUEST": voices["libritts_r_4280"]}
    sounds = []
    for speaker, voice in pair.items():
        samples, rate = soundfile.read(voice.recording(), dtype="float32")
        soundfile.write(folder / f"{speaker.lower()}.wav", samples, rate)
        sounds += [samples, np.zeros(rate // 2, np.float32)]
    soundfile.write(folder / "episode.wav", np.concatenate(sounds), rate)
    script = [{"speaker": speaker, "text": voice.words} for speaker, voice in pair.items()]
    (folder / "script.json").write_text(json.dumps(script))
    for number, system in enumerate(SYSTEMS):
        write_run(folder / "runs", system, 200.0 + 90 * number)
    (folder / "submissions").mkdir()
    shutil.copy(REPOSITORY / "submissions/template.yaml", folder / "submissions")
    return folder


def write_run(runs: Path, system: str, pitch: float) -> None:
    """A run of the demo split: tones of half a second at 8 kHz, which metrics with models refuse in no time."""
    real_pod = benchmarks.get("real_pod")
    plan = RunPlan(
        benchmark="real_pod",
        split="demo",
        dataset="",
        track="voice",
        system=system,
        system_title=system,
        system_kind="model",
        generation={},
        seed=0,
    )

    def made(folder: RunFolder, items: Any) -> Iterator[Any]:
        time = np.arange(4_000, dtype=np.float32) / 8_000
        for number, item in enumerate(items):
            tone = 0.3 * np.sin(2 * np.pi * (pitch + 7 * number) * time).astype(np.float32)
            folder.write_output(Output(item=item.id, duration=0.5), tone[:, np.newaxis], 8_000)
            yield item

    measure_run(plan, RunRequest(real_pod, "demo", "voice", runs), making=made)


class Reader:
    """Somebody who gives a page's commands, one after the other, in a folder of their own."""

    def __init__(self, folder: Path, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.page = page
        self.id = ID

    def give(self, text: str) -> str:
        """Give a command; what it prints.

        Raises:
            AssertionError: it was refused.
        """
        self._prepare(text)
        text = text.replace("/backups/", f"{shlex.quote(str(self.folder))}/backups/").replace(ID, self.id)
        if not text.startswith("podeval "):
            subprocess.run(["bash", "-ec", text], check=True)
            return ""
        command, _, target = text.partition(" > ")
        words = [each for word in shlex.split(command)[1:] for each in (sorted(glob.glob(word)) or [word])]
        done = CliRunner().invoke(cli.app, words)
        if isinstance(done.exception, PodevalError):
            raise AssertionError(f"podeval: {done.exception}")
        assert done.exit_code == 0, done.output if done.exception is None else repr(done.exception)
        if target:
            Path(target).write_text(done.stdout)
        if words[0] == "submit" and ": queued" in done.output:
            self.id = done.output.partition(":")[0]
        return done.output

    def _prepare(self, text: str) -> None:
        """What the page says comes before a command, or what a reader has whom it is for."""
        match text.split()[1:]:
            case ["arena", "add", name] if name.endswith(".yaml"):
                self._write_block(name)
                for file in ("user/7-3.wav", "human/7-3.wav"):
                    write_tone(self.folder / file, 12.0)
            case ["listening", "new" | "check" as step, *_, name]:
                if step == "check":
                    self._write_block(name)
                for who in ("reference", "HQ", "LQ", "aria", "basso"):
                    write_tone(self.folder / who / "Arts.wav", 1.0)
            case ["listening", "read", _]:
                (self.folder / "results").mkdir()
                marks = [f"s1,Arts,{who},{score}" for who, score in (("aria", 60), ("basso", 40), ("reference", 99))]
                lines = "\n".join(["session_uuid,trial_id,rating_stimulus,rating_score", *marks])
                (self.folder / "results/lab.csv").write_text(lines)
            case ["listening", "add", "config.yaml", _]:
                (self.folder / "config.yaml").write_text(yaml.safe_dump(WEBMUSHRA))
            case ["submit", name, *_] if self.id == ID:
                self._fill_in(self.folder / name)
            case ["admin", "takedown", *_]:
                publish(self.id)
            case ["restore", *_]:
                (self.folder / "runs").rename(self.folder / "runs of before")
            case ["report", "agreement", *_]:
                items = [item.id for item in benchmarks.get("real_pod").items("demo")]
                rows = [f"{system},{item},3,r{rater}" for system in SYSTEMS for item in items for rater in range(2)]
                (self.folder / "listeners.csv").write_text("\n".join(["system,item,score,rater", *rows]))
                votes = [f"{a},{b},a,v{number % 6}" for number, (a, b) in enumerate(["ab", "bc", "ca", "ba"] * 6)]
                (self.folder / "votes.csv").write_text("\n".join(["first,second,outcome,voter", *votes]))
            case ["models", "install", *_]:
                # It makes the metrics known where all programs of a user look.
                self.monkeypatch.setattr("evaluate.config.HF_MODULES_CACHE", str(self.folder / "modules"))
            case ["retention"]:
                self.monkeypatch.setenv("PODEVAL_RUNS_GB", "5")

    def _write_block(self, name: str) -> None:
        """The manifest as the page prints it."""
        block = YAML.search((REPOSITORY / self.page).read_text(encoding="utf-8"))
        assert block
        (self.folder / name).write_text(block[1])

    def _fill_in(self, folder: Path) -> None:
        """The template with what a submitter writes into it: outputs in a folder beside it."""
        folder.mkdir(exist_ok=True)
        plain = yaml.safe_load((REPOSITORY / "submissions/template.yaml").read_text(encoding="utf-8"))
        plain["system"]["description"] = "A voice for this test."
        plain["source"] = {"kind": "outputs", "folder": "outputs"}
        (folder / "submission.yaml").write_text(yaml.safe_dump(plain))
        (folder / "outputs").mkdir(exist_ok=True)
        for item in benchmarks.get("real_pod").items("topics"):
            (folder / f"outputs/{item.id}.flac").write_bytes(b"fLaC")


WEBMUSHRA = {
    "testname": "Lab",
    "testId": "lab",
    "pages": [
        {
            "type": "mushra",
            "id": "Arts",
            "reference": "reference/Arts.wav",
            "stimuli": {"aria": "aria/Arts.wav", "basso": "basso/Arts.wav"},
        }
    ],
}
"""A test as webMUSHRA has it."""


def publish(id: str) -> None:
    """Have a submission published in the database of the folder of runs, without anything to work on."""
    with Database("runs/podeval.db") as database:
        queue = Queue(database)
        claim = queue.claim("here:1")
        assert claim
        assert claim.id == id
        queue.advance(claim, "running", "measured")
        queue.advance(claim, "measured", "published")


def write_tone(file: Path, seconds: float) -> None:
    """A tone as a file of its own."""
    file.parent.mkdir(parents=True, exist_ok=True)
    pitch = 200.0 + sum(map(ord, str(file.parent.name)))
    soundfile.write(file, 0.3 * np.sin(2 * np.pi * pitch * np.arange(round(seconds * 16_000)) / 16_000), 16_000)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.long if page in ("docs/proof.md", "docs/validity.md") else ())
        for page in PAGES
        if {text for text, _ in COMMANDS[page]} - set(NOT_RUN)
    ],
)
def test_the_commands_of_a_page_do_what_it_says(
    page: str, belongings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "here"
    shutil.copytree(belongings, folder)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    reader = Reader(folder, page, monkeypatch)
    refused = {}
    for command in COMMANDS[page]:
        if command.text not in NOT_RUN:
            try:
                reader.give(command.text)
            except (AssertionError, subprocess.CalledProcessError) as error:
                refused[f"{command.place}: {command.text}"] = str(error)[-300:]
    assert not refused
