"""Adding a metric and a server takes the steps of CONTRIBUTING.md and no other.

The steps are read from the page: paths, lines and commands are those that it names, with a toy's name in place of
`<name>`. The tests of form run on the result; with `long`, all tests do.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[1]
PAGE = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")

METRIC = '''"""Questions: how many of a script's turns ask something.

The share of turns that end in a question mark. Range 0 to 1, higher is livelier.

Differs from nothing that is published. PodEval has no such figure.
"""

from podeval.metrics import Key, Score, metric
from podeval.text.script import Script


@metric(
    name="questions",
    title="Questions",
    version="1.0",
    dimension="script.liveliness",
    keys=(Key("questions", "higher", "", (0, 1), about="turns that ask"),),
    paper="ours",
    intended_use="Telling lively dialogues from lectures; not a measure of how good a dialogue is.",
    limitations="It counts marks: a question without its mark is not counted, and a rhetorical question is.",
)
def questions(script: Script, *, mark: str = "?") -> Score:
    """Score one script.

    Args:
        script: the script.
        mark: the end of a question.
    """
    asking = sum(turn.text.rstrip().endswith(mark) for turn in script.turns)
    return Score(values={"questions": asking / len(script.turns)})
'''
METRIC_TEST = '''"""Turns that ask are counted."""

import pytest

from podeval.metrics.text.questions import questions
from podeval.text.script import Script, Turn


@pytest.mark.parametrize(("texts", "share"), [(["Why?", "So."], 0.5), (["So."], 0.0)])
def test_questions_are_counted(texts: list[str], share: float) -> None:
    score = questions({"script": Script(tuple(Turn("A", text) for text in texts))})
    assert score.values == {"questions": share}
'''
CHINESE = {
    "Questions": "问句",
    "how many of a script's turns ask something.": "脚本中提问的轮次有多少。",
    "turns that ask": "提问的轮次",
    "liveliness": "活跃度",
}
SERVER = '''"""`POST /say` of a toy: the whole script in one request, an answer in WAV."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from podeval.systems.servers.kinds.kind import DialoguePart, ServerKind, SpeechRequest, Voice


@dataclass(frozen=True)
class ToySpeech(ServerKind):
    """A server that reads a script in one piece."""

    name: ClassVar[str] = "toy"

    @property
    def performs(self) -> bool:
        """See `ServerKind`."""
        return True

    def count_speakers(self, clone: bool) -> int:
        """See `ServerKind`."""
        return 2

    def write_turn(self, text: str, voice: Voice, seed: int, *, stream: bool = False) -> SpeechRequest:
        """See `ServerKind`."""
        return SpeechRequest("say", {"model": self.model, "text": text, "voice": voice, "seed": seed})

    def write_dialogue(
        self, parts: Sequence[DialoguePart], voices: Mapping[str, Voice], seed: int, *, stream: bool = False
    ) -> SpeechRequest:
        """See `ServerKind`."""
        lines = [f"{voices[part.speaker]}: {part.text}" for part in parts]
        return SpeechRequest("say", {"model": self.model, "lines": lines, "seed": seed})
'''
SERVER_TEST = '''"""The toy speaks a whole script in one request."""

from podeval.systems.servers.connection import ServerConnection
from podeval.systems.servers.speech_endpoint import SpeechEndpoint
from podeval.systems.speech import Ask
from podeval.text.script import Turn
from tests.fakes.loopback_speech import Reply, SpeechServer, wav


def test_a_script_is_spoken_in_one_request() -> None:
    with SpeechServer(lambda request: Reply(((0.0, wav(1.0)),))) as server:
        system = SpeechEndpoint.open(ServerConnection(server.url), "m", server_kind="toy", voice=("a", "b"))
        (speech,) = system.make([Ask(id="i", script=(Turn("A", "Hi."), Turn("B", "Ho.")))], 0)
    assert server.requests[0]["lines"] == ["a: Hi.", "b: Ho."]
    assert len(speech.samples) == speech.rate
'''
FORM = (
    "tests/test_house.py",
    "tests/test_sizes.py",
    "tests/test_names.py",
    "tests/test_docstrings.py",
    "tests/test_docs.py",
    "tests/hf_metrics/test_sources.py",
    "tests/metrics/test_chinese.py",
)
"""Tests of what is made from declarations, and of form."""
EXAMPLES = "runs_as_it_stands or is_what_its_example_gives or is_told_what_to_install"
"""Tests that run something of every metric; of those here only the new metric's are run."""


def read_steps(title: str) -> list[str]:
    """Read the numbered steps below a heading of CONTRIBUTING.md, each as one line."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\d+\. (.+?)(?=^\d+\. |^\n|\Z)", section, re.MULTILINE | re.DOTALL)
    return [" ".join(step.split()) for step in steps]


def named(step: str, ending: str, **places: str) -> str:
    """Return the one code span of a step with an ending, its places filled in."""
    (span,) = [span for span in re.findall(r"`([^`]+)`", step) if span.endswith(ending)]
    for place, value in places.items():
        span = span.replace(f"<{place}>", value)
    return str(span)


class Checkout:
    """A copy of this checkout, changed step by step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        paths = subprocess.run(
            ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
        ).stdout
        for path in filter(None, paths.split("\0")):
            if (CHECKOUT / path).is_file():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / path, folder / path)
        # What is compiled already need not be compiled again.
        for compiled in CHECKOUT.glob("[bst]*/**/__pycache__"):
            shutil.copytree(compiled, folder / compiled.relative_to(CHECKOUT), dirs_exist_ok=True)
        self.run("git", "init", "-q")

    def write(self, path: str, text: str) -> None:
        assert not (self.folder / path).exists()
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")

    def add_line(self, path: str, after: str, line: str) -> None:
        """Add a line after the first that begins with some words."""
        text = (self.folder / path).read_text(encoding="utf-8")
        old = next(old for old in text.splitlines(keepends=True) if old.strip().startswith(after))
        indent = old[: len(old) - len(old.lstrip())]
        (self.folder / path).write_text(text.replace(old, f"{old}{indent}{line}\n", 1), encoding="utf-8")

    def run(self, *words: str) -> str:
        """Run a program in the copy, on its own podeval."""
        folders = os.pathsep.join(map(str, (self.folder / "benchmark", self.folder)))
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": folders},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def python(self, command: str, *words: str) -> str:
        """Run a command of the page that begins with `python`."""
        program, *rest = command.split()
        assert program == "python"
        return self.run(sys.executable, *rest, *words)

    def raise_limits(self, step: str) -> None:
        """Write what there is into the table of limits, where a limit is passed."""
        self.run("git", "add", "-A")
        printed = self.python(named(step, "test_sizes.py"))
        page = self.folder / named(step, ".md")
        text = page.read_text(encoding="utf-8")
        for new, name, count in re.findall(r"^(\| (.+) \| ([\d,]+) \|)$", printed, re.MULTILINE):
            old = re.search(rf"^\| {name} \| ([\d,]+) \|$", text, re.MULTILINE)
            assert old is not None
            if int(count.replace(",", "")) > int(old[1].replace(",", "")):
                text = text.replace(old[0], new)
        page.write_text(text, encoding="utf-8")

    def podeval(self, *words: str) -> str:
        program = f"import sys; sys.argv = ['podeval', *{list(words)!r}]\nfrom podeval.cli import main\nmain()"
        return self.run(sys.executable, "-c", program)

    def test(self, *words: str) -> None:
        self.run("git", "add", "-A")
        self.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout after all steps, for a metric and for a server; what is last in both is done once, at the end."""
    changed = Checkout(tmp_path_factory.mktemp("contributor") / "podeval")
    add_metric(changed, *read_steps("Add a metric"))
    add_server(changed, *read_steps("Add a server"))
    return changed


def add_metric(checkout: Checkout, *steps: str) -> None:
    arithmetic, file, use, chinese, example, generate, test, sizes = steps
    assert "arithmetic" in arithmetic  # the toy has none of its own
    checkout.write(named(file, ".py", folder="text", name="questions"), METRIC)
    line = named(use, "keys=(...))", name="questions").replace("(...)", '("questions",)')
    checkout.add_line("benchmark/podeval/benchmarks/real_pod.py", 'MetricUse(name="mattr"', f"{line},")
    catalogue = named(chinese, ".po")
    entries = "".join(f'\nmsgid "{english}"\nmsgstr "{chinese}"\n' for english, chinese in CHINESE.items())
    with (checkout.folder / catalogue).open("a", encoding="utf-8") as lines:
        lines.write(entries)
    checkout.python(named(example, ".py"), "questions")
    assert named(generate, "generate_docs")
    assert "Test it" in test
    checkout.write("tests/metrics/test_questions.py", METRIC_TEST)
    assert named(sizes, "test_sizes.py")


def add_server(checkout: Checkout, file: str, line: str, test: str, generate: str) -> None:
    checkout.write(named(file, "<name>.py").replace("<name>", "toy"), SERVER)
    table = "benchmark/podeval/" + named(line, "__init__.py")
    checkout.add_line(table, '"piper":', '"toy": "toy:ToySpeech",')
    assert named(test, ".py") == "tests/fakes/loopback_speech.py"
    checkout.write("tests/systems/test_toy_server.py", SERVER_TEST)
    checkout.python(named(generate, "generate_docs"))
    checkout.raise_limits(generate)


@pytest.mark.long
def test_the_metric_is_listed_measured_and_on_the_board_in_both_languages(checkout: Checkout, tmp_path: Path) -> None:
    assert "questions            Questions: how many of a script's turns ask something." in checkout.podeval(
        "metrics", "list"
    )
    script = tmp_path / "script.txt"
    script.write_text("Host 1: Why is the sea salty?\nHost 2: Rivers carry salt.", encoding="utf-8")
    line: dict[str, Any] = json.loads(checkout.podeval("measure", "questions", str(script), "--json").splitlines()[0])
    assert line["questions"] == 0.5
    assert line["protocol"]["id"].startswith("questions@1.0-")
    card = (checkout.folder / "hf_metrics" / "questions" / "README.md").read_text(encoding="utf-8")
    assert "| `questions` | higher |  | 0 to 1 | turns that ask |" in card
    program = (
        "from podeval.board.words import Words\n"
        "from podeval.board.columns import get_column\n"
        "column = get_column('questions', 'questions', 'script.liveliness')\n"
        "print([(Words({}, x).dimension(column.dimension), column.header_in(x)) for x in ('en', 'zh')])"
    )
    shown = checkout.run(sys.executable, "-c", program)
    assert "Questions ↑" in shown
    assert "问句 ↑" in shown


@pytest.mark.long
def test_the_server_is_offered(checkout: Checkout) -> None:
    assert "toy" in checkout.podeval("run", "--help")


@pytest.mark.long
def test_what_is_made_from_declarations_is_current_and_the_tests_pass(checkout: Checkout) -> None:
    checkout.run(sys.executable, "-m", "ruff", "check", ".")
    checkout.run(sys.executable, "-m", "ruff", "format", "--check", ".")
    chosen = ("-k", f"questions or not ({EXAMPLES})")
    checkout.test("tests/metrics/test_questions.py", "tests/systems/test_toy_server.py", *FORM, *chosen)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_all_tests_pass(checkout: Checkout) -> None:
    checkout.test()
