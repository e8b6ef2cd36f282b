"""Generation on Hugging Face Jobs, against a loopback Hub that checks the payload of the real client."""

import json
from dataclasses import replace
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.runs.hf_jobs import HfJobs, JobPlan, parse_minutes

IMAGE = f"registry.hf.space/podeval/generate@sha256:{'0' * 64}"
PLAN = JobPlan(
    submission="s0123456789ab",
    run="real_pod/demo",
    round=1,
    model="alice/tts",
    revision="a" * 40,
    items_revision="d" * 40,
    items_folder="s0123456789ab/real_pod/demo/0123",
    results="s0123456789ab/real_pod/demo/1",
)


@pytest.fixture
def jobs(hub_client: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return hub_client.repos.jobs


@pytest.fixture
def executor(jobs: Any) -> HfJobs:
    from huggingface_hub import HfApi

    return HfJobs(IMAGE, "a10g-large", "podeval", minutes=90, client=HfApi(token="hf_secret"))


def test_what_is_sent_is_pinned_bounded_read_only_and_without_secrets(executor: HfJobs, jobs: Any) -> None:
    executor.start(replace(PLAN, base="bob/base", base_revision="b" * 40))
    (spec,) = jobs.specs
    assert spec["dockerImage"] == IMAGE
    assert spec["command"][-3:] == ["podeval.systems.adapters.hand_over", "/asked/job.json", "/results"]
    assert (spec["flavor"], spec["timeoutSeconds"], spec["attempts"]) == ("a10g-large", 5400, 1)
    named = {"podeval": "generate", "submission": "s0123456789ab", "run": "real_pod-demo", "round": "1"}
    assert spec["labels"].items() >= named.items()
    assert "secrets" not in spec
    assert "hf_secret" not in json.dumps(spec)
    assert spec["environment"] == {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    model, base, asked, results = spec["volumes"]
    assert model == {
        "type": "model",
        "source": "alice/tts",
        "mountPath": "/model",
        "revision": "a" * 40,
        "readOnly": True,
    }
    assert (base["source"], base["revision"], base["readOnly"]) == ("bob/base", "b" * 40, True)
    assert (asked["type"], asked["revision"], asked["path"], asked["readOnly"]) == (
        "dataset",
        "d" * 40,
        "s0123456789ab/real_pod/demo/0123",
        True,
    )
    assert (results["mountPath"], results["readOnly"]) == ("/results", False)


def test_what_it_can_cost_is_known_before(executor: HfJobs, jobs: Any) -> None:
    assert executor.at_most(executor.per_minute()) == pytest.approx(0.025 * 90)
    with pytest.raises(BadInput, match="there is no machine 'moon'; choose from a10g-large, cpu-basic, h200"):
        replace(executor, flavour="moon").per_minute()


def test_a_job_is_started_once_for_a_round_whatever_happens_to_the_answer(executor: HfJobs, jobs: Any) -> None:
    jobs.lose_answers = 1
    first = executor.start(PLAN)
    assert executor.start(PLAN).id == first.id
    found = executor.find(PLAN.labels)
    assert found.id == first.id
    assert len(jobs.specs) == 1
    assert executor.start(replace(PLAN, round=2)).id != first.id
    assert executor.start(replace(PLAN, run="real_pod/topics")).id != first.id


def test_it_can_be_stopped(executor: HfJobs, jobs: Any) -> None:
    other = executor.start(replace(PLAN, round=2))
    executor.stop(other.id)
    assert executor.look(other.id).status.stage == "CANCELED"


@pytest.mark.parametrize(
    ("changes", "told"),
    [({"revision": "main"}, "must be pinned to a full commit"), ({"base": "bob/base"}, "bob/base must be pinned")],
)
def test_a_plan_without_pins_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        replace(PLAN, **changes)


def test_settings_without_bounds_are_refused() -> None:
    with pytest.raises(BadInput, match="no image for jobs is given; add --image or PODEVAL_JOBS_IMAGE"):
        HfJobs("", "a10g-large", "podeval")
    with pytest.raises(BadInput, match="is not pinned; write it as registry/name@sha256"):
        HfJobs("python:3.12", "a10g-large", "podeval")
    with pytest.raises(BadInput, match="between 1 minute and 24 hours"):
        HfJobs(IMAGE, "a10g-large", "podeval", minutes=0)
    with pytest.raises(BadInput, match="no account that pays for jobs is named"):
        HfJobs(IMAGE, "a10g-large", "")


def test_a_time_limit_is_written_in_minutes_or_hours() -> None:
    assert [parse_minutes(text) for text in ("45", "45m", "1.5h", "2h")] == [45, 45, 90, 120]
    with pytest.raises(BadInput, match="'soon' is not a time limit"):
        parse_minutes("soon")
