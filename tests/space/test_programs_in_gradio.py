"""Programs that see nothing but descriptions, of named endpoints or of tools, do what people come for."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from tests.submissions.conftest import model_files

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")

from podeval.arena import Arena
from podeval.arena.ranking import Rankings
from podeval.errors import BadInput
from podeval.store.database import Database
from tests.space.arena_fixture import cast_vote, fill
from tests.space.fixture_runs import write_runs


class Program:
    """Finds endpoints and parameters by words of their descriptions, as `view_api` gives them."""

    def __init__(self, address: str) -> None:
        from gradio_client import Client

        self._client = Client(address, verbose=False)
        self._named = self._client.view_api(return_format="dict", print_info=False)["named_endpoints"]

    def ask(self, *words: str, **wanted: str) -> Any:
        """Call the one endpoint whose description has all words, with those parameters that it has."""
        fitting = [
            name
            for name, about in self._named.items()
            if all(word in about["description"].casefold() for word in words)
        ]
        assert len(fitting) == 1, (words, fitting)
        known = {each["parameter_name"] for each in self._named[fitting[0]]["parameters"]}
        assert set(wanted) <= known, f"{fitting[0]} takes {known}"
        return self._client.predict(api_name=fitting[0], **wanted)


BEST_IN_ENGLISH, RIVAL = "piper", "hibari"


def add_languages(board: Path) -> None:
    """Word errors on LFS-Bench, where the best system in English is not the best of all items."""
    rows = pd.read_parquet(board)
    ours = rows[(rows["benchmark"] == "real_pod") & (rows["key"] == "wer") & (rows["slice"] == "")]
    parts = [rows]
    for slice_, values in {"": (0.05, 0.03), "language=en": (0.02, 0.04), "language=zh": (0.08, 0.02)}.items():
        for system, value, rival in zip((BEST_IN_ENGLISH, RIVAL), values, reversed(values), strict=True):
            rank = 1 if value < rival else 2
            row = ours[ours["system"] == RIVAL].assign(system=system, system_title=system, value=value)
            place = {"benchmark": "lfs_bench", "split": "mono", "slice": slice_}
            parts.append(row.assign(low=value - 0.005, high=value + 0.005, rank_best=rank, rank_worst=rank, **place))
    pd.concat(parts).to_parquet(board)


def meet(database: Path) -> set[str]:
    """One battle is judged; gives the two systems that met."""
    with Database(database) as opened:
        arena = Arena(opened)
        vote = cast_vote(arena, "hf:ann")
        revealed = Rankings(arena).reveal(arena.voter("hf:ann"), vote)
        assert revealed is not None
        return {revealed.a.system, revealed.b.system}


@pytest.fixture
def met() -> set[str]:
    """Systems that met in the one battle that was judged."""
    return set()


@pytest.fixture
def address(serving: Any, hub_client: Any, tmp_path: Path, met: set[str]) -> str:
    runs = write_runs(tmp_path / "runs")
    add_languages(runs / "board.parquet")
    fill(runs / "podeval.db", runs / "arena", items=1)
    met |= meet(runs / "podeval.db")
    return str(serving(runs))


@pytest.fixture
def program(address: str) -> Program:
    return Program(address)


def battles_of(document: dict[str, Any], system: str) -> int:
    """In how many battles a system was, by the first of its dimensions, which is `pooled` where there are several."""
    parts = [next(iter(protocol["dimensions"].values()))["systems"] for protocol in document["protocols"].values()]
    return sum(row["battles"] for rows in parts for row in rows if row["system"] == system)


def test_the_best_system_for_wer_in_english_a_check_of_a_repo_and_the_battles_of_a_system(
    program: Program, hub_client: Any, met: set[str]
) -> None:
    from tests.space.walkthrough import REPO

    metrics = program.ask("every metric", "direction")
    wer = next(metric for metric in metrics if metric["title"] == "WER")
    wanted = {"board": "lfs_bench", "metric": wer["name"]}
    rows = program.ask("numbers of one benchmark", "best first", slice="language=en", **wanted)
    first = next(row for row in rows if row["key"] == "wer" and row["rank_best"] == 1)
    assert (first["system"], first["better"], first["value"]) == (BEST_IN_ENGLISH, "lower", pytest.approx(0.02))
    overall = program.ask("numbers of one benchmark", "best first", **wanted)
    assert next(row for row in overall if row["key"] == "wer")["system"] == RIVAL, "English is asked for"

    hub_client.repos.publish("models", REPO, model_files())
    checked = program.ask("model repo", "queue nothing", repo=REPO)
    assert checked["passed"] is True
    assert checked["document"]["system"]["licence"] == "apache-2.0"
    refused = program.ask("model repo", "queue nothing", repo=REPO, task="podcast", track="write")
    assert refused["passed"] is False
    assert refused["refusals"][0]["message"]
    assert program.ask("submissions, newest first") == [], "nothing was queued"

    ratings = program.ask("ratings by public votes", "battles")
    assert {system: battles_of(ratings, system) for system in met} == dict.fromkeys(met, 1)


def test_the_same_three_questions_are_answered_by_the_tools_for_language_models(
    address: str, hub_client: Any, met: set[str]
) -> None:
    from tests.space.test_mcp import asked, called
    from tests.space.walkthrough import REPO

    async def work(client: Any) -> Any:
        return await client.list_tools()

    tools = asked(address, work).tools

    def tool(*words: str) -> str:
        (fitting,) = [each for each in tools if all(word in each.description.casefold() for word in words)]
        return str(fitting.name)

    numbers = called(
        address, tool("numbers of one benchmark"), benchmark="lfs_bench", metric="wer", slice="language=en"
    )
    best = next(row for row in numbers["numbers"] if row["key"] == "wer" and row["rank_best"] == 1)
    assert (best["system"], best["better"]) == (BEST_IN_ENGLISH, "lower")
    hub_client.repos.publish("models", REPO, model_files())
    checked = called(address, tool("model repo", "queue nothing"), repo=REPO)
    assert (checked["passed"], checked["refusals"]) == (True, [])
    refused = called(address, tool("model repo", "queue nothing"), repo=REPO, task="podcast", track="write")
    assert refused["refusals"][0]["code"] == "task-does-not-fit"
    ratings = called(address, tool("ratings from public votes"))
    assert {system: battles_of(ratings, system) for system in met} == dict.fromkeys(met, 1)


@pytest.mark.long
def test_a_refusal_is_a_sentence_for_the_program(program: Program) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=r"there is no board 'nope' here; choose from real_pod/voice"):
        program.ask("numbers of one benchmark", board="nope")
    with pytest.raises(AppError, match=r"'nope nope' is not a repo on the Hub; write owner/name"):
        program.ask("model repo", "queue nothing", repo="nope nope")


def test_who_is_not_signed_in_has_a_model_repo_looked_over_as_anybody_sees_it_and_nothing_else(
    board_app: ModuleType, hub_client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pages.mcp
    from auth import SignIn
    from pages.mcp import SubmissionCheck
    from services import open_services
    from website import Site, TooMany

    from tests.space.walkthrough import REPO

    hub_client.repos.publish("models", REPO, model_files())
    monkeypatch.setenv("HF_TOKEN", "hf_of_this_board")
    asked: list[str | None] = []
    answer = hub_client.repos.answer

    def note_token(method: str, target: str, headers: Any, body: bytes) -> Any:
        asked.append(headers.get("authorization"))
        return answer(method, target, headers, body)

    monkeypatch.setattr(hub_client.repos, "answer", note_token)
    site = Site(open_services(write_runs(tmp_path / "runs"), None), SignIn(mode="oidc"))
    checks, request = SubmissionCheck(site), make_request()
    repo = {"repo": REPO, "benchmark": "real_pod", "track": "", "task": ""}
    checked = checks.check(request, None, **repo)
    assert checked["passed"] is True, checked
    assert asked
    assert set(asked) == {None}, "this board's token stays here"
    assert site.services.desk is not None
    assert site.services.desk.queue.all() == []
    again = checks.check(request, checked["document"], **repo)
    assert again["passed"] is True

    outputs = {"source": {"kind": "outputs", "folder": "../../etc"}}
    with pytest.raises(BadInput) as refused:
        checks.check(request, outputs, **repo)
    assert refused.value.code == "sign-in-to-check"
    monkeypatch.setattr(pages.mcp, "VISITORS_RATE", "3/hour")
    checks.check(make_request("192.0.2.9"), None, **repo)
    with pytest.raises(TooMany):
        checks.check(make_request("192.0.2.10"), None, **repo)
    monkeypatch.setattr(pages.mcp, "VISITOR_RATE", "1/minute")
    monkeypatch.setattr(pages.mcp, "VISITORS_RATE", "30/hour")
    with pytest.raises(TooMany):
        checks.check(request, None, **repo)


def make_request(host: str = "192.0.2.1") -> Any:
    """A request from an address, of nobody in particular."""
    from starlette.requests import Request

    scope = {"type": "http", "method": "POST", "path": "/gradio_api/call/submit_check", "headers": [], "session": {}}
    scope |= {"query_string": b"", "client": (host, 4000), "server": ("board.example", 443), "scheme": "https"}
    return Request(scope)
