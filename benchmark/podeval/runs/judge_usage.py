"""Judge usage in a run: one line per call, stored in the run's folder.

`<profile>/judge_usage.jsonl` contains the metric, the id of its protocol, the judge's id, the parameters that the judge
refuses and the call's usage, as in `podeval.judges.budget.Account`. A line is synced when its call ends, so a run that
is killed and resumed counts every call once. Usage under a different protocol, such as a pilot with a different judge
or different prompts, is not included in the sums. Lines without a protocol come from an earlier version, and are
included.
"""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from podeval.files import append_lines, read_lines
from podeval.judges.budget import Account
from podeval.judges.client import JudgeClient
from podeval.metrics.score import Protocol
from podeval.runs.run_folder import RunFolder

FILE = "judge_usage.jsonl"


@contextmanager
def log_usage(folder: RunFolder, profile: str, protocol: Protocol, client: JudgeClient) -> Iterator[None]:
    """Record, under a metric's protocol, a client's usage within the block, and how many answers came from
    the records.
    """
    path, lock, saved = folder.path / profile / FILE, threading.Lock(), client.account.from_records

    def append(used: Account) -> None:
        with lock:
            about = {"metric": protocol.metric, "protocol": protocol.id, "judge": client.judge.id}
            append_lines(path, [{**about, "unsent": sorted(client.unsent), "used": vars(used)}])

    client.on_use = append
    try:
        yield
    finally:
        if count := client.account.from_records - saved:
            append(Account(from_records=count))


def sum_usage(folder: RunFolder, profile: str, protocols: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return each metric's use of judges under these protocols since the run began, and the most recent judge."""
    accounts: dict[str, Account] = {}
    last: dict[str, Mapping[str, Any]] = {}
    for line in read_lines(folder.path / profile / FILE):
        if line.get("protocol") not in (None, *protocols):
            continue
        accounts.setdefault(line["metric"], Account()).add(Account(**line["used"]))
        last[line["metric"]] = {"judge": line["judge"], "unsent": line["unsent"]}
    return {metric: {**last[metric], **vars(account)} for metric, account in accounts.items()}
