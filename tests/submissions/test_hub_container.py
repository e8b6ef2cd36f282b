"""A job's own command, run in a container of its own volumes: a tiny VITS speaks as it would on the Hub's machine."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval import sandbox
from podeval.runs.run_folder import RunFolder
from podeval.store.database import Database
from podeval.submissions.queue import Queue
from podeval.submissions.rules import Policy
from tests.submissions.conftest import safetensors

ENGINE = Path(__file__).parents[2] / "benchmark"


class Container:
    """Plays a job: mounts its volumes, runs its command, and keeps the bucket as the results folder is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, job: Any) -> None:
        """Run it to its end."""
        mounts = {}
        for volume in job.spec["volumes"]:
            mount = volume["mountPath"]
            path = self.folder / mount.strip("/")
            path.mkdir(parents=True)
            mounts[mount] = (path, "--ro-bind" if volume["readOnly"] else "--bind")
            for name, data in (job.read(mount) if volume["readOnly"] else {}).items():
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(data)
        over = threading.Event()
        keeper = threading.Thread(target=self._keep, args=(job, over))
        keeper.start()
        try:
            done = subprocess.run(self._command(job, mounts), capture_output=True, text=True, check=False, timeout=240)
        finally:
            over.set()
            keeper.join()
        for line in (done.stdout + done.stderr).splitlines():
            job.say(line)
        if done.returncode:
            raise RuntimeError(f"it ended with {done.returncode}: {done.stderr[-2_000:]}")

    def _command(self, job: Any, mounts: dict[str, tuple[Path, str]]) -> list[str]:
        program, *arguments = job.spec["command"]
        assert program == "python"
        seen = {"/usr", sys.prefix, sys.base_prefix, str(ENGINE)}
        binds = [part for path in sorted(seen) for part in ("--ro-bind", path, path)]
        links = [part for name in ("bin", "lib", "lib64", "sbin") for part in ("--symlink", f"usr/{name}", f"/{name}")]
        volumes = [part for mount, (path, how) in mounts.items() for part in (how, str(path), mount)]
        environment = {"PYTHONPATH": str(ENGINE), "PATH": "/usr/bin", "OMP_NUM_THREADS": "1", **job.spec["environment"]}
        settings = [part for name, value in environment.items() for part in ("--setenv", name, value)]
        box = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--proc", "/proc", "--dev", "/dev"]
        return [*box, "--tmpfs", "/tmp", *binds, *links, *volumes, *settings, sys.executable, *arguments]

    def _keep(self, job: Any, over: threading.Event) -> None:
        """A bucket shows files as they are written."""
        while not over.is_set():
            over.wait(0.2)
            for path in sorted((self.folder / "results").rglob("*")):
                if path.is_file():
                    job.write("/results", path.relative_to(self.folder / "results").as_posix(), path.read_bytes())


pytestmark = pytest.mark.skipif(
    sandbox.explain_missing_isolation() is not None, reason="no bubblewrap here, which stands for the container"
)


def test_what_a_job_is_told_is_read_in_its_container_and_what_it_answers_is_heard(
    tiny: ModuleType, hub_client: Any, store: Path, tmp_path: Path
) -> None:
    """By a model of no class that there is: it is refused where it would be opened, before anything heavy is."""
    from tests.submissions import test_hub_jobs as hub

    files = {"config.json": b'{"model_type": "unheard_of"}', "model.safetensors": safetensors()}
    hub_client.repos.publish("models", "x/singer", files, sha="a" * 40)
    hub_client.repos.jobs.plays = Container(tmp_path / "container")
    with Database(store) as database:
        queue = Queue(database, Policy())
        row = tiny.enqueue(queue, "singer")
        tiny.worker(queue, tmp_path, hub=hub.on_the_hub(queue)).once()
        refused = queue.get(row.id)
    assert refused.state == "failed"
    assert refused.reason.startswith("the model cannot be run: ")
    assert "unheard_of" in refused.reason
    requests = [json.loads(line) for line in (tmp_path / "container/asked/items.jsonl").read_text().splitlines()]
    assert [line["id"] for line in requests] == list(tiny.ITEMS)
    assert len(hub_client.repos.jobs.specs) == 1


@pytest.mark.long
def test_what_a_job_is_told_makes_a_real_model_speak(
    tiny: ModuleType, hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    from tests.fakes import tiny_submissions as makers
    from tests.submissions import test_hub_jobs as hub

    folder = makers.vits(tmp_path / "made", speakers=2)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    hub_client.repos.publish("models", "x/singer", files, sha="a" * 40)
    hub_client.repos.jobs.plays = Container(tmp_path / "container")
    with Database(tmp_path / "store.db") as database:
        queue = Queue(database, Policy())
        row = tiny.enqueue(queue, "singer")
        log: list[str] = []
        worker = tiny.worker(queue, tmp_path, hub=hub.on_the_hub(queue, log=log.append))
        worker.once()
        current = queue.get(row.id)
        assert current.state == "published", (current.reason, log[-5:])
        assert len(hub_client.repos.jobs.specs) == 1
    run = RunFolder(tmp_path / "board", "ten", "demo", "singer")
    output = run.output("item_3")
    assert output
    assert output.failed is None
    assert [turn.speaker for turn in output.turns] == ["A", "B"]
    assert output.details["versions"]["transformers"]
    assert run.summaries()[0].metrics[0].scored == 10
    hub.wait_for(lambda: any("item_3: made" in line for line in log))
