"""A metric is one file, and one line in each benchmark that uses it: everything else is made from these."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[2]
FILE = '''"""Questions: how many of a script's turns ask something.

The share of turns that end in a question mark. Range 0 to 1, higher is livelier.

Differs from nothing that is published. PodEval has no such figure.
"""

from podeval.metrics.declaration import Key, metric
from podeval.metrics.score import Score
from podeval.text.script import Script


@metric(
    name="questions",
    title="Questions",
    version="1.0",
    dimension="script.liveliness",
    keys=(Key("questions", "higher", "", (0, 1), about="turns that ask"),),
    paper="none",
)
def questions(script: Script, *, mark: str = "?") -> Score:
    """Score one script.

    Args:
        script: what is counted.
        mark: what a question ends in.
    """
    asking = sum(turn.text.rstrip().endswith(mark) for turn in script.turns)
    return Score(values={"questions": asking / len(script.turns)})
'''
LINE = 'MetricUse(name="mattr", keys=("mattr",)),'
SCRIPT = "Host 1: Why is the sea salty?\nHost 2: Rivers carry salt."

PROGRAM = """
import json
from board_words import Words
from podeval import benchmarks
from podeval.board.columns import get_column, order_columns
from podeval.measuring import space_files
from podeval.metrics import catalogue

metric = catalogue.get("questions")
use = next(use for use in benchmarks.get("real_pod").metrics("write", "topics") if use.name == "questions")
chosen = [get_column(use.name, use.keys[0], metric.dimension), get_column("wer", "wer", "speech.accuracy")]
columns = order_columns(chosen)
words = Words({}, "zh")
print(json.dumps({
    "names": catalogue.NAMES,
    "card": space_files.write_card(metric),
    "example": space_files.write_example(metric),
    "english": [(one.id, one.header) for one in columns],
    "chinese": [(words.dimension(one.dimension), words.column(one)) for one in columns],
}))
"""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine with one file and one line more."""
    folder = tmp_path_factory.mktemp("checkout") / "benchmark"
    shutil.copytree(CHECKOUT / "benchmark" / "podeval", folder / "podeval", ignore=shutil.ignore_patterns("*.pyc"))
    (folder / "podeval" / "metrics" / "text" / "questions.py").write_text(FILE, encoding="utf-8")
    record = folder / "podeval" / "benchmarks" / "real_pod.py"
    text = record.read_text(encoding="utf-8")
    assert text.count(LINE) == 1
    record.write_text(
        text.replace(LINE, f'{LINE}\nMetricUse(name="questions", keys=("questions",)),'), encoding="utf-8"
    )
    # Cards tell what papers print of a metric, and pages what it is called in Chinese: both are beside the package.
    for source in ("submissions", "space", "hf_metrics"):
        (folder.parent / source).symlink_to(CHECKOUT / source)
    return folder


def test_it_is_in_the_catalogue_on_its_card_and_on_the_board_in_both_languages(engine: Path, run_python: Any) -> None:
    path = os.pathsep.join([str(engine), str(CHECKOUT / "space")])
    seen = json.loads(run_python(PROGRAM, PYTHONPATH=path).splitlines()[-1])
    assert seen["names"][-1] == "questions"
    assert "emoji: 📝" in seen["card"]
    assert "| `questions` | higher |  | 0 to 1 | turns that ask |" in seen["card"]
    assert "| `mark` | `?` | what a question ends in |" in seen["card"]
    assert 'evaluate.load("podeval/questions")' in seen["example"]
    assert seen["english"] == [["questions.questions", "Questions ↑"], ["wer.wer", "WER ↓"]]
    assert seen["chinese"] == [["脚本 · liveliness", "Questions ↑"], ["语音 · 准确性", "词错误率 ↓"]]


@pytest.mark.long
def test_the_command_line_lists_explains_and_measures_it(engine: Path, run_python: Any, tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text(SCRIPT, encoding="utf-8")

    def podeval(*words: str) -> str:
        program = f"import sys; sys.argv = ['podeval', *{list(words)!r}]\nfrom podeval.cli import main\nmain()"
        return str(run_python(program, PYTHONPATH=str(engine)))

    assert "questions            Questions: how many of a script's turns ask something." in podeval("metrics", "list")
    assert "questions (higher, 0 to 1): turns that ask" in podeval("metrics", "show", "questions")
    line = json.loads(podeval("measure", "questions", str(script), "--json").splitlines()[0])
    assert line["questions"] == 0.5
    assert line["protocol"]["id"].startswith("questions@1.0-")
