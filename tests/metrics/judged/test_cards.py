"""The example of each judged metric's card runs as it stands, given a judge and the files it names."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from podeval.metrics import catalogue, judge_use
from podeval.metrics.judged.dialogue_judge import KEYS
from podeval.metrics.judged.script_quality import FIRST, POINTS
from podeval.models import registry

CARDS = Path(__file__).parents[3] / "hf_metrics"
JUDGED = [name for name in catalogue.NAMES if catalogue.get(name).asks]
HALF = 2.5


def answer(question: Any) -> Any:
    """Something that every prompt of these metrics accepts."""
    quote = "Rivers carry salt"
    if question.prompt == "dialogue_compare":
        return {"analysis": "a", **dict.fromkeys(KEYS, 1)}
    if question.prompt == "script_quality":
        return {
            name: {
                "items": [
                    {"item": FIRST[name] + number, "quotes": [quote], "reason": "r", "score": most / 2}
                    for number, most in enumerate(points)
                ],
                "score": sum(points) / 2,
            }
            for name, points in POINTS.items()
        }
    if question.prompt == "podcast_checklist":
        return {"checklist": [{"requirement": f"Names {what}.", "kind": "explicit"} for what in ("A", "B", "C")]}
    if question.prompt == "script_audit":
        return {"items": [{"number": n, "quotes": [quote], "reason": "r", "score": 0.5} for n in (1, 2, 3)]}
    if question.prompt == "script_claims":
        words, source = question.inputs["part"].split(), " ".join(question.inputs["sources"].split()[:6])
        supported = {"quote": " ".join(words[:8]), "verdict": "supported", "source_quote": source}
        return {"claims": [supported, {"quote": " ".join(words[-8:]), "verdict": "not_found"}]}
    if question.prompt == "podcast_topic":
        return {"about": "the sea", "score": 0.5}
    if question.prompt == "essential_clauses":
        words = question.inputs["answer"].split(", ")
        return {"clauses": [{"text": text, "essential": not number} for number, text in enumerate(words)]}
    if question.prompt == "rubric_transcript":
        names = [line.partition(":")[0] for line in question.inputs["criteria"].splitlines()]
        return {"verdicts": [{"criterion": name, "met": number % 2} for number, name in enumerate(names)]}
    notes = dict.fromkeys(("flow", "stress_and_melody", "naturalness", "arc", "dynamics", "fit"), "n")
    return {"notes": notes, "performance": "p", "score": HALF}


EXPECTED = {
    "dialogue_judge": 0.0, "grounding": 50.0, "script_grounding": 50.0, "script_quality": 50.0, "rubric": 50.0,
    "instruction_following": 50.0,
    # "At nine" of "At nine, from platform two."
    "content_density": 40.0, "prosodic_coherence": HALF, "expressive_richness": HALF, "expressive_hierarchy": HALF,
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.models if catalogue.get(n).needs else ()) for n in JUDGED]
)
def test_the_example_of_the_card_runs_as_it_stands(
    name: str, judge: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any,
    speech_like: np.ndarray[Any, Any],
) -> None:  # fmt: skip
    evaluate = pytest.importorskip("evaluate")
    from podeval.measuring.evaluate_module import module

    for job in catalogue.get(name).needs:
        if missing := registry.get_card(job, "embedded").missing():
            pytest.skip(missing)
    made = judge(answer, hears=True)
    shutil.copy(made.bench.judge, tmp_path / "judge.yaml")
    soundfile.write(tmp_path / "episode.wav", speech_like, 16_000)
    monkeypatch.chdir(tmp_path)
    # What a judge hears is also read for words to it: tests/metrics/judged/test_gaming_of_judges.py.
    monkeypatch.setattr(judge_use, "transcribe_spoken_words", lambda inputs: {})
    monkeypatch.setattr(evaluate, "load", lambda path: module(path.removeprefix("podeval/"))())
    (example,) = re.findall(r"```python\n(.*?)```", (CARDS / name / "README.md").read_text("utf-8"), flags=re.DOTALL)
    exec(example, {})
    value, protocol = capsys.readouterr().out.split()
    assert float(value) == EXPECTED[name]
    assert protocol.startswith(f"{name}@")
    assert made.questions
