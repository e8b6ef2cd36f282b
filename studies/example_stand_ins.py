"""Substitutes for judges, and for weights that are not in any package, in the examples on metric cards.

A scripted judge answers over loopback, through the client and prompts of a real judge, so the metric's own code reads,
checks and counts its answers. Models whose weights do not ship are replaced by random numbers, and the detectors around
them find speech and music everywhere. The windows, keys and types of the output are then the metric's own, but its
values mean nothing.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from podeval.audio.windows import Span
from podeval.metrics.judged.dialogue_judge import KEYS
from podeval.metrics.judged.script_quality import FIRST, POINTS
from podeval.models import registry
from podeval.recording import recording
from podeval.recording.cache import Cache

QUOTE = "Rivers carry salt"
SHARES = {"substance": 0.8, "narrative": 0.5, "naturalness": 0.6}
RUNS = (3, 3.5, 4, 4.5, 5, 3, 3.5, 4, 4.5, 5)

REPLIES = {
    "dialogue_judge": "it gives the script 2 where it stands second and −1 where it stands first, and coherence 1 in "
    "either place, which is a liking for the second place alone",
    "instruction_following": "of a request it makes four requirements, three stated and one implied, and of the script "
    "it says that it meets two, half of the third and nothing of the implied one",
    "script_quality": "it gives about 80 % of the points of substance, half of narrative and 60 % of naturalness, "
    "each with a passage that stands in the script",
    "prosodic_coherence": "its ten runs give 3, 3.5, 4, 4.5, 5 and the same again",
    "expressive_richness": "it gives 2.5 to every stretch",
    "expressive_hierarchy": "it gives the whole 3.5",
    "rubric": "it says of every second criterion that it is met",
    "grounding": "it says that the whole is about its topic, and of two claims that the source supports one",
    "script_grounding": "of two claims it says that the source supports one",
    "content_density": "it calls the first clause of an answer needed and the rest not",
}
"""The scripted judge's answers in words, by metric, for the card."""


def answer(prompt: str, inputs: dict[str, str], seed: int) -> dict[str, Any]:
    """Return the scripted judge's answer to a prompt."""
    match prompt:
        case "dialogue_compare":
            ratings = dict.fromkeys(KEYS, 2 if QUOTE in inputs["second"] else -1)
            return {"analysis": "The second says more.", **ratings, "coherence": 1}
        case "script_quality":
            return {name: _give_points(name, points) for name, points in POINTS.items()}
        case "podcast_checklist":
            kinds = ("explicit", "explicit", "explicit", "implied")
            return {"checklist": [{"requirement": f"Part {n}.", "kind": kind} for n, kind in enumerate(kinds, 1)]}
        case "script_audit":
            items = enumerate((1, 1, 0.5, 0), 1)
            return {"items": [{"number": n, "quotes": [QUOTE], "reason": "r", "score": score} for n, score in items]}
        case "essential_clauses":
            clauses = inputs["answer"].split(", ")
            return {"clauses": [{"text": text, "essential": not number} for number, text in enumerate(clauses)]}
        case "rubric_transcript":
            names = [line.partition(":")[0] for line in inputs["criteria"].splitlines()]
            return {"verdicts": [{"criterion": name, "met": number % 2} for number, name in enumerate(names)]}
        case "podcast_topic":
            return {"about": "why the sea is salty", "score": 1}
        case "podcast_claims" | "script_claims":
            words, source = inputs["part"].split(), " ".join(inputs["sources"].split()[:6])
            supported = {"quote": " ".join(words[:8]), "verdict": "supported", "source_quote": source}
            return {"claims": [supported, {"quote": " ".join(words[-8:]), "verdict": "not_found"}]}
        case "prosodic_coherence":
            return _hear(RUNS[seed])
        case "expressive_hierarchy":
            return _hear(3.5)
    return _hear(2.5)


def _give_points(name: str, points: Sequence[int]) -> dict[str, Any]:
    given = [round(2 * SHARES[name] * most) / 2 for most in points]
    items = [
        {"item": FIRST[name] + number, "quotes": [QUOTE], "reason": "r", "score": score}
        for number, score in enumerate(given)
    ]
    return {"items": items, "score": sum(given)}


def _hear(score: float) -> dict[str, Any]:
    names = ("flow", "stress_and_melody", "naturalness", "arc", "dynamics", "fit")
    return {"notes": dict.fromkeys(names, "n"), "performance": "p", "score": score}


@contextmanager
def start_judge(folder: Path) -> Iterator[str]:
    """Start the scripted judge, and yield the path of its YAML file."""
    from tests.fakes import scripted_server as server
    from tests.metrics.judged import conftest as reading

    def reply(call: Any) -> Any:
        question = reading.read_back(call.body)
        return server.Answer(json.dumps(answer(question.prompt, question.inputs, call.body.get("seed", 0))))

    with server.ScriptedServer(reply) as running:
        file = folder / "judge.yaml"
        file.write_text(f"backend: endpoint\nmodel: scripted\nendpoint: {running.url}\nhears: true\n", encoding="utf-8")
        yield str(file)


class RandomNumbers:
    """A substitute for every model: random numbers in place of missing weights, and detectors that find speech and
    music everywhere.
    """

    scale = 10.0

    def __init__(self, job: str, *, musical: bool) -> None:
        """Store the job, and whether music is detected."""
        self._job, self._musical = job, musical
        self._random = np.random.default_rng(0)

    def score(self, windows: Sequence[NDArray[Any]], rate: int | None = None) -> NDArray[Any]:
        """Draw a mark from 1 to 5 for each window; for a job with four marks, four marks from 1 to 10."""
        if self._job == "aesthetics":
            return self._random.uniform(1, 10, (len(windows), 4))
        return self._random.uniform(1, 5, len(windows))

    def harmony(self, speech: Sequence[NDArray[Any]], music: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Draw a cosine for each clip."""
        return self._random.uniform(-1, 1, len(speech))

    def audio(self, clips: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Draw a vector of length 1 for each clip."""
        return self._draw_vectors(len(clips))

    def text(self, texts: Sequence[str]) -> NDArray[Any]:
        """Draw a vector of length 1 for each text."""
        return self._draw_vectors(len(texts))

    def _draw_vectors(self, count: int) -> NDArray[Any]:
        vectors = self._random.normal(size=(count, 8))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def speech(self, samples: NDArray[Any]) -> tuple[Span, ...]:
        """Report speech everywhere."""
        return (Span(0, 3600),)

    def music(self, samples: NDArray[Any]) -> tuple[Span, ...]:
        """Report music everywhere or nowhere; a metric that needs no music would otherwise remove it."""
        return (Span(0, 3600),) if self._musical else ()

    def separate(self, samples: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Split each sample into two halves."""
        return samples / 2, samples / 2


@contextmanager
def replace_models(needs: Sequence[str]) -> Iterator[None]:
    """Replace the model of every job by random numbers, for a metric with these needs; nothing is left in a cache."""

    def load(job: str, profile: str) -> RandomNumbers:
        return RandomNumbers(job, musical="harmony" in needs)

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(recording, "open_default_cache", lambda: Cache(Path(folder))),
        patch.object(registry, "load", load),
    ):
        yield
