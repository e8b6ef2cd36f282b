"""A program that sees nothing but the descriptions of the named endpoints does what people come for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")
sys.path.insert(0, str(Path(__file__).parent))

from arena_fixture import fill
from fixture_runs import write_runs

pytestmark = pytest.mark.space


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


@pytest.fixture
def program(serving: Any, hub_client: Any, tmp_path: Path) -> Program:
    runs = write_runs(tmp_path / "runs")
    fill(runs / "podeval.db", runs / "arena", items=1)
    return Program(serving(runs))


def test_the_best_system_for_wer_in_arts_a_check_of_a_repo_and_battles_of_a_system(
    program: Program, hub_client: Any
) -> None:
    from walkthrough import REPO, TESTS, module_at

    metrics = program.ask("every metric", "direction")
    wer = next(metric for metric in metrics if metric["title"] == "WER")
    rows = program.ask("numbers of one benchmark", "best first", metric=wer["name"], slice="category=Arts")
    first = next(row for row in rows if row["key"] == "wer" and row["rank_best"] == 1)
    assert (first["system"], first["better"]) == ("hibari", "lower")

    hub_client.repos.publish("models", REPO, module_at(TESTS / "submissions/conftest.py").model_files())
    checked = program.ask("model repo", "queue nothing", repo=REPO)
    assert checked["passed"] is True
    assert checked["document"]["system"]["licence"] == "apache-2.0"
    refused = program.ask("model repo", "queue nothing", repo=REPO, task="podcast", track="write")
    assert refused["passed"] is False
    assert refused["refusals"][0]["message"]

    ratings = program.ask("ratings by public votes", "battles")
    assert (ratings["votes"], ratings["protocols"]) == (0, {})
    assert program.ask("submissions, newest first") == []


@pytest.mark.long
def test_a_refusal_is_a_sentence_for_the_program(program: Program) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises(AppError, match=r"there is no board 'nope' here; there are real_pod/voice"):
        program.ask("numbers of one benchmark", board="nope")
    with pytest.raises(AppError, match=r"'nope nope' is no repo of the Hub; write owner/name"):
        program.ask("model repo", "queue nothing", repo="nope nope")
