"""Hugging Face Jobs on loopback: takes what the real client sends, checks it as the Hub would, and plays its part.

A job prints the lines of `logs` and ends as `ends` says; with `plays`, it is that function, in a thread, with the
job's volumes in reach. Prices are what the Hub listed in November 2026.
"""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.loopback_server import Answer

ALLOWED = {
    "command", "arguments", "environment", "flavor", "secrets", "timeoutSeconds", "attempts", "labels", "volumes",
    "dockerImage", "spaceId", "expose", "ssh", "network", "resourceGroupId",
}  # fmt: skip
PRICES = {"cpu-basic": 0.000167, "a10g-large": 0.025, "h200": 0.083333}
_ENDED = ("COMPLETED", "ERROR", "CANCELED", "DELETED")


@dataclass
class Played:
    """A job from inside: its specification, its volumes by mount path, and whether it was stopped."""

    spec: dict[str, Any]
    repos: Any
    buckets: dict[str, dict[str, bytes]]
    printed: list[str]
    stopped: threading.Event

    def volume(self, mount: str) -> dict[str, Any]:
        """What is mounted at a path."""
        (found,) = (volume for volume in self.spec["volumes"] if volume["mountPath"] == mount)
        return dict(found)

    def read(self, mount: str) -> dict[str, bytes]:
        """Files of a mounted repo at its commit, in the folder that is mounted."""
        volume = self.volume(mount)
        kind = {"model": "models", "dataset": "datasets"}[volume["type"]]
        _, files = self.repos[kind, volume["source"]].at(volume["revision"])
        prefix = f"{volume['path']}/" if volume.get("path") else ""
        return {name.removeprefix(prefix): data for name, data in files.items() if name.startswith(prefix)}

    def write(self, mount: str, name: str, content: bytes) -> None:
        """Put a file into a mounted bucket."""
        volume = self.volume(mount)
        assert volume["type"] == "bucket", f"{mount} is no bucket"
        assert not volume["readOnly"], f"{mount} is read-only"
        self.buckets[volume["source"]][f"{volume['path']}/{name}"] = content

    def say(self, line: str) -> None:
        """Print a line."""
        self.printed.append(line)


@dataclass
class LoopbackJobs:
    """Jobs by id, as the Hub keeps them; `specs` are the payloads that started them."""

    repos: Any = None
    buckets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    specs: list[dict[str, Any]] = field(default_factory=list)
    logs: list[str] = field(default_factory=lambda: ["loading the model", "item 1 of 2", "item 2 of 2"])
    ends: str = "COMPLETED"
    plays: Callable[[Played], None] | None = None
    running_secs: int = 60
    lose_answers: int = 0
    """How many starts are done, but not answered."""
    played: dict[str, Played] = field(default_factory=dict)
    threads: dict[str, threading.Thread] = field(default_factory=dict)

    def answer(self, method: str, rest: list[str], query: dict[str, list[str]], body: bytes) -> Answer:
        """The answer to a request about jobs."""
        match method, rest:
            case "GET", ["hardware"]:
                return Answer.json([_offer(name, price) for name, price in PRICES.items()])
            case "POST", [namespace]:
                return self._start(namespace, json.loads(body))
            case "GET", [_]:
                wanted = dict(label.split("=", 1) for label in query.get("label", ()))
                return Answer.json([job for job in self.jobs.values() if job["labels"].items() >= wanted.items()])
            case "GET", [_, id, "logs"]:
                if id in self.threads:
                    self.threads[id].join(30)
                else:
                    self._end(id, self.ends)
                printed = self.played[id].printed if id in self.played else self.logs
                lines = [f"data: {json.dumps({'data': line, 'timestamp': ''})}\n\n" for line in printed]
                return Answer(200, "".join(lines).encode(), {"Content-Type": "text/event-stream"})
            case "GET", [_, id] if id in self.jobs:
                return Answer.json(self.jobs[id])
            case "POST", [_, id, "cancel"] if id in self.jobs:
                if id in self.played:
                    self.played[id].stopped.set()
                self._end(id, "CANCELED")
                return Answer.json({})
        return Answer.json({"error": "not found"}, 404)

    def _start(self, namespace: str, spec: dict[str, Any]) -> Answer:
        if wrong := self._wrong(spec):
            return Answer.json({"error": wrong}, 400)
        id = f"job{len(self.jobs)}"
        self.specs.append(spec)
        self.jobs[id] = {
            "id": id,
            "createdAt": "2026-11-22T00:00:00.000Z",
            "owner": {"id": "1", "name": namespace, "type": "org"},
            "status": {"stage": "RUNNING", "message": None},
            "labels": spec.get("labels", {}),
            "command": spec["command"],
            "flavor": spec["flavor"],
        }
        if self.plays is not None:
            self.played[id] = Played(spec, self.repos, self.buckets, [], threading.Event())
            self.threads[id] = threading.Thread(target=self._play, args=(id, self.plays), daemon=True)
            self.threads[id].start()
        if self.lose_answers:
            self.lose_answers -= 1
            return Answer.json({"error": "gateway"}, 502)
        return Answer.json(self.jobs[id])

    def _play(self, id: str, plays: Callable[[Played], None]) -> None:
        try:
            plays(self.played[id])
        except Exception as error:
            self._end(id, "ERROR", f"{type(error).__name__}: {error}")
        else:
            self._end(id, "COMPLETED")

    def _end(self, id: str, stage: str, message: str | None = None) -> None:
        job = self.jobs[id]
        if job["status"]["stage"] in _ENDED:
            return
        told = message or ("out of memory" if stage == "ERROR" else None)
        job["status"] = {"stage": stage, "message": told}
        total = self.running_secs + 5
        job["durations"] = {"schedulingSecs": 5, "runningSecs": self.running_secs, "totalSecs": total}

    def _wrong(self, spec: dict[str, Any]) -> str | None:
        """What the Hub would refuse."""
        if unknown := spec.keys() - ALLOWED:
            return f"unknown fields {sorted(unknown)}"
        if ("dockerImage" in spec) == ("spaceId" in spec):
            return "one of dockerImage and spaceId"
        if spec["flavor"] not in PRICES:
            return f"unknown flavor {spec['flavor']}"
        command = spec["command"]
        if not (isinstance(command, list) and command and all(isinstance(c, str) for c in command)):
            return "command must be a list of strings"
        if not all(isinstance(value, str) for value in spec.get("labels", {}).values()):
            return "labels must be strings"
        mounts = [volume["mountPath"] for volume in spec.get("volumes", ())]
        if len(set(mounts)) < len(mounts) or not all(mount.startswith("/") and len(mount) > 1 for mount in mounts):
            return "volumes need mount paths of their own"
        for volume in spec.get("volumes", ()):
            if volume["type"] not in ("bucket", "model", "dataset", "space") or volume["source"].count("/") != 1:
                return f"no such volume {volume}"
            if volume["type"] == "bucket" and "revision" in volume:
                return "buckets have no revisions"
            if self.plays is not None and volume["type"] == "bucket" and volume["source"] not in self.buckets:
                return f"there is no bucket {volume['source']}"
            if volume["type"] != "bucket" and not volume.get("readOnly"):
                return f"{volume['source']} can only be mounted read-only"
        return None


def _offer(name: str, price: float) -> dict[str, Any]:
    about = {"name": name, "prettyName": name, "cpu": "2 vCPU", "ram": "16 GB", "accelerator": None}
    return about | {"unitCostMicroUSD": round(price * 1e6), "unitCostUSD": price, "unitLabel": "minute"}
