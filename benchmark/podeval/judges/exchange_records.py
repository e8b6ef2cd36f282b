"""Records of all exchanges with judges: append-only JSON lines with which scoring can be repeated.

A folder contains `records.jsonl`. Each line has a `kind`: `judge` (the judge that was asked, once per judge),
`exchange` (the request, with audio as its SHA-256, and the answer, unchanged), `failure` (a call without an answer) or
`removed` (content that was taken down). Lines never contain an API key: keys leave the process only in the header of a
request.

An exchange is looked up by its key: prompt, inputs, judge and seed. Records store the judge's words, not their
interpretation; the words are parsed again each time, with the current parser.
"""

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podeval.errors import BadInput
from podeval.files import append_synced, explain_write_errors
from podeval.models.chat import ChatAnswer

FILE = "records.jsonl"
VERSION = 1

_OF_CALLS = ("exchange", "failure")
_REMOVED = b'{"kind": "removed", "version": 1}'


def build_key(prompt: str, inputs: str, judge: str, seed: int) -> str:
    """Return the key of an exchange: the ids of prompt and judge, the digest of the inputs, and the seed."""
    return hashlib.sha256(json.dumps([VERSION, prompt, inputs, judge, seed]).encode()).hexdigest()


@dataclass(frozen=True)
class JudgeExchange:
    """A request and its answer.

    Args:
        key: key in the records.
        series: number that increases when an answer is deliberately requested again.
        attempt: 1 for the first attempt; each later attempt states the fault of the previous answer.
        prompt, judge, seed, inputs: parts of the key; `inputs` maps a name to the hash of a text or clip.
        messages: the messages that were sent, with audio as its SHA-256.
        answer: the answer of the judge.
        asked: time of the request, UTC, ISO 8601.
        seconds: duration of the call.
        problem: the reason why the answer was unusable on arrival; None if the answer was usable.
    """

    key: str
    series: int
    attempt: int
    prompt: str
    judge: str
    seed: int
    inputs: Mapping[str, Any]
    messages: Sequence[Mapping[str, Any]]
    answer: ChatAnswer
    asked: str
    seconds: float
    problem: str | None

    @property
    def id(self) -> str:
        """The id of this exchange in results."""
        return f"{self.key[:16]}-{self.series}-{self.attempt}"

    def to_json(self) -> dict[str, Any]:
        """Return the exchange as a line of the records."""
        return {"kind": "exchange", "version": VERSION, "id": self.id, **asdict(self)}

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> "JudgeExchange":
        """Read an exchange from a line of the records."""
        fields = {name: line[name] for name in cls.__dataclass_fields__}
        answer = dict(fields["answer"])
        answer |= {name: tuple(answer.get(name, ())) for name in ("tools", "unsent")}
        return cls(**fields | {"answer": ChatAnswer(**answer)})


class Records:
    """The records in a folder or, without a folder, in this process only; several threads and processes may use them.

    Raises:
        BadInput: a line is damaged; the message names the line.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._kept: list[bytes] = []
        self._places: dict[str, list[tuple[int, int, int]]] = {}
        self._judges: dict[str, dict[str, Any]] = {}
        self._forms: dict[str, str] = {}
        self._unsent: dict[str, tuple[str, ...]] = {}
        for offset, line in self._read():
            self._index(offset, line)

    @property
    def path(self) -> Path | None:
        """The file of the records."""
        return self.folder / FILE if self.folder else None

    def judges(self) -> list[dict[str, Any]]:
        """Return the judges that were asked, in the form of `Judge.described`."""
        return list(self._judges.values())

    def form(self, judge: str) -> str | None:
        """Return the form in which the schema was last sent to this judge, or None."""
        return self._forms.get(judge)

    def unsent(self, judge: str) -> tuple[str, ...]:
        """Return the sampling parameters that the last request to this judge omitted because the judge refuses them."""
        return self._unsent.get(judge, ())

    def series(self, key: str) -> int:
        """Return the number of the newest series under a key, or -1 if there is none."""
        return max((series for series, _, _ in self._places.get(key, ())), default=-1)

    def exchanges(self, key: str) -> list[JudgeExchange]:
        """Return the exchanges of the newest series under a key, by attempt."""
        with self._lock:
            newest = self.series(key)
            places = [offset for series, _, offset in sorted(self._places.get(key, ())) if series == newest]
        lines = [json.loads(self._line_at(offset)) for offset in places]
        # Another process may have removed an exchange since this process read the file.
        return [JudgeExchange.from_json(line) for line in lines if line["kind"] == "exchange"]

    def all_exchanges(self) -> Iterator[JudgeExchange]:
        """Yield all exchanges in recorded order, including exchanges that a newer series replaced."""
        for _, line in self._read():
            if line["kind"] == "exchange":
                yield JudgeExchange.from_json(line)

    def failures(self) -> Iterator[dict[str, Any]]:
        """Yield every call that got no answer."""
        for _, line in self._read():
            if line["kind"] == "failure":
                yield line

    def add_judge(self, described: Mapping[str, Any]) -> None:
        """Record the description of a judge unless it is already recorded."""
        recorded = self._judges.get(described["id"])
        if json.dumps(recorded, sort_keys=True) != json.dumps(described, sort_keys=True, default=str):
            self._append({"kind": "judge", "version": VERSION, **described})

    def add(self, exchange: JudgeExchange) -> None:
        """Record an exchange; the exchange is synced to disk before this method returns."""
        self._append(exchange.to_json())

    def add_failure(self, key: str, prompt: str, judge: str, reason: str, started: str, seconds: float) -> None:
        """Record that a call got no answer."""
        data = {"key": key, "prompt": prompt, "judge": judge, "reason": reason, "asked": started, "seconds": seconds}
        self._append({"kind": "failure", "version": VERSION, **data})

    def remove(self, unwanted: Callable[[Mapping[str, Any]], bool]) -> int:
        """Overwrite exchanges and failures that must no longer be kept; return the number of overwritten lines.

        Lines keep their length, so other readers of the file still find all other lines at their offsets.
        """
        if self.path is None or not self.path.exists():
            return 0
        lines = [offset for offset, line in self._read() if line["kind"] in _OF_CALLS and unwanted(line)]
        with self._lock, self.path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for offset in lines:
                file.seek(offset)
                length = len(file.readline()) - 1
                file.seek(offset)
                file.write(_REMOVED.ljust(length))
            file.flush()
            os.fsync(file.fileno())
            for key, kept in self._places.items():
                self._places[key] = [each for each in kept if each[2] not in lines]
        return len(lines)

    def _index(self, offset: int, line: Mapping[str, Any]) -> None:
        if line["kind"] == "judge":
            self._judges[line["id"]] = {key: value for key, value in line.items() if key not in ("kind", "version")}
        elif line["kind"] == "exchange":
            self._places.setdefault(line["key"], []).append((line["series"], line["attempt"], offset))
            self._forms[line["judge"]] = line["answer"]["form"]
            self._unsent[line["judge"]] = tuple(line["answer"].get("unsent", ()))

    def _read(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield every complete line with its offset; a half-written last line is skipped."""
        if self.path is None:
            yield from ((offset, json.loads(line)) for offset, line in enumerate(list(self._kept)))
            return
        try:
            opened = self.path.open("rb")
        except FileNotFoundError:
            return
        except OSError as error:
            raise BadInput(f"cannot read {self.path}: {error.strerror}; choose another folder for records") from None
        with opened as file:
            offset = 0
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                if line.strip():
                    yield offset, _parse_line(line, self.path, number)
                offset += len(line)

    def _line_at(self, offset: int) -> bytes:
        if self.path is None:
            return self._kept[offset]
        with self.path.open("rb") as file:
            file.seek(offset)
            return file.readline()

    def _append(self, data: Mapping[str, Any]) -> None:
        line = (json.dumps(data, ensure_ascii=False, allow_nan=False, default=str) + "\n").encode("utf-8", "replace")
        with self._lock:
            if self.path is None:
                offset = len(self._kept)
                self._kept.append(line)
            else:
                offset = _append_line(self.path, line)
            self._index(offset, data)


def _parse_line(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
        if data["kind"] == "exchange":
            JudgeExchange.from_json(data)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path}, line {number} is damaged ({error}); delete that line and run the same "
            "command again, which asks the judge that question again"
        ) from None
    return dict(data)


def _append_line(path: Path, line: bytes) -> int:
    """Append a line, sync it, and return its offset; other processes wait until this is done.

    Raises:
        DiskFull: no space is left.
        BadInput: the location is not writable.
    """
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            return append_synced(file, line)
