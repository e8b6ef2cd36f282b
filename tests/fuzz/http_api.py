"""Fuzz the site's HTTP interface in process: `python studies/fuzz.py http --minutes 10`.

schemathesis makes requests from the site's own OpenAPI document, such that fit it and such that do not, signed in and
not; no answer may be of the 500s, and each must be what the document says: JSON where it says JSON, a sentence where
something is refused.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

SPACE = Path(__file__).parents[2] / "space"
NOWHERE = "http://127.0.0.1:9"


@dataclass
class Found:
    """What came of it: failures by route and kind, with the first request of each."""

    asked: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)


@contextmanager
def site_in(folder: Path) -> Iterator[Any]:
    """The whole site for the one person of this machine, over an empty folder of runs; without rates while it lasts."""
    import app
    import website

    surroundings = {"PODEVAL_CACHE": os.environ.get("PODEVAL_CACHE", str(folder / "cache")), "HF_ENDPOINT": NOWHERE}
    # Rates are tested by themselves: here they would hide what lies behind them.
    with mock.patch.dict(os.environ, surroundings), mock.patch.object(website.Site, "limit"):
        yield app.build(folder / "runs")


def fuzz(site: Any, *, examples: int, seconds: float, seed: int) -> Found:
    """Ask every documented operation so many times, until the time is over."""
    import hypothesis
    import schemathesis
    from starlette.testclient import TestClient

    found, end = Found(), time.monotonic() + seconds
    with TestClient(site, base_url="http://localhost", raise_server_exceptions=False) as client:
        document = client.get("/api/openapi.json").json()
        schema = schemathesis.openapi.from_dict(document)
        for number, each in enumerate(list(schema.get_all_operations()) * 1_000):
            if time.monotonic() > end or (number and examples and number >= found_operations(document)):
                break
            operation = each.ok()

            @hypothesis.seed(seed + number)
            @hypothesis.settings(
                max_examples=examples or 40,
                deadline=None,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
                phases=[hypothesis.Phase.generate],
            )
            @hypothesis.given(case=cases(operation))
            def ask(case: Any) -> None:
                if time.monotonic() < end:
                    check(client, case, found)

            ask()
    return found


def cases(operation: Any) -> Any:
    """Requests of an operation that fit the document, and such that do not."""
    import hypothesis
    from schemathesis import GenerationMode

    return hypothesis.strategies.one_of(*(operation.as_strategy(mode) for mode in GenerationMode))


def found_operations(document: dict[str, Any]) -> int:
    """How many operations there are."""
    return sum(len(methods) for methods in document["paths"].values())


def check(client: Any, case: Any, found: Found) -> None:
    """One request; what is wrong with the answer is kept."""
    sent = case.as_transport_kwargs(base_url="http://localhost")
    headers = {k: v for k, v in sent.get("headers", {}).items() if k.lower() not in ("host", "content-length")}
    headers |= {"x-podeval": "1"}
    wanted = {key: sent[key] for key in ("params", "json", "content", "cookies") if sent.get(key) is not None}
    if isinstance(sent.get("data"), str | bytes):
        wanted["content"] = sent["data"]
    elif isinstance(sent.get("data"), dict):
        wanted["data"] = sent["data"]
    try:
        answer = client.request(sent["method"], sent["url"], headers=headers, **wanted)
    except (ValueError, TypeError, UnicodeError):
        return  # it cannot be sent at all
    found.asked += 1
    found.statuses[answer.status_code] += 1
    place = f"{sent['method']} {case.path}"
    problem = ""
    if answer.status_code >= 500 and answer.status_code != 503:
        problem = f"answered {answer.status_code}"
    elif answer.status_code >= 400:
        try:
            told = answer.json()
            assert isinstance(told.get("error") or told.get("detail"), str)
        except (ValueError, AssertionError, AttributeError):
            problem = f"refuses with {answer.status_code} and no sentence"
    if problem:
        shown = {"url": str(answer.request.url), **{k: repr(v)[:600] for k, v in wanted.items()}}
        found.failures.setdefault(f"{place} {problem}", f"{shown}\n{answer.text[:400]}")
