"""Workers whose models run as jobs on the Hub: a loopback Hub plays the jobs, the client is the real one."""

import io
import json
import multiprocessing
import threading
import wave
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.runs.hf_jobs import HfJobs
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.submissions.hub_generation import OnTheHub
from podeval.submissions.job_budget import Ledger
from podeval.submissions.moderation import take_down
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from tests.fakes.waiting import wait_until

IMAGE = f"ghcr.io/podeval/generate@sha256:{'1' * 64}"
SECRET = "hf_abcdefghijklmnopqrstuv"


POLICY = Policy(lease_seconds=6, pause_seconds=0.0)
"""The policy of the queue."""


@pytest.fixture
def jobs(hub_client: Any) -> Any:
    hub_client.repos.jobs.plays = speak
    return hub_client.repos.jobs


def on_the_hub(queue: Queue, budget: float = 10.0, **choices: Any) -> OnTheHub:
    from huggingface_hub import HfApi

    found = HfJobs(IMAGE, "a10g-large", "podeval", minutes=60, client=HfApi(token=SECRET))
    return OnTheHub(found, Ledger(queue.database, budget), pause=0.05, **choices)


def tone(seconds: float = 0.5) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8_000)
        file.writeframes(b"\x00\x10\x00\xf0" * round(2_000 * seconds * 2))
    return buffer.getvalue()


def publish(tiny: ModuleType, queue: Queue, folder: Path) -> None:
    """Have the worker do a submission that goes well."""
    row = tiny.enqueue(queue, "singer")
    tiny.worker(queue, folder, hub=on_the_hub(queue)).once()
    assert queue.get(row.id).state == "published", queue.get(row.id).reason


def asked(job: Any) -> list[str]:
    found = json.loads(job.read("/asked")["job.json"])
    assert found["model_folder"] == "/model"
    assert found["items_file"] == "/asked/items.jsonl"
    return [json.loads(line)["id"] for line in job.read("/asked")["items.jsonl"].splitlines()]


def hand_over(job: Any, item: str, **line: Any) -> None:
    """As `adapters.handover` does: the files, then the line."""
    if not line:
        job.write("/results", f"files/{item}.0.wav", tone())
        line = {"audio": f"{item}.0.wav", "wall_seconds": 0.1}
    job.write("/results", f"lines/{item}.0.json", json.dumps({"item": item, "seed": 0, **line}).encode())


def speak(job: Any) -> None:
    """A model that does what it should."""
    for item in asked(job):
        hand_over(job, item)
    job.write("/results", "ended.json", b'{"code": 0, "log": "", "refused": null}')


def test_a_model_runs_as_a_job_and_is_measured_here(
    tiny: ModuleType, queue: Queue, jobs: Any, hub_client: Any, tmp_path: Path
) -> None:
    row = tiny.enqueue(queue, "singer")
    worker = tiny.worker(queue, tmp_path, hub=on_the_hub(queue))
    assert worker.once() == row.id
    assert queue.get(row.id).state == "published", queue.get(row.id).reason
    run = RunFolder(tmp_path / "board", "ten", "demo", "singer")
    assert run.summaries()[0].metrics[0].scored == 10
    output = run.output("item_3")
    assert output
    assert (output.audio, output.wall_seconds) == ("item_3.flac", 0.1)
    (spec,) = jobs.specs
    model = next(volume for volume in spec["volumes"] if volume["type"] == "model")
    assert (model["source"], model["revision"], model["readOnly"]) == ("x/singer", "a" * 40, True)
    assert SECRET not in json.dumps(spec)
    assert hub_client.repos.repos["datasets", "podeval/podeval-asked"].private
    assert not (tmp_path / "work" / row.id / "model").exists(), "its files were never here"
    (kept,) = worker.hub.ledger.of(row.id)
    assert (kept.job, kept.stage, kept.round, kept.reserved) == ("job0", "COMPLETED", 1, pytest.approx(1.5))
    assert kept.spent == pytest.approx(0.025), "one minute of sixty"
    assert worker.hub.ledger.committed() == pytest.approx(0.025)


def test_what_jobs_left_of_what_was_taken_down_goes_from_the_bucket_and_from_what_was_asked(
    tiny: ModuleType, queue: Queue, hub_client: Any, tmp_path: Path
) -> None:
    marker = b"Quokkas of the northern shore"

    def speaks(job: Any) -> None:
        job.write("/results", "files/notes.txt", marker)
        speak(job)

    hub_client.repos.jobs.plays = speaks
    gone, kept = tiny.enqueue(queue, "singer").id, tiny.enqueue(queue, "other").id
    worker = tiny.worker(queue, tmp_path, hub=on_the_hub(queue))
    worker.once()
    worker.once()
    bucket = hub_client.repos.buckets.buckets["podeval/podeval-results"]
    asked_repo = hub_client.repos.repos["datasets", "podeval/podeval-asked"]
    assert {path.split("/")[0] for path, data in bucket.items() if marker in data} == {gone, kept}
    assert {path.split("/")[0] for path in asked_repo.at("main")[1]} >= {gone, kept}

    sentences: list[str] = []
    take_down(queue, gone, "ada", tmp_path / "board", "stolen", datetime.now(UTC), sentences.append)
    assert any(sentence.startswith(f"jobs of podeval left {gone}/ on the Hub") for sentence in sentences)
    hub_client.trouble = lambda method, path: 403 if path.endswith("/batch") else None
    worker.catch_up()
    assert any(path.startswith(gone) for path in bucket), "refused, it is tried again"
    hub_client.trouble = lambda method, path: None
    worker.catch_up()
    assert {path.split("/")[0] for path in bucket} == {kept}
    everywhere = {path for files in asked_repo.commits.values() for path in files}
    assert not any(path.startswith(gone) for path in everywhere), "in its history too"
    assert any(path.startswith(kept) for path in everywhere)
    assert [job.stage for job in worker.hub.ledger.of(gone)] == ["TAKEN DOWN"]
    count = len(hub_client.requests)
    worker.catch_up()
    assert hub_client.requests[count:] == [], "done once"


def test_a_killed_worker_finds_its_job_again_and_starts_no_second(
    tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(job: Any) -> None:
        items = asked(job)
        for item in items[:3]:
            hand_over(job, item)
        begun.set()
        assert go_on.wait(60)
        for item in items[3:]:
            hand_over(job, item)

    jobs.plays = slowly
    row = tiny.enqueue(queue, "singer")
    queue.database.engine.dispose()
    process = multiprocessing.get_context("fork").Process(target=_work, args=(tiny, tmp_path))
    process.start()
    assert begun.wait(60)
    outputs = tmp_path / "work" / row.id / "runs/ten/demo/singer/outputs"
    wait_until(lambda: len(list(outputs.glob("*.json"))) == 3)
    process.kill()
    process.join()
    go_on.set()
    tiny.let_leases_lapse(queue.database)
    assert queue.sweep() == [row.id]
    worker = tiny.worker(queue, tmp_path, hub=on_the_hub(queue))
    assert worker.once() == row.id
    assert queue.get(row.id).state == "published", queue.get(row.id).reason
    assert len(jobs.specs) == 1
    assert len(worker.hub.ledger.of(row.id)) == 1
    lines = (tmp_path / "board/ten/demo/singer/embedded/results.jsonl").read_text().splitlines()
    assert len({json.loads(line)["item"] for line in lines}) == len(lines) == 10


def _work(tiny: ModuleType, folder: Path) -> None:
    with Database(folder / "store.db", migrate=False) as database:
        queue = Queue(database, Policy(lease_seconds=6, pause_seconds=0.0))
        tiny.worker(queue, folder, hub=on_the_hub(queue)).once()


def test_the_budget_is_of_all_jobs_and_survives_a_restart(
    tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path
) -> None:
    jobs.running_secs = 2_400
    first, second = (tiny.enqueue(queue, name, owner=name) for name in ("one", "two"))
    assert tiny.worker(queue, tmp_path, hub=on_the_hub(queue, 2.0)).once() == first.id
    assert on_the_hub(queue).ledger.committed() == pytest.approx(1.0), "40 minutes at 0.025"
    assert tiny.worker(queue, tmp_path, hub=on_the_hub(queue, 2.0)).once() == second.id
    found = queue.get(second.id)
    assert found.state == "queued"
    assert "cost 1.50 USD on a10g-large for 60 minutes, and 1.00 of 2.00 USD are spent or reserved" in found.reason
    assert found.failures == 0, "it is no fault of the submission"
    assert len(jobs.specs) == 1
    queue.cancel(second.id, "two")
    queue.retry(second.id, "two")
    tiny.worker(queue, tmp_path, hub=on_the_hub(queue, 1.0)).once()
    assert queue.get(second.id).state == "failed"
    assert "the budget for all jobs is 1.00" in queue.get(second.id).reason


def test_a_cancelled_submission_has_its_job_stopped(tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path) -> None:
    row = tiny.enqueue(queue, "singer")

    def until_stopped(job: Any) -> None:
        queue.cancel(row.id, "alice")
        assert job.stopped.wait(60)

    jobs.plays = until_stopped
    worker = tiny.worker(queue, tmp_path, hub=on_the_hub(queue))
    worker.once()
    assert jobs.jobs["job0"]["status"]["stage"] == "RUNNING", "a lost claim alone stops no job: another may follow it"
    worker.catch_up()
    assert jobs.jobs["job0"]["status"]["stage"] == "CANCELED"
    (kept,) = worker.hub.ledger.of(row.id)
    assert (kept.stage, kept.spent) == ("CANCELED", pytest.approx(0.025))
    worker.catch_up()


def test_a_job_that_the_hub_forgot_is_charged_and_started_anew(
    tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path
) -> None:
    row = tiny.enqueue(queue, "singer")
    hub = on_the_hub(queue)
    lost = hub.ledger.reserve(row.id, "ten/demo", hub.jobs, 0.025)
    hub.ledger.keep_job(lost, "job_of_yesterday")
    worker = tiny.worker(queue, tmp_path, hub=hub)
    worker.once()
    assert queue.get(row.id).state == "queued"
    assert "the Hub has no record of the job" in queue.get(row.id).reason
    worker.once()
    assert queue.get(row.id).state == "published", queue.get(row.id).reason
    assert [(kept.stage, kept.spent) for kept in hub.ledger.of(row.id)] == [("GONE", 1.5), ("COMPLETED", 0.025)]


def test_what_a_job_falls_on_is_blamed_and_the_rest_made_by_the_next(
    tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path
) -> None:
    rounds: list[list[str]] = []

    def falls_once(job: Any) -> None:
        rounds.append(asked(job))
        for item in rounds[-1]:
            if item == "item_4":
                raise MemoryError("CUDA out of memory")
            hand_over(job, item)

    jobs.plays = falls_once
    publish(tiny, queue, tmp_path)
    assert [len(items) for items in rounds] == [10, 5]
    failed = RunFolder(tmp_path / "board", "ten", "demo", "singer").output("item_4")
    assert failed
    assert "the job on the Hub ended in the stage ERROR: MemoryError: CUDA out of memory" in str(failed.failed)


def test_what_is_in_the_bucket_is_not_trusted(tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path) -> None:
    def hostile(job: Any) -> None:
        job.write("/results", "../../../escaped", b"x")
        hand_over(job, "item_0", audio="../../escaped.wav")
        hand_over(job, "item_1", audio="item_1.0.wav")  # which is not there
        job.write("/results", "lines/item_2.0.json", b"{" * 10_000)
        job.write("/results", "lines/item_3.0.json", b"[" + b" " * 2**20 + b"]")
        hand_over(job, "item_4", audio="not_sound.wav")
        job.write("/results", "files/not_sound.wav", b"no sound at all" * 100)
        job.write("/results", "lines/item_5.0.json", json.dumps({"item": "item_6", "seed": 0, "error": "x"}).encode())
        for item in asked(job)[7:]:
            hand_over(job, item)

    jobs.plays = hostile
    publish(tiny, queue, tmp_path)
    run = RunFolder(tmp_path / "board", "ten", "demo", "singer")
    assert {item: bool(run.output(f"item_{item}").failed) for item in range(10)} == {  # type: ignore[union-attr]
        item: item < 7 for item in range(10)
    }
    assert not list(tmp_path.rglob("escaped*"))


def test_a_model_that_cannot_be_used_and_a_fault_of_ours_are_told_apart(
    tiny: ModuleType, queue: Queue, jobs: Any, tmp_path: Path
) -> None:
    def refuses(job: Any) -> None:
        job.write("/results", "ended.json", b'{"code": 2, "log": "", "refused": "the model has no tokenizer"}')

    jobs.plays = refuses
    row = tiny.enqueue(queue, "one")
    tiny.worker(queue, tmp_path, hub=on_the_hub(queue)).once()
    assert (queue.get(row.id).state, queue.get(row.id).reason) == (
        "failed",
        "the model cannot be run: the model has no tokenizer",
    )
    told = {"error": "out of memory", "cause": "ours"}
    jobs.plays = lambda job: [hand_over(job, item, **(told if item == "item_0" else {})) for item in asked(job)]
    row = tiny.enqueue(queue, "two")
    tiny.worker(queue, tmp_path, hub=on_the_hub(queue)).once()
    assert queue.get(row.id).state == "queued"
    ours = "the board's machine could not do it, through no fault of the submission: "
    assert queue.get(row.id).reason == f"{ours}no output was generated for item_0: out of memory"
    jobs.plays = speak
    tiny.worker(queue, tmp_path, hub=on_the_hub(queue)).once()
    assert queue.get(row.id).state == "published"
    last = json.loads(jobs.played["job2"].read("/asked")["items.jsonl"].splitlines()[0])
    assert last["id"] == "item_0"
    assert len(asked(jobs.played["job2"])) == 1, "what was made is not made again"


def test_an_outage_of_the_hub_loses_nothing(
    tiny: ModuleType, queue: Queue, jobs: Any, hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    jobs.lose_answers = 1
    hub_client.repos.faults += [503, 429]
    publish(tiny, queue, tmp_path)
    assert len(jobs.specs) == 1
