import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy import stats
from typer.testing import CliRunner

from podeval.errors import BadInput
from podeval.judges.client import JudgeClient, JudgeRequest
from podeval.judges.judge import find_judge
from podeval.metrics import pairwise_judge
from podeval.metrics.judged import dialogue_judge, rubric
from podeval.stats.mushra_scores import Mark
from podeval.validation.agreement import read_printed_audits
from podeval.validation.human_scores import compute_agreement, read_marks, read_scores
from podeval.validation.judge_answers import (
    JudgeAnswers,
    JudgeReply,
    answer_model,
    list_leaves,
    measure_of,
    read_answers,
)
from podeval.validation.judge_audit import audit, compare_judges, compare_orders
from podeval.validation.judge_report import describe_audit

Prefer = Callable[[str, str], float]


def comparison(first: str, second: str, overall: float, seed: int = 0) -> JudgeReply:
    """An answer of the dialogue judge: positive where the second is better."""
    value = dialogue_judge.Comparison(
        analysis="x",
        coherence=overall,
        engagingness=0,
        diversity=0,
        informativeness=0,
        speaker_difference=0,
        overall=overall,
    )
    inputs = {"first": (first, float(len(first))), "second": (second, float(len(second)))}
    return JudgeReply("dialogue_compare@1.0#x", inputs, seed, value)


def pairs(count: int, prefer: Prefer) -> list[JudgeReply]:
    """So many pairs of texts in both orders, the second a word longer than the first."""
    found = []
    for number in range(count):
        one, other = f"text {number}", f"text {number} longer"
        found += [comparison(one, other, prefer(one, other)), comparison(other, one, prefer(other, one))]
    return found


def longer(first: str, second: str) -> float:
    return 2.0 if len(second) > len(first) else -2.0


def by_chance(first: str, second: str) -> float:
    """Neither place nor length nor text decides, but the checksum of both."""
    return 2.0 if zlib.crc32(f"{first}|{second}".encode()) % 2 else -2.0


def test_a_judge_that_prefers_a_place_agrees_with_itself_never() -> None:
    orders = compare_orders(pairs(20, lambda first, second: -1.0))
    assert orders
    assert (orders.agreement.value, orders.agreement.count) == (0.0, 20)
    assert orders.places.share.value == 1.0
    assert (orders.swayed.share.value, orders.swayed.share.count) == (1.0, 20)
    # Exact binomial of 20 of 20: 2 / 2**20.
    assert orders.swayed.p == pytest.approx(2 / 2**20)
    assert orders.lengths is None


def test_a_judge_that_prefers_the_longer_is_steady_and_found_out() -> None:
    orders = compare_orders(pairs(20, longer))
    assert orders
    assert orders.agreement.value == 1.0
    assert orders.places.share.value == 0.5
    assert orders.swayed.share.count == 0
    assert orders.lengths
    assert orders.lengths.longer.share.value == 1.0
    # " longer" has seven characters.
    assert orders.lengths.excess.value == pytest.approx(7.0)


def test_ties_and_single_orders_are_counted_apart() -> None:
    given = [*pairs(3, longer), comparison("a", "b", 0.0), comparison("b", "a", 1.0), comparison("c", "d", 1.0)]
    given.append(comparison("same", "same", 3.0))
    orders = compare_orders(given)
    assert orders
    assert (orders.agreement.count, orders.ties, orders.single) == (3, 1, 1)
    assert compare_orders([]) is None


def test_other_seeds_are_other_comparisons() -> None:
    orders = compare_orders([comparison("a", "bb", 1.0, seed=1), comparison("bb", "a", -1.0, seed=2)])
    assert orders
    assert (orders.agreement.count, orders.single) == (0, 2)


def test_battles_are_paired_whether_read_or_heard() -> None:
    def choice(prompt: str, inputs: dict[str, str], winner: str) -> JudgeReply:
        value = pairwise_judge.Choice(reason="x", winner=winner)  # type: ignore[arg-type]
        return JudgeReply(prompt, {name: (what, 1.0) for name, what in inputs.items()}, 0, value)

    read = {"dialogue_a": "x", "dialogue_b": "y", "focus": "f"}
    turned = {"dialogue_a": "y", "dialogue_b": "x", "focus": "f"}
    heard = {"a_user_1": "u", "b_user_1": "u", "a_answer_1": "x", "b_answer_1": "y", "focus": "f"}
    exchanged = heard | {"a_answer_1": "y", "b_answer_1": "x"}
    orders = compare_orders(
        [
            choice("battle_transcript@1.0#x", read, "A"),
            choice("battle_transcript@1.0#x", turned, "B"),
            choice("battle_audio_1@1.0#x", heard, "A"),
            choice("battle_audio_1@1.0#x", exchanged, "A"),
            choice("battle_transcript@1.0#x", read | {"focus": "another"}, "A"),
        ]
    )
    assert orders
    assert (orders.agreement.value, orders.agreement.count, orders.single) == (0.5, 2, 1)


@pytest.fixture
def judged(serve: Any, scripted: Any, tmp_path: Path) -> Callable[..., Path]:
    """Records of a judge that compares by a rule, through the real client and server."""

    def make(
        count: int,
        prefer: Prefer,
        *,
        folder: str = "records",
        model: str = "m",
        trial: bool = False,
        seeds: tuple[int, ...] = (0, 1),
    ) -> Path:
        def script(call: Any) -> Any:
            first, second = (part.split("\n")[1] for part in call.question.split("BEGIN ")[1:])
            rating = prefer(first, second)
            keys = ("coherence", "engagingness", "diversity", "informativeness", "speaker_difference", "overall")
            return scripted.Answer(json.dumps({"analysis": "x", **dict.fromkeys(keys, rating)}))

        judge = replace(find_judge(f"{model}@{serve(script).url}"), trial=trial)
        texts = [(f"text {number}", f"text {number} longer") for number in range(count)]
        asked = [
            JudgeRequest(dialogue_judge.COMPARE, {"first": first, "second": second}, seed)
            for one, other in texts
            for first, second in ((one, other), (other, one))
            for seed in seeds
        ]
        JudgeClient(judge, tmp_path / folder, workers=4).ask(asked)
        return tmp_path / folder

    return make


@pytest.mark.long
def test_a_steady_judge_is_fit_from_fifty_pairs(judged: Any) -> None:
    (judge,) = read_answers(judged(25, longer))
    found = audit(judge)
    # 25 pairs by two seeds; Wilson's lower bound of 50 of 50 is 50 / (50 + 1.96²) = 0.929.
    assert found.orders
    assert found.orders.agreement.count == 50
    assert found.orders.agreement.low == pytest.approx(0.929, abs=1e-3)
    assert found.unfit == ()


@pytest.mark.long
def test_fewer_pairs_a_trial_model_or_chance_are_unfit(judged: Any) -> None:
    (few,) = read_answers(judged(10, longer, folder="few"))
    assert "20 pairs without ties, but 50 are needed" in audit(few).unfit[0]
    (trial,) = read_answers(judged(25, longer, folder="trial", trial=True))
    assert audit(trial).unfit == ("it is declared a trial model",)
    (chance,) = read_answers(judged(30, by_chance, folder="chance"))
    assert "agreement between orders" in audit(chance).unfit[0]


@pytest.mark.parametrize(
    ("prefer", "found"),
    [
        (lambda first, second: by_chance(*sorted((first, second))) * (1 if first < second else -1), ()),
        (lambda first, second: -1.0, ("order", "first", "swayed")),
        (longer, ("longer",)),
        (by_chance, ("order",)),
    ],
    ids=["sound", "a place", "length", "chance"],
)
def test_of_fifty_pairs_the_figures_show_what_a_judge_prefers(prefer: Prefer, found: tuple[str, ...]) -> None:
    """A figure whose interval excludes one half shows it; of the order, one whose lower bound is not above."""
    answers = JudgeAnswers({"id": "judge"}, replies=pairs(60, prefer), asked=120)
    audited = audit(answers)
    orders = audited.orders
    assert orders
    assert orders.agreement.low is not None
    chances = {"first": orders.places.p, "swayed": orders.swayed.p}
    chances["longer"] = orders.lengths.longer.p if orders.lengths else None
    shown = {"order": orders.agreement.low <= 0.5, **{name: (p or 1) < 0.05 for name, p in chances.items()}}
    assert tuple(name for name, value in shown.items() if value) == found
    assert bool(audited.unfit) == ("order" in found)


def test_a_judge_that_was_asked_about_one_at_a_time_is_not_unfit_and_says_what_was_not_audited() -> None:
    verdict = rubric.Verdicts(verdicts=[rubric.Verdict(criterion="c1", reason="r", met=1)])
    replies = [JudgeReply("rubric@1.0#x", {"dialogue": (f"d{number}", 9.0)}, 0, verdict) for number in range(20)]
    audited = audit(JudgeAnswers({"id": "judge"}, replies=replies, asked=20))
    assert (audited.orders, audited.unfit) == (None, ())
    said = list(describe_audit("judge", audited))
    assert said[0] == "judge: fit for publication"
    assert any("never asked to compare" in line for line in said)
    assert audit(JudgeAnswers({"id": "judge", "trial": True}, replies=replies)).unfit == (
        "it is declared a trial model",
    )


def test_repeats_over_seeds_are_compared_by_measure(judged: Any) -> None:
    (judge,) = read_answers(judged(5, longer))
    found = {item.measure: item for item in audit(judge).steadiness}
    assert set(found) == {*dialogue_judge.KEYS}
    assert (found["overall"].identical.value, found["overall"].identical.count) == (1.0, 10)
    assert found["overall"].alpha
    assert found["overall"].alpha.value == pytest.approx(1.0)


def test_unusable_answers_and_silent_calls_are_counted(serve: Any, scripted: Any, judging: Any, tmp_path: Path) -> None:
    good = json.dumps({"analysis": "x", **dict.fromkeys(dialogue_judge.KEYS, 1)})

    def script(call: Any) -> Any:
        if call.number == 0:
            return scripted.Answer(status=500, body="")
        if "never" in call.question:
            return scripted.Answer("no idea")
        return scripted.Answer("no idea" if call.number == 1 else good)

    texts = [("a", "b"), ("never", "b"), ("c", "d"), ("e", "f")]
    asked = [JudgeRequest(dialogue_judge.COMPARE, {"first": one, "second": other}) for one, other in texts]
    judging(serve(script), tmp_path, workers=1).ask(asked)
    (judge,) = read_answers(tmp_path)
    assert (judge.asked, judge.unusable, judge.unanswered, judge.failed_calls) == (4, 2, 1, 1)
    found = audit(judge)
    assert found.unusable.value == 0.5
    assert found.unanswered.value == 0.25


def test_judges_are_compared_on_the_questions_both_were_asked(judged: Any) -> None:
    folders = [judged(6, longer, folder="one", seeds=(0,)), judged(5, longer, folder="two", model="n", seeds=(0,))]
    alike = {
        found.measure: found
        for found in compare_judges([judge for folder in folders for judge in read_answers(folder)])
    }
    overall = alike["overall"].figures
    # Five pairs in both orders.
    assert (overall["identical"].value, overall["identical"].count) == (1.0, 10)
    assert overall["SRCC"].value == pytest.approx(1.0)
    assert overall["MAE"].value == 0.0


def test_two_folders_of_one_judge_show_how_it_drifted(judged: Any) -> None:
    """Under one name, the model that answers is another one: it rates a point lower, and a point more where it errs."""
    folders = [
        judged(6, longer, folder="old", seeds=(0,)),
        judged(6, lambda *pair: longer(*pair) - 1, folder="new", seeds=(0,)),
    ]
    old, new = (judge for folder in folders for judge in read_answers(folder))
    found = {likeness.measure: likeness for likeness in compare_judges([old, new])}["overall"]
    difference = found.figures["difference"]
    assert (difference.value, difference.count) == (-1.0, 12)
    # Equal differences of marks: Wilson's bound of 0 of 12, times the step of the marks.
    assert (difference.low, difference.high) == pytest.approx((-1.0 - 0.2425, -1.0 + 0.2425), abs=1e-4)
    assert found.figures["SRCC"].value == pytest.approx(1.0)


def test_prose_is_no_measure_and_items_are_pooled() -> None:
    value = dialogue_judge.Comparison(analysis="long prose", **dict.fromkeys(dialogue_judge.KEYS, 1.0))
    assert set(dict(list_leaves(value))) == set(dialogue_judge.KEYS)
    assert dict(list_leaves(pairwise_judge.Choice(reason="why", winner="B"))) == {"winner": "B"}
    assert measure_of("verdicts.3.met") == "verdicts.met"


def test_prompts_for_any_number_of_turns_are_known() -> None:
    assert answer_model("battle_audio_7@1.0#abc") is pairwise_judge.Choice
    assert answer_model("no_such_prompt@1.0#abc") is None


SCORES = {"a": 1.0, "b": 2.0, "c": 3.5, "d": 3.0, "e": 5.0}
PEOPLE = [Mark("r1", item, "", value) for item, value in zip("abcde", (1, 3, 3, 4, 5), strict=True)]
PEOPLE += [Mark("r2", item, "", value) for item, value in zip("abcz", (2, 2, 4, 1), strict=True)]


def test_agreement_with_people_is_with_their_mean() -> None:
    found = compute_agreement(SCORES, PEOPLE)
    truth = [1.5, 2.5, 3.5, 4.0, 5.0]
    assert found.figures["SRCC"].value == pytest.approx(stats.spearmanr([1, 2, 3.5, 3, 5], truth).statistic)
    assert found.figures["KRCC"].value == pytest.approx(stats.kendalltau([1, 2, 3.5, 3, 5], truth).statistic)
    # Differences 0.5, 0.5, 0, 1, 0.
    assert found.figures["MAE"].value == pytest.approx(0.4)
    # Nine of ten pairs are in the same order.
    assert found.figures["pairwise accuracy"].value == pytest.approx(0.9)
    assert (found.items, found.raters) == (5, 2)
    assert "Krippendorff alpha, people alone" in found.figures


def test_too_few_common_items_are_a_sentence_with_names() -> None:
    with pytest.raises(BadInput, match=r"both scored 1 items, .* such as 'a', 'b', people's items such as 'a', 'q'"):
        compute_agreement({"a": 1.0, "b": 2.0}, [Mark("", "a", "", 1), Mark("", "q", "", 2)])


def test_scores_are_read_from_what_measure_prints_and_from_csv(tmp_path: Path) -> None:
    lines = tmp_path / "scores.jsonl"
    lines.write_text(
        '{"file": "x/a.json", "script_quality": 70, "substance": 3}\n'
        '{"file": "b.json", "unscored": "no", "cause": "ours"}\n'
    )
    assert read_scores(lines, "script_quality") == {"a": 70.0}
    with pytest.raises(BadInput, match="choose one value with --key"):
        read_scores(lines, None)
    table = tmp_path / "scores.csv"
    table.write_text("item,score,measure\na,1,x\na,2,y\n")
    assert read_scores(table, "y") == {"a": 2.0}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("item,value\na,1\n", "a header line with item, score"),
        ("", "the source contains no scores"),
        ("item,score\na,good\n", "line 2: the score 'good' is not a number"),
        ("item,score,rater\na,1,r\na,2,r\n", "line 3: 'a' has a second score by r"),
    ],
)
def test_a_wrong_table_is_a_sentence(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "people.csv"
    path.write_text(text)
    with pytest.raises(BadInput, match=why):
        read_marks(path)


def test_the_papers_figures_are_as_printed() -> None:
    rows = {(row["table"], row["judge"], row["about"], row["measure"]): row for row in read_printed_audits()}
    position = rows[("MTalk-Bench, table 3", "Gemini-2.5-pro", "battles", "TPR")]
    assert (position["value"], position["low"], position["high"]) == ("52.37", "50.51", "54.22")
    assert rows[("PodBench, table 4", "PodBench (Ours)", "scripts", "accuracy_vs_human_majority")]["value"] == "86.80"
    assert rows[("LFS-Bench, table 5", "Gemini3-Pro", "expressive_hierarchy", "SRCC")]["value"] == "0.6234"
    ranking = ("MTalk-Bench, table 13", "Claude-Sonnet4", "rubric, annotated transcript, semantic", "SRCC")
    assert rows[ranking]["value"] == "0.969"
    assert len(rows) == len(read_printed_audits())


def test_the_command_prints_and_exits_by_the_verdict(judged: Any, tmp_path: Path) -> None:
    from podeval.cli import app

    run = CliRunner().invoke
    fit, unfit = judged(50, longer, folder="fit", seeds=(0,)), judged(3, longer, folder="unfit", model="n", seeds=(0,))
    found = run(app, ["report", "judge", str(fit)])
    assert found.exit_code == 0, found.output
    assert ": fit for publication" in found.output
    # MTalk-Bench, table 3, TPR of people: 49.12 % [46.35, 51.89].
    assert "MTalk-Bench, table 3, battles: Human 0.491 [0.464, 0.519]" in found.output
    both = run(app, ["report", "judge", str(fit), str(unfit), "--json"])
    assert both.exit_code == 1
    data = json.loads(both.output)
    assert [bool(judge["unfit"]) for judge in data["judges"]] == [False, True]
    assert [judge["folder"] for judge in data["judges"]] == [str(fit), str(unfit)]
    assert data["between_judges"][0]["figures"]["identical"]["value"] == 1.0
    assert run(app, ["report", "judge", str(tmp_path)]).exit_code != 0


def test_answers_are_shown_as_read_today(judged: Any) -> None:
    from podeval.cli import app

    found = CliRunner().invoke(app, ["report", "judge", str(judged(2, longer)), "--answers", "--json"])
    assert found.exit_code == 0, found.output
    lines = [json.loads(line) for line in found.stdout.splitlines() if line.startswith("{")]
    assert len(lines) == 8
    assert {line["answer"]["overall"] for line in lines} == {2.0, -2.0}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("records", "--cases", "5"), "add --probe"),
        (("--probe", "judge.yaml", "--answers"), "apply to records"),
    ],
)
def test_records_are_audited_or_a_judge_is_asked(given: tuple[str, ...], says: str) -> None:
    from podeval.cli import app

    refused = CliRunner().invoke(app, ["report", "judge", *given])
    assert isinstance(refused.exception, BadInput)
    assert says in str(refused.exception)
