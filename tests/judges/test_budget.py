import threading
from dataclasses import replace
from typing import Any

import pytest

from podeval.errors import BadInput
from podeval.judges.budget import Budget, compute_price
from podeval.judges.client import JudgeClient, Unanswered, UsableAnswer
from podeval.judges.judge import Price, find_judge
from podeval.judges.prompt import Prompt
from tests.judges.conftest import GOOD, Make, make_requests

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
PRICE = Price(prompt=2.0, answer=10.0)


def test_the_price_is_for_a_million_tokens() -> None:
    # 1000 tokens at 2 and 100 at 10 a million: 0.002 + 0.001.
    assert compute_price(PRICE, 1000, 100) == pytest.approx(0.003)
    assert compute_price(None, 1000, 100) == 0


def test_the_account_adds_up_what_the_backend_counts(serve: Any, scripted: Any, small_prompt: Prompt) -> None:
    server = serve(lambda call: scripted.Answer(GOOD, usage=USAGE))
    asking = JudgeClient(replace(find_judge(f"m@{server.url}"), price=PRICE))
    asking.ask(make_requests(small_prompt, 10))
    account = asking.account
    assert (account.calls, account.prompt_tokens, account.answer_tokens) == (10, 10_000, 1_000)
    assert account.cost == pytest.approx(0.03)
    assert "10 calls, 10000 tokens in requests and 1000 in answers, cost 0.03" in account.sentence()


def test_tokens_that_are_not_counted_are_reckoned(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt
) -> None:
    body = '{"choices": [{"message": {"content": "{\\"score\\": 1, \\"reason\\": \\"x\\"}"}}]}'
    asking = judging(serve(lambda call: scripted.Answer(body=body)))
    asking.ask(make_requests(small_prompt, 2))
    assert asking.account.prompt_tokens > 200
    assert asking.account.answer_tokens > 5


@pytest.mark.parametrize("workers", [1, 4])
def test_a_cap_on_cost_stops_cleanly_and_is_kept(serve: Any, scripted: Any, small_prompt: Prompt, workers: int) -> None:
    server = serve(lambda call: scripted.Answer(GOOD, usage=USAGE, wait=0.01))
    judge = replace(find_judge(f"m@{server.url}"), price=PRICE)
    budget = Budget(cost=0.1)
    outcomes = JudgeClient(judge, workers=workers, budget=budget).ask(make_requests(small_prompt, 100))
    answered = [outcome for outcome in outcomes if isinstance(outcome, UsableAnswer)]
    rest = [outcome for outcome in outcomes if isinstance(outcome, Unanswered)]
    # 0.003 a call: 33 fit, and as calls are reckoned carefully before they are settled, a few fewer are made.
    assert 25 <= len(answered) <= 33
    assert budget.account.cost <= 0.1
    assert len(server.calls) == len(answered)
    assert all("the budget is used up" in outcome.reason for outcome in rest)


def test_a_cap_on_tokens_needs_no_price(serve: Any, scripted: Any, judging: Make, small_prompt: Prompt) -> None:
    server = serve(lambda call: scripted.Answer(GOOD, usage=USAGE))
    outcomes = judging(server, workers=1, budget=Budget(tokens=12_000)).ask(make_requests(small_prompt, 30))
    answered = sum(isinstance(outcome, UsableAnswer) for outcome in outcomes)
    # The first call may need 4096 tokens; then 1100 a call.
    assert 8 <= answered <= 10


def test_a_run_after_the_cap_goes_on_from_there(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Any
) -> None:
    server = serve(lambda call: scripted.Answer(GOOD, usage=USAGE))
    asked = make_requests(small_prompt, 20)
    first = judging(server, tmp_path, workers=1, budget=Budget(tokens=12_000)).ask(asked)
    made = len(server.calls)
    assert 0 < made < 20
    assert sum(isinstance(outcome, UsableAnswer) for outcome in first) == made
    assert all(isinstance(outcome, UsableAnswer) for outcome in judging(server, tmp_path).ask(asked))
    assert len(server.calls) == 20


def test_a_cap_is_shared_by_several_judges(serve: Any, scripted: Any, judging: Make, small_prompt: Prompt) -> None:
    server = serve(lambda call: scripted.Answer(GOOD, usage=USAGE))
    budget = Budget(tokens=12_000)
    for _ in range(3):
        judging(server, workers=1, budget=budget).ask(make_requests(small_prompt, 20))
    assert len(server.calls) <= 10
    assert budget.account.tokens <= 12_000


def test_calls_without_an_answer_give_their_room_back(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt
) -> None:
    server = serve(
        lambda call: scripted.Answer(status=500, body="") if call.number < 3 else scripted.Answer(GOOD, usage=USAGE)
    )
    asking = judging(server, workers=1, budget=Budget(tokens=12_000))
    assert isinstance(asking.ask(make_requests(small_prompt, 1))[0], UsableAnswer)
    assert asking.account.busy == 3


def test_a_cap_on_cost_without_a_price_is_refused(serve: Any, scripted: Any, judging: Make) -> None:
    with pytest.raises(BadInput, match="the cost of scripted cannot be limited"):
        judging(serve(lambda call: scripted.Answer(GOOD)), budget=Budget(cost=1.0))


@pytest.mark.parametrize("caps", [{"cost": 0.0}, {"tokens": -1}])
def test_a_cap_of_nothing_is_refused(caps: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="above 0"):
        Budget(**caps)


def test_room_is_waited_for_while_calls_are_under_way() -> None:
    from podeval.models.chat import ChatAnswer

    budget = Budget(tokens=150)
    first = budget.reserve(50, 50, None)
    assert first
    second: list[Any] = []
    waiter = threading.Thread(target=lambda: second.append(budget.reserve(50, 50, None)))
    waiter.start()
    waiter.join(0.1)
    assert waiter.is_alive()
    budget.settle(first, ChatAnswer("x", prompt_tokens=50, answer_tokens=5), None)
    waiter.join(60)
    assert second[0] is not None
    assert budget.account.tokens == 55
