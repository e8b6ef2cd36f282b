"""Supplied outputs against what the model that is said to have made them makes."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from podeval.board.build import build
from podeval.errors import BadInput
from podeval.runs.board_tables import BOARD
from podeval.runs.run_folder import RunFolder
from podeval.runs.spot_check_report import read_spot_check
from podeval.store.submission_tables import SubmissionRow
from podeval.submissions.gate import Gate, PinnedSource
from podeval.submissions.queue import Queue
from podeval.submissions.spot_check import SpotCheck, compare_figures


class Open(Gate):
    """Lets every model through; what it keeps out is tested elsewhere."""

    def check(self, document: Any, document_folder: Path | None = None) -> PinnedSource:
        """Nothing is refused."""
        assert document.source.kind == "model"
        return PinnedSource(repo=document.source.repo, revision=document.source.revision)


@pytest.fixture
def published(tiny: ModuleType, queue: Queue, tmp_path: Path) -> Callable[..., SubmissionRow]:
    """A published submission of outputs, made by the fake with one behaviour, that names a model with another."""

    def publish(supplied: dict[str, Any], model: dict[str, Any]) -> SubmissionRow:
        maker = {"repo": "x/singer", "revision": "a" * 40, "task": "text-to-speech"}
        plain = tiny.document("singer")
        plain["source"] = {"kind": "outputs", "repo": "x/out", "revision": "b" * 40, "made_by": maker}
        row = queue.receive(plain, owner="alice", quotas=False)
        queue.move(row.id, "received", "checked", by="gate", pinned={"repo": "x/out", "passed": True})
        queue.move(row.id, "checked", "queued", by="gate")
        behave(tmp_path / "models/singer", supplied)
        tiny.worker(queue, tmp_path).once()
        assert queue.get(row.id).state == "published", queue.get(row.id).reason
        behave(tmp_path / "models/singer", model)
        return queue.get(row.id)

    return publish


def behave(folder: Path, about: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "behaviour.json").write_text(json.dumps(about))


@pytest.fixture
def check(tiny: ModuleType, queue: Queue, tmp_path: Path) -> SpotCheck:
    worker = tiny.worker(queue, tmp_path)
    return SpotCheck(tmp_path / "board", tmp_path / "spot", worker.fetch, Open(), worker.making)


def test_outputs_of_the_model_agree_with_it(check: SpotCheck, published: Any, tmp_path: Path) -> None:
    row = published({"jitter": 0.1, "loudness": 1.05}, {"jitter": 0.1})
    (report,) = check.check(row, items=3, seed=1)
    assert report.verdict == "agrees", report
    (comparison,) = report.comparisons
    assert (comparison.metric, comparison.key, comparison.items) == ("tally", "level", 3)
    assert 0.02 < comparison.spread / comparison.generated < 0.3
    kept = read_spot_check(RunFolder(tmp_path / "board", "ten", "demo", "singer"))
    assert kept == report
    build(tmp_path / "board")
    rows = pd.read_parquet(tmp_path / "board" / BOARD)
    assert set(rows[rows["system"] == "singer"]["spot_check"]) == {"agrees"}
    assert set(rows[rows["system"] != "singer"]["spot_check"]) == {""}
    assert (kept.repo, kept.revision, len(kept.items), kept.seeds) == ("x/singer", "a" * 40, 3, (0, 1, 2))


def test_outputs_of_something_else_differ(check: SpotCheck, published: Any) -> None:
    row = published({"loudness": 2.0}, {"jitter": 0.05})
    (report,) = check.check(row)
    assert report.verdict == "differs"
    assert report.comparisons[0].difference > 0.1
    assert report.comparisons[0].p < 0.01


def test_a_model_that_always_says_the_same_must_say_that(check: SpotCheck, published: Any) -> None:
    row = published({}, {})
    (report,) = check.check(row, items=2)
    assert (report.verdict, report.comparisons[0].spread) == ("agrees", 0.0)
    row.document["source"]["made_by"] = None
    with pytest.raises(BadInput, match="does not name a public model"):
        check.check(row)


def test_items_are_drawn_by_the_seed_and_failures_are_told(check: SpotCheck, published: Any) -> None:
    row = published({}, {"items": {f"item_{n}": "finish(out, item=item, error='it broke')" for n in range(10)}})
    (report,) = check.check(row, items=4, seed=5)
    assert report.verdict == "not told"
    assert len(report.failed) == 12
    assert set(report.failed.values()) == {"it broke"}
    (again,) = check.check(row, items=4, seed=5)
    assert again.items == report.items
    # The draw follows the submission's random id too: three other seeds all draw these four of ten once in 9 million.
    others = [check.check(row, items=4, seed=seed)[0].items for seed in (6, 7, 8)]
    assert any(other != report.items for other in others)


def test_only_published_outputs_are_checked(tiny: ModuleType, queue: Queue, check: SpotCheck) -> None:
    row = tiny.enqueue(queue, "model")
    with pytest.raises(BadInput, match="is a submission of kind model, but spot checks are for supplied outputs"):
        check.check(row)


@pytest.mark.long
def test_draws_of_the_same_are_seldom_called_different_and_others_often() -> None:
    dice, items, keys = random.Random(0), [f"i{n}" for n in range(3)], ("a", "b", "c", "d")

    def drawn(shift: float) -> dict[tuple[str, str, str], float]:
        return {(i, "m", k): int(i[1:]) + dice.gauss(shift if k == "a" else 0.0, 1) for i in items for k in keys}

    def share(shift: float) -> float:
        result = [
            any(c.differs for c in compare_figures(drawn(shift), [drawn(0) for _ in range(3)])) for _ in range(1000)
        ]
        return sum(result) / 1000

    assert share(0.0) <= 0.02, "of one in a hundred"
    assert share(6.0) > 0.8


def test_the_test_is_the_two_sample_t_test_where_there_is_one_item() -> None:
    """With one item the statistic is that of scipy's t-test of one value against k, equal variances."""
    ours = [0.31, 0.35, 0.30, 0.36]
    (result,) = compare_figures({("i", "m", "k"): 0.45}, [{("i", "m", "k"): x} for x in ours])
    # One value has no variance of its own: the pooled one is that of the others.
    assert result.p == pytest.approx(stats.ttest_ind([0.45], ours).pvalue)
