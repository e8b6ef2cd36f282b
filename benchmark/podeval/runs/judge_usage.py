"""What judges used for a run: a line for each call, kept in the run's folder.

`<profile>/judge_usage.jsonl` has the metric, the judge's id, the parameters that the judge refuses and what the call
used, as `podeval.judges.budget.Account` has it. It is synced as the call ends, so that a run that is killed and resumed
counts every call once.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from podeval.files import append_lines, read_lines
from podeval.judges.budget import Account
from podeval.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from podeval.judges.client import JudgeClient

FILE = "judge_usage.jsonl"


@contextmanager
def log_usage(folder: RunFolder, profile: str, metric: str, client: "JudgeClient") -> Iterator[None]:
    """Keep what a client uses for a metric inside the block, and how many answers the records saved."""
    path, lock, saved = folder.path / profile / FILE, threading.Lock(), client.account.from_records

    def append(used: Account) -> None:
        with lock:
            line = {"metric": metric, "judge": client.judge.id, "unsent": sorted(client.unsent), "used": vars(used)}
            append_lines(path, [line])

    client.on_use = append
    try:
        yield
    finally:
        if count := client.account.from_records - saved:
            append(Account(from_records=count))


def sum_usage(folder: RunFolder, profile: str) -> dict[str, dict[str, Any]]:
    """Return what was used for each metric since the run began, with the judge that was asked last."""
    accounts: dict[str, Account] = {}
    last: dict[str, Mapping[str, Any]] = {}
    for line in read_lines(folder.path / profile / FILE):
        accounts.setdefault(line["metric"], Account()).add(Account(**line["used"]))
        last[line["metric"]] = {"judge": line["judge"], "unsent": line["unsent"]}
    return {metric: {**last[metric], **vars(account)} for metric, account in accounts.items()}
