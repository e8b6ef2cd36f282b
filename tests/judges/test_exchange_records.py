import json
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podeval.errors import BadInput, PodevalError
from podeval.judges.client import JudgeClient, JudgeRequest, Unanswered, UsableAnswer
from podeval.judges.exchange_records import FILE, Records
from podeval.judges.judge import find_judge
from podeval.judges.prompt import Prompt
from tests.judges.conftest import GOOD, Make, count_tries, make_requests

KEY = "sk-very-secret-0123456789"


def by_number(scripted: Any) -> Any:
    def script(call: Any) -> Any:
        number = int(call.question.split("number ")[1].split("\n")[0])
        text = json.dumps({"score": number % 46, "reason": "as numbered"})
        return scripted.Answer("no idea" if number % 7 == 3 else text)

    return script


def test_what_was_answered_is_not_asked_again(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    server = serve(by_number(scripted))
    first = judging(server, tmp_path).ask(make_requests(small_prompt, 20))
    asked = len(server.calls)
    assert asked == 20 + 2 * 3
    again = judging(server, tmp_path)
    assert again.ask(make_requests(small_prompt, 20)) == first
    assert len(server.calls) == asked
    assert again.account.from_records == 17
    assert again.account.calls == 0


def test_replay_gives_the_same_values_without_a_call(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    server = serve(by_number(scripted))
    first = judging(server, tmp_path).ask(make_requests(small_prompt, 20))
    asked = len(server.calls)
    judge = find_judge(f"records:{tmp_path}")
    before = (tmp_path / FILE).read_bytes()
    assert JudgeClient(judge).ask(make_requests(small_prompt, 20)) == first
    assert len(server.calls) == asked
    assert (tmp_path / FILE).read_bytes() == before


def test_replay_says_what_was_never_asked(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    judging(serve(by_number(scripted)), tmp_path).ask(make_requests(small_prompt, 1))
    outcomes = JudgeClient(find_judge(f"records:{tmp_path}")).ask(make_requests(small_prompt, 2))
    assert isinstance(outcomes[0], UsableAnswer)
    assert isinstance(outcomes[1], Unanswered)
    assert "contains no answer" in outcomes[1].reason


def test_replay_reads_raw_answers_by_the_rules_of_the_day(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    """A check that was too strict when the answers came is mended later: what they said is still there."""

    def too_strict(answer: Any) -> None:
        raise ValueError("nothing is good enough")

    strict = [replace(request, check=too_strict) for request in make_requests(small_prompt, 3)]
    assert all(isinstance(outcome, Unanswered) for outcome in judging(good_server, tmp_path).ask(strict))
    replayed = JudgeClient(find_judge(f"records:{tmp_path}")).ask(make_requests(small_prompt, 3))
    assert [outcome.value.score for outcome in replayed if isinstance(outcome, UsableAnswer)] == [36, 36, 36]


def test_a_try_that_was_recorded_counts_when_asking_goes_on(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    def script(call: Any) -> Any:
        return scripted.Answer("no idea") if call.number == 0 else scripted.Answer(status=401, body="{}")

    judging(serve(script), tmp_path).ask(make_requests(small_prompt, 1))
    recovered = serve(lambda call: scripted.Answer(GOOD))
    judge = replace(find_judge(f"scripted@{recovered.url}"), recorded=Records(tmp_path).judges()[0]["id"])
    assert count_tries(JudgeClient(judge, tmp_path).ask(make_requests(small_prompt, 1))) == 2
    assert "no idea" in json.dumps(recovered.calls[0].body)


def test_asking_anew_replaces_and_keeps_the_old(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    server = serve(lambda call: scripted.Answer(json.dumps({"score": call.number, "reason": "count"})))
    asked = make_requests(small_prompt, 1)
    judging(server, tmp_path).ask(asked)
    (anew,) = judging(server, tmp_path, refresh=True).ask(asked)
    assert isinstance(anew, UsableAnswer)
    assert anew.value.score == 1  # type: ignore[attr-defined]
    assert judging(server, tmp_path).ask(asked) == [anew]
    assert [exchange.series for exchange in Records(tmp_path).all_exchanges()] == [0, 1]


def test_what_a_judge_never_answered_usably_can_be_asked_anew_and_the_rest_is_replayed(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    def broken(call: Any) -> Any:
        return scripted.Answer(GOOD if "number 0" in call.user_text else "no idea")

    asked = make_requests(small_prompt, 3)
    first = judging(serve(broken), tmp_path).ask(asked)
    assert [type(outcome) for outcome in first] == [UsableAnswer, Unanswered, Unanswered]
    mended = serve(lambda call: scripted.Answer(GOOD))
    judge = replace(find_judge(f"scripted@{mended.url}"), recorded=Records(tmp_path).judges()[0]["id"])
    assert JudgeClient(judge, tmp_path).ask(asked) == first, "evidence, until it is asked for anew"
    anew = JudgeClient(judge, tmp_path, refresh="failed").ask(asked)
    assert all(isinstance(outcome, UsableAnswer) for outcome in anew)
    assert len(mended.calls) == 2
    assert JudgeClient(judge, tmp_path).ask(asked) == anew
    assert len(list(Records(tmp_path).all_exchanges())) == 1 + 2 * judge.tries + 2, "what it said before is kept"
    assert JudgeClient(find_judge(f"records:{tmp_path}"), refresh="failed").ask(asked) == anew


def test_a_line_that_was_removed_is_asked_for_again_and_others_stay_where_they_are(
    serve: Any, scripted: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    server = serve(by_number(scripted))
    asked = make_requests(small_prompt, 3)
    other = judging(server, tmp_path)
    first = other.ask(asked)
    records = Records(tmp_path)
    size = (tmp_path / FILE).stat().st_size
    assert records.remove(lambda line: "number 1" in json.dumps(line.get("messages", ""))) == 1
    assert (tmp_path / FILE).stat().st_size == size
    assert b"script number 1" not in (tmp_path / FILE).read_bytes()
    calls = len(server.calls)
    assert other.ask([asked[0], asked[2]]) == [first[0], first[2]]
    assert len(server.calls) == calls
    assert isinstance(other.ask([asked[1]])[0], UsableAnswer)
    assert len(server.calls) == calls + 1


def test_other_judges_prompts_inputs_and_seeds_are_asked_apart(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    base = JudgeRequest(small_prompt, {"script": "x"})
    judging(good_server, tmp_path).ask(
        [
            base,
            replace(base, seed=1),
            replace(base, inputs={"script": "y"}),
            replace(base, prompt=replace(small_prompt, version="1.1")),
        ]
    )
    other = replace(find_judge(f"other@{good_server.url}"))
    JudgeClient(other, tmp_path).ask([base])
    assert len(good_server.calls) == 5
    with pytest.raises(BadInput, match=r"records of 2 judges; choose one of them: .*#scripted@unpinned#"):
        find_judge(f"records:{tmp_path}")
    assert find_judge(f"records:{tmp_path}#{other.id}").id == other.id


def test_a_half_written_last_line_is_cut_off_and_asked_anew(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    judging(good_server, tmp_path, workers=1).ask(make_requests(small_prompt, 2))
    file = tmp_path / FILE
    whole = file.read_bytes()
    file.write_bytes(whole[:-30])
    outcomes = judging(good_server, tmp_path).ask(make_requests(small_prompt, 2))
    assert all(isinstance(outcome, UsableAnswer) for outcome in outcomes)
    assert len(good_server.calls) == 3
    assert [json.loads(line)["kind"] for line in file.read_text().splitlines()] == ["judge", "exchange", "exchange"]


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"kind": "judge", "id": "x"}\n{"kind": "exchange"}\n')
    with pytest.raises(BadInput, match=r"records\.jsonl, line 2 is damaged"):
        Records(tmp_path)


def test_records_that_cannot_be_written_end_the_asking(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    (tmp_path / "folder").write_text("a file where a folder should be")
    with pytest.raises(BadInput, match="cannot read"):
        judging(good_server, tmp_path / "folder")
    asking = judging(good_server, tmp_path / "new")
    (tmp_path / "new").write_text("a file that came in between")
    with pytest.raises(PodevalError, match="cannot write"):
        asking.ask(make_requests(small_prompt, 1))


def test_a_full_disk_ends_the_asking_and_what_was_answered_is_kept(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    import resource

    asking = judging(good_server, tmp_path, workers=1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, limits[1]))
    try:
        with pytest.raises(PodevalError, match="the disk is full"):
            asking.ask(make_requests(small_prompt, 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    kept = len(list(Records(tmp_path).all_exchanges()))
    assert 1 <= kept < 20
    assert all(
        isinstance(outcome, UsableAnswer)
        for outcome in judging(good_server, tmp_path).ask(make_requests(small_prompt, 20))
    )
    # A call that was under way when the disk was full may be recorded after all, beside its second asking.
    exchanges = list(Records(tmp_path).all_exchanges())
    assert len({exchange.key for exchange in exchanges}) == 20
    assert len(exchanges) <= 21


def test_a_judge_that_is_declared_a_trial_model_later_is_known_as_one(
    serve: Any, scripted: Any, small_prompt: Prompt, tmp_path: Path
) -> None:
    judge = find_judge(f"m@{serve(lambda call: scripted.Answer(GOOD)).url}")
    JudgeClient(judge, tmp_path).ask(make_requests(small_prompt, 1))
    JudgeClient(replace(judge, trial=True), tmp_path).ask(make_requests(small_prompt, 2))
    JudgeClient(replace(judge, trial=True), tmp_path).ask(make_requests(small_prompt, 3))
    (described,) = Records(tmp_path).judges()
    assert described["trial"] is True
    assert (tmp_path / FILE).read_text("utf-8").count('"kind": "judge"') == 2


def test_threads_of_several_askers_share_a_folder(
    good_server: Any, judging: Make, small_prompt: Prompt, tmp_path: Path
) -> None:
    askers = [judging(good_server, tmp_path) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda asker: asker.ask(make_requests(small_prompt, 10)), askers))
    assert len(list(Records(tmp_path).all_exchanges())) == len(good_server.calls)


@pytest.mark.parametrize("variable", ["PODEVAL_JUDGE_KEY"])
def test_the_key_is_in_the_header_and_nowhere_else(
    serve: Any,
    scripted: Any,
    judging: Make,
    small_prompt: Prompt,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    variable: str,
) -> None:
    """Also where the server sends it back: in an answer, in an error, in garbage."""
    monkeypatch.setenv(variable, KEY)
    echo = json.dumps({"error": {"message": f"bad header Authorization: Bearer {KEY}"}})
    answers = [
        scripted.Answer(f'{{"score": 1, "reason": "I saw {KEY}"}}'),
        scripted.Answer(f"You sent {KEY}"),
        scripted.Answer(status=500, body=echo),
        scripted.Answer(body=f"garbage {KEY}"),
        scripted.Answer(status=400, body=echo),
        scripted.Answer(status=429, body=echo),
        scripted.Answer(status=401, body=echo),
    ]
    server = serve(lambda call: answers[min(call.number, len(answers) - 1)])
    with caplog.at_level("DEBUG"):
        asking = judging(server, tmp_path, workers=1)
        outcomes = asking.ask(make_requests(small_prompt, 6))
    assert server.calls[0].headers["authorization"] == f"Bearer {KEY}"
    assert any(isinstance(outcome, Unanswered) for outcome in outcomes)
    shown = capfd.readouterr()
    everything = [repr(outcomes), repr(asking.judge), repr(asking._backend), caplog.text, shown.out, shown.err]
    everything += [path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert "[key]" in "".join(everything)
    assert KEY not in "".join(everything)
    assert "authorization: bearer sk" not in "".join(everything).lower()


def test_the_hugging_face_token_goes_to_no_other_host(
    good_server: Any, judging: Make, small_prompt: Prompt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    judging(good_server).ask(make_requests(small_prompt, 1))
    assert "hf_secret" not in json.dumps([good_server.calls[0].headers, good_server.calls[0].body])


PROGRAM = """
import importlib.util, sys
from pathlib import Path
from podeval.judges.client import JudgeClient, JudgeRequest
from podeval.judges.judge import find_judge
spec = importlib.util.spec_from_file_location("judges_conftest", sys.argv[1])
conftest = importlib.util.module_from_spec(spec)
sys.modules["judges_conftest"] = conftest
spec.loader.exec_module(conftest)
prompt = conftest.Prompt("small", "1.0", "You judge.", "Judge this:{script}Be fair.", conftest.Marks, "no paper")
asked = [JudgeRequest(prompt, {"script": f"script number {number}"}) for number in range(40)]
outcomes = JudgeClient(find_judge(sys.argv[2]), Path(sys.argv[3]), workers=4).ask(asked)
print(sum(type(outcome).__name__ == "UsableAnswer" for outcome in outcomes))
"""


def test_a_killed_run_goes_on_with_what_is_missing(serve: Any, scripted: Any, tmp_path: Path) -> None:
    killed = threading.Event()

    def script(call: Any) -> Any:
        if call.number >= 24:
            killed.wait(60)
        return scripted.Answer(GOOD)

    server = serve(script)
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        str(Path(__file__).parent / "conftest.py"),
        f"m@{server.url}",
        str(tmp_path),
    ]
    # From the checkout, so that the program finds what conftest.py imports.
    place = Path(__file__).parents[2]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=place)
    # Each of the four workers waits for its answer when they are killed, so that none is on its way to the server.
    while len(server.calls) < 28:
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    killed.set()
    recorded = len(list(Records(tmp_path).all_exchanges()))
    before = len(server.calls)
    assert 20 <= recorded <= 24
    second = subprocess.run(command, capture_output=True, text=True, check=True, cwd=place)
    assert second.stdout.strip() == "40"
    assert len(server.calls) - before == 40 - recorded
    texts = [call.user_text for call in server.calls]
    # What was under way when it was killed, at most one a worker, is asked twice; nothing else is.
    assert len(texts) - len(set(texts)) <= 4
