"""`podeval judge …`: texts written by a judge for a person's approval, battles decided by a judge, and scores derived
from listeners' reasons.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from podeval.cli.judge_limits import (
    JudgeWorkers,
    Limit,
    MaxCalls,
    MaxCost,
    Pilot,
    count_unasked,
    list_shares,
    make_bench,
    tell_pilot,
    tell_usage,
)
from podeval.cli.measure import Wordings
from podeval.cli.output import emit, say, show_progress
from podeval.errors import BadInput, PodevalError
from podeval.files import locate_hub_source, write_json

if TYPE_CHECKING:
    from podeval.judges.rounds import Conversation
    from podeval.metrics import JudgeUse
    from podeval.metrics.judge_use import JudgeConfig
    from podeval.metrics.pairwise_judge import JudgedBattle
    from podeval.metrics.spoken_dialogue import SpokenDialogue

T = TypeVar("T")

judge = typer.Typer(
    name="judge",
    help="Let a judge draft criteria for a person to approve, or compare systems in battles.\n\n"
    "Example: podeval judge rubrics dialogues/*.json --judge judge.yaml --to review.yaml",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Judge = Annotated[
    str,
    typer.Option("--judge", help="MODEL@https://host/v1, gguf:FILE, transformers:REPO@COMMIT, records:FOLDER, or YAML"),
]
Records = Annotated[
    Path | None, typer.Option("--records", help="folder for the judge's raw answers; podeval's cache by default")
]
Dialogues = Annotated[list[Path], typer.Argument(metavar="DIALOGUE", help="spoken dialogues in JSON")]
Requests = Annotated[list[Path], typer.Argument(metavar="REQUEST", help="requests for scripts, as text or in JSON")]
To = Annotated[Path, typer.Option("--to", help="the review file to write")]


@judge.command()
def dialogues(
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="a submission file in MTalk-Bench's format")],
    to: Annotated[Path, typer.Option("--to", help="folder to write to: one JSON file per dialogue and system")],
    system: Annotated[list[str] | None, typer.Option(help="only this system (repeatable)")] = None,
) -> None:
    """Convert an MTalk-Bench submission file into dialogues that can be judged.

    Example: podeval judge dialogues sample.json --to dialogues --system GPT-4o
    """
    from podeval.datasets.mtalk_turns import Taxonomy, read_answers

    read = read_answers(answers)
    scenarios = Taxonomy(locate_hub_source("dataset_builders") / "mtalk_bench" / "taxonomy.json").scenarios
    documents: dict[tuple[str, str], dict[str, Any]] = {}
    for answer in read.answers:
        if system and answer.model not in system:
            continue
        one = documents.setdefault(
            (answer.dialogue, answer.model),
            {"id": answer.dialogue, "dimension": answer.type, "system": answer.model, "turns": []},
        )
        if 0 < (number := int(answer.dialogue.split("-")[1])) <= len(scenarios):
            one["scenario"] = scenarios[number - 1]
        one["turns"].append(
            {
                "user": answer.question_transcript,
                "answer": answer.answer_transcript,
                "user_audio": str(answers.parent / answer.question),
                "answer_audio": str(answers.parent / answer.answer),
            }
        )
    if not documents:
        raise BadInput(f"{answers} contains no answers by {', '.join(system or [])}")
    for (name, model), content in documents.items():
        path = to / f"{name}_{''.join(sign if sign.isalnum() or sign in '-.' else '_' for sign in model)}.json"
        write_json(path, content)
        print(path)
    for sentence in read.missing:
        say(f"podeval: {sentence}")


@judge.command()
def rubrics(
    files: Dialogues,
    to: To,
    name: Judge,
    records: Records = None,
    prompts: Wordings = None,
    turns: Annotated[
        bool, typer.Option("--turns", help="also write criteria for each dialogue cut off at an earlier turn")
    ] = False,
) -> None:
    """Have a judge write criteria for dialogues; a person decides on each criterion before it is used.

    Example: podeval judge rubrics dialogues/*.json --judge judge.yaml --to review.yaml --turns
    """
    from podeval.metrics import JudgeUse
    from podeval.metrics.rubric_writing import WRITE, write_criteria
    from podeval.metrics.spoken_dialogue import read_dialogue

    _require_absent(to)
    unique = {one.id: one for one in map(read_dialogue, files)}.values()
    cuts = [(one, turn) for one in unique for turn in (None, *(range(1, len(one.turns)) if turns else ()))]
    asks, bench = JudgeUse(prompts=lambda _: (WRITE,)), make_bench(name, records, prompts=prompts)
    outcomes, judge_id = _ask([write_criteria(one, turn) for one, turn in cuts], asks, bench)
    names = [f"{one.id}" + (f", turn {turn}" if turn else "") for one, turn in cuts]
    _save_written("rubrics", names, outcomes, judge_id, bench.reword(WRITE).id, to)


@judge.command()
def checklists(files: Requests, to: To, name: Judge, records: Records = None, prompts: Wordings = None) -> None:
    """Have a judge write checklists for requests; a person decides on each item before it is used.

    Example: podeval judge checklists request.json --judge judge.yaml --to review.yaml
    """
    from podeval.metrics import JudgeUse
    from podeval.metrics.checklists import DERIVE
    from podeval.metrics.rubric_writing import write_checklist
    from podeval.text.podcast_request import PodcastRequest
    from podeval.text.text_file import read_text

    _require_absent(to)
    requests = [(path.stem, PodcastRequest.parse(read_text(path))) for path in files]
    asks, bench = JudgeUse(prompts=lambda _: (DERIVE,)), make_bench(name, records, prompts=prompts)
    outcomes, judge_id = _ask([write_checklist(*request) for request in requests], asks, bench)
    _save_written("checklists", [name for name, _ in requests], outcomes, judge_id, bench.reword(DERIVE).id, to)


@judge.command()
def apply(
    review: Annotated[Path, typer.Argument(metavar="REVIEW", help="the review file, with every entry decided")],
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="the dialogues or requests that the review is about")
    ],
    to: Annotated[Path, typer.Option("--to", help="folder for the files with the accepted entries")],
) -> None:
    """Add accepted criteria to dialogues or requests; this is refused while any decision is open.

    Example: podeval judge apply review.yaml dialogues/*.json --to reviewed
    """
    from podeval.metrics.rubric_writing import load_review
    from podeval.text.podcast_request import read_request_fields
    from podeval.text.text_file import read_text

    decided = load_review(review)
    decided.accepted("")
    writings: list[tuple[Path, dict[str, Any]]] = []
    for path in files:
        data = dict(read_request_fields(read_text(path)))
        name = str(data.get("id") or "dialogue") if decided.kind == "rubrics" else path.stem
        accepted = decided.accepted(name)
        if not accepted:
            raise BadInput(f"{review} contains no accepted entry for {name} ({path})")
        if decided.kind == "checklists":
            data["checklist"] = [{"requirement": entry.text, "kind": entry.kind or "explicit"} for entry in accepted]
        else:
            criteria = data.get("criteria") or {}
            if not isinstance(criteria, dict):
                raise BadInput(
                    f"{path} contains its criteria as a prompt; write the criteria as lists under general and dimension"
                )
            data["criteria"] = {**criteria, "sample": [entry.text for entry in accepted]}
            by_turn = {turn: decided.accepted(name, turn) for turn in range(1, len(data.get("turns", [])))}
            if written := {
                str(turn): [entry.text for entry in entries] for turn, entries in by_turn.items() if entries
            }:
                data["turn_criteria"] = written
        writings.append((to / f"{path.stem}.json", data))
    for path, data in writings:
        write_json(path, data)
        print(path)


@judge.command()
def battles(
    sources: Annotated[
        list[Path], typer.Argument(metavar="RUN|DIALOGUE", help="folders of runs, or spoken dialogues in JSON")
    ],
    name: Judge,
    records: Records = None,
    prompts: Wordings = None,
    pairing: Annotated[
        Literal["all", "mtalk"],
        typer.Option(help="all pairs of systems on each dialogue, or the paper's rule: those with the closest ratings"),
    ] = "all",
    per_dimension: Annotated[
        int | None,
        typer.Option(
            min=1, help="with --pairing mtalk, maximum number of battles per dimension; 500 by default, as in the paper"
        ),
    ] = None,
    variant: Annotated[
        Literal["default", "mtalk"], typer.Option(help="both orders, or the paper's single random order")
    ] = "default",
    modality: Annotated[
        Literal["transcript", "audio", "as_needed"] | None,
        typer.Option(
            help="whether the judge reads or hears the answers; with as_needed, the default for a judge that hears, it "
            "hears only dialogues about tone of voice and sounds"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="random seed for the judge, the pairs and the paper's order")] = 0,
    transcripts: Annotated[
        Literal["claimed", "heard"] | None,
        typer.Option(
            help="words that the judge reads: the systems' own, marked as claims (default for files), or those "
            "recognised in their audio (default for runs)"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="folder of the runs' dataset, made by `podeval data build`; ./NAME by default")
    ] = None,
    limit: Limit = None,
    pilot: Pilot = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    judge_workers: JudgeWorkers = 4,
) -> None:
    """Have a judge compare systems on dialogues that both answered, and print one JSON line per battle.

    The lines are votes: `podeval measure arena`, `podeval report judge`, `podeval report agreement` and `podeval arena
    import` read them.

    Example: podeval judge battles runs/mtalk_bench/test/* --judge judge.yaml --pairing mtalk > battles.jsonl

    Example: podeval judge battles dialogues/*.json --judge judge.yaml > battles.jsonl
    """
    from podeval.arena.judged_battles import hold_battles, read_sides
    from podeval.judges.rounds import hold
    from podeval.metrics import JudgeUse
    from podeval.metrics.pairwise_judge import SAMPLING, judge_battle, list_prompts
    from podeval.stats.sequential import select_items

    if per_dimension if pairing == "all" else (limit or pilot):
        raise BadInput("--limit and --pilot need --pairing all, and --per-dimension needs --pairing mtalk")
    dialogues = list(read_sides(sources, data, say))
    bench = make_bench(name, records, "", judge_workers, max_cost, max_calls, prompts)
    asks = JudgeUse(prompts=lambda _: list_prompts("as_needed", variant), sampling=lambda _: SAMPLING[variant])
    judging = bench.require_client(asks, {})
    words = transcripts or ("heard" if any(path.is_dir() for path in sources) else "claimed")
    method = modality or ("as_needed" if judging.judge.hears else "transcript")
    ask = partial(judge_battle, variant=variant, modality=method, seed=seed, transcripts=words)
    protocol = {"judge": judging.judge.id, "variant": variant, "pairing": pairing, "seed": seed}
    protocol |= {"trial": True} if judging.judge.trial else {}
    outcomes: list[JudgedBattle | PodevalError] = []
    total = 0

    def choose(pairs: "list[tuple[SpokenDialogue, SpokenDialogue]]") -> "list[tuple[SpokenDialogue, SpokenDialogue]]":
        nonlocal total
        total = len(pairs)
        return select_items(pairs, limit, pilot, lambda pair: (pair[0].system, pair[1].system), lambda pair: pair[0].id)

    with show_progress(judging.judge.model):
        choices: dict[str, Any] = {"pairing": pairing, "variant": variant, "seed": seed, "choose": choose}
        choices |= {"most": per_dimension} if per_dimension else {}
        fought = hold_battles(dialogues, ask, partial(hold, client=judging), **choices)
        for one, other, outcome in fought:
            outcomes.append(outcome)
            if isinstance(outcome, PodevalError):
                say(f"podeval: {one.id}, {one.system} and {other.system}: {outcome}")
                continue
            prompt = bench.reword(list_prompts(outcome.modality, variant)[0]).id
            read = {"transcripts": words} if outcome.modality == "transcript" else {}
            emit({**outcome.to_json(), **protocol, "prompt": prompt, **read})
    tell_usage(bench)
    if pilot and bench.budget:
        unasked = count_unasked(map(str, outcomes))
        tell_pilot([(bench.budget.account, len(outcomes) - unasked)], len(outcomes), total, list_shares(outcomes))
    raise typer.Exit(int(any(isinstance(outcome, PodevalError) for outcome in outcomes)))


@judge.command("prompts")
def write_prompts(
    out: Annotated[Path, typer.Option(help="folder to write to: a text file for each prompt")],
) -> None:
    """Write the prompts of all judged metrics to files, as a starting point for other wordings; --prompts FOLDER uses
    them.

    Example: podeval judge prompts --out prompts
    """
    from podeval.metrics.prompts import write_wordings

    for path in write_wordings(out):
        print(path)


@judge.command()
def reasons(
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="answers to the questionnaire, as JSON lines")],
    name: Judge,
    records: Records = None,
    prompts: Wordings = None,
) -> None:
    """Have a judge score listeners' reasons, question by question, and print lines to append to the answers for score J
    of `mos`.

    Example: podeval judge reasons answers.jsonl --judge judge.yaml >> answers.jsonl
    """
    from podeval.metrics import JudgeUse
    from podeval.metrics.human.mos import QUESTIONS, SUMMARISE, group_reasons, judge_justifications
    from podeval.metrics.human_records import read_answers

    read = read_answers(answers)
    questions = group_reasons(read.answers, read.clips)
    if not questions:
        raise BadInput(f"in {answers}, no question has reasons for every system")
    asks = JudgeUse(prompts=lambda _: (SUMMARISE,))
    conversations = [judge_justifications(QUESTIONS[question], texts) for question, texts in questions.items()]
    outcomes, judge_id = _ask(conversations, asks, make_bench(name, records, prompts=prompts))
    for question, outcome in zip(questions, outcomes, strict=True):
        if isinstance(outcome, PodevalError):
            say(f"podeval: {question}: {outcome}")
            continue
        for system, one in outcome.items():
            line = {"system": system, "question": question, "judged": one.score, "summary": one.summary}
            emit({**line, "judge": judge_id, "record": one.record})
    raise typer.Exit(int(any(isinstance(outcome, PodevalError) for outcome in outcomes)))


@judge.command()
def install(
    name: Annotated[str, typer.Argument(metavar="JUDGE", help="transformers:OWNER/NAME@COMMIT, or its YAML file")],
) -> None:
    """Download a local judge from the Hub at a fixed commit, with safetensors weights only and without code.

    Example: podeval judge install transformers:RMSnow/SpeechJudge-GRM@0123456789abcdef0123456789abcdef01234567
    """
    from podeval.judges.judge import find_judge
    from podeval.models.chat_transformers import install as fetch

    config = find_judge(name)
    if config.backend != "transformers":
        raise BadInput(f"{name} needs nothing from the Hub; only transformers:OWNER/NAME@COMMIT can be installed")
    print(fetch(config.model, str(config.revision), say))


def _ask(
    conversations: "Sequence[Conversation[T]]", asks: "JudgeUse", bench: "JudgeConfig"
) -> tuple[list[T | PodevalError], str]:
    """Return the result of each conversation and the judge, and print the judge's usage."""
    from podeval.judges.rounds import hold

    judging = bench.require_client(asks, {})
    with show_progress(judging.judge.model):
        outcomes = hold(conversations, judging)
    tell_usage(bench)
    return outcomes, judging.judge.id


def _require_absent(path: Path) -> None:
    if path.exists():
        raise BadInput(
            f"{path} exists and may contain a person's decisions; choose another name or move that file elsewhere"
        )


def _save_written(
    kind: Literal["rubrics", "checklists"], names: list[str], outcomes: Sequence[Any], judge: str, prompt: str, to: Path
) -> None:
    """Save the written entries, and report missing entries and the next step."""
    from podeval.metrics.rubric_writing import ReviewFile, save_review

    written = [item for item in outcomes if not isinstance(item, PodevalError)]
    if written:
        save_review(ReviewFile(kind=kind, judge=judge, prompt=prompt, items=written), to)
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, PodevalError):
            say(f"podeval: {name}: {outcome}")
    if written:
        say(f"decide on every entry in {to}, then run `podeval judge apply {to} … --to FOLDER`")
    raise typer.Exit(int(len(written) < len(outcomes)))
