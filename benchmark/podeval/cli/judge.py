"""`podeval judge …`: what a judge writes and a person approves, battles by a judge, scores from listeners' reasons."""

import json
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from podeval.cli.output import emit, say
from podeval.errors import BadInput, PodevalError

if TYPE_CHECKING:
    from podeval.judges.rounds import Conversation
    from podeval.metrics.judge_use import JudgeUse
    from podeval.metrics.spoken_dialogue import SpokenDialogue

T = TypeVar("T")

judge = typer.Typer(
    name="judge",
    help="Let a judge draft criteria for a person to approve, or compare systems in battles; check a judge.\n\n"
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
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="a submission file as MTalk-Bench has it")],
    to: Annotated[Path, typer.Option("--to", help="folder to write to: one JSON file per dialogue and system")],
    system: Annotated[list[str] | None, typer.Option(help="only this system (repeatable)")] = None,
) -> None:
    """Turn a submission file of MTalk-Bench into dialogues that can be judged.

    Example: podeval judge dialogues sample.json --to dialogues --system GPT-4o
    """
    from podeval.datasets.mtalk_turns import Taxonomy, read_answers
    from podeval.hub_sources import locate_hub_source

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
        raise BadInput(f"{answers} has no answers of {', '.join(system or [])}")
    to.mkdir(parents=True, exist_ok=True)
    for (name, model), content in documents.items():
        path = to / f"{name}_{''.join(sign if sign.isalnum() or sign in '-.' else '_' for sign in model)}.json"
        path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(path)
    for sentence in read.missing:
        say(f"podeval: {sentence}")


@judge.command()
def rubrics(
    files: Dialogues,
    to: To,
    name: Judge,
    records: Records = None,
    turns: Annotated[
        bool, typer.Option("--turns", help="also write criteria for each dialogue cut off at an earlier turn")
    ] = False,
) -> None:
    """Have a judge write criteria for dialogues; a person decides on each criterion before it is used.

    Example: podeval judge rubrics dialogues/*.json --judge judge.yaml --to review.yaml --turns
    """
    from podeval.metrics.judge_use import JudgeUse
    from podeval.metrics.rubric_writing import WRITE, write_criteria

    _require_absent(to)
    unique = {one.id: one for one in _dialogues(files)}.values()
    cuts = [(one, turn) for one in unique for turn in (None, *(range(1, len(one.turns)) if turns else ()))]
    asks = JudgeUse(prompts=lambda _: (WRITE,))
    outcomes, judge_id = _ask([write_criteria(one, turn) for one, turn in cuts], asks, name, records)
    names = [f"{one.id}" + (f", turn {turn}" if turn else "") for one, turn in cuts]
    _save_written("rubrics", names, outcomes, judge_id, WRITE.id, to)


@judge.command()
def checklists(files: Requests, to: To, name: Judge, records: Records = None) -> None:
    """Have a judge write checklists for requests; a person decides on each item before it is used.

    Example: podeval judge checklists request.json --judge judge.yaml --to review.yaml
    """
    from podeval.metrics.checklists import DERIVE
    from podeval.metrics.judge_use import JudgeUse
    from podeval.metrics.rubric_writing import write_checklist
    from podeval.text.podcast_request import PodcastRequest
    from podeval.text.text_file import read_text

    _require_absent(to)
    requests = [(path.stem, PodcastRequest.parse(read_text(path))) for path in files]
    asks = JudgeUse(prompts=lambda _: (DERIVE,))
    outcomes, judge_id = _ask([write_checklist(*request) for request in requests], asks, name, records)
    _save_written("checklists", [name for name, _ in requests], outcomes, judge_id, DERIVE.id, to)


@judge.command()
def apply(
    review: Annotated[Path, typer.Argument(metavar="REVIEW", help="the review file, with every entry decided")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="the dialogues or requests it is about")],
    to: Annotated[Path, typer.Option("--to", help="folder for the files with what was accepted")],
) -> None:
    """Add accepted criteria to dialogues or requests; refused while any decision is open.

    Example: podeval judge apply review.yaml dialogues/*.json --to reviewed
    """
    from podeval.metrics.rubric_writing import load_review
    from podeval.text.text_file import read_text

    decided = load_review(review)
    decided.accepted("")
    writings: list[tuple[Path, dict[str, Any]]] = []
    for path in files:
        text = read_text(path)
        data = _read(path, text)
        name = str(data.get("id") or "dialogue") if decided.kind == "rubrics" else path.stem
        accepted = decided.accepted(name)
        if not accepted:
            raise BadInput(f"{review} accepts nothing for {name} ({path})")
        if decided.kind == "checklists":
            data["checklist"] = [{"requirement": entry.text, "kind": entry.kind or "explicit"} for entry in accepted]
        else:
            criteria = data.get("criteria") or {}
            if not isinstance(criteria, dict):
                raise BadInput(f"{path} has its criteria as a prompt; write them as lists under general, dimension")
            data["criteria"] = {**criteria, "sample": [entry.text for entry in accepted]}
            by_turn = {turn: decided.accepted(name, turn) for turn in range(1, len(data.get("turns", [])))}
            if written := {
                str(turn): [entry.text for entry in entries] for turn, entries in by_turn.items() if entries
            }:
                data["turn_criteria"] = written
        writings.append((to / f"{path.stem}.json", data))
    to.mkdir(parents=True, exist_ok=True)
    for path, data in writings:
        path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(path)


@judge.command()
def battles(
    files: Dialogues,
    name: Judge,
    records: Records = None,
    variant: Annotated[
        Literal["default", "mtalk"], typer.Option(help="both orders, or the paper's single random order")
    ] = "default",
    modality: Annotated[
        Literal["transcript", "audio"], typer.Option(help="whether the judge reads or hears")
    ] = "transcript",
    seed: Annotated[int, typer.Option(help="random seed of the judge and of the paper's random order")] = 0,
    transcripts: Annotated[
        Literal["claimed", "heard"],
        typer.Option(help="words that are read: the systems' own, marked as claims, or what is heard in their audio"),
    ] = "claimed",
) -> None:
    """Have a judge compare every pair of systems on every shared dialogue; prints one JSON line per battle.

    Example: podeval judge battles dialogues/*.json --judge judge.yaml > battles.jsonl
    """
    from podeval.metrics.judge_use import JudgeUse
    from podeval.metrics.pairwise_judge import SAMPLING, judge_battle, list_prompts

    pairs = [(a, b) for a, b in combinations(_dialogues(files), 2) if a.id == b.id and a.system != b.system]
    if not pairs:
        raise BadInput("no two systems answered the same dialogue; give dialogues of at least two")
    asks = JudgeUse(prompts=lambda _: list_prompts(modality, variant), sampling=lambda _: SAMPLING[variant])
    outcomes, judge_id = _ask(
        [judge_battle(a, b, variant=variant, modality=modality, seed=seed, transcripts=transcripts) for a, b in pairs],
        asks,
        name,
        records,
    )
    protocol = {
        "judge": judge_id,
        "prompt": list_prompts(modality, variant)[0].id,
        "variant": variant,
        "modality": modality,
    }
    protocol |= {"transcripts": transcripts} if modality == "transcript" else {}
    for (a, b), outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, PodevalError):
            say(f"podeval: {a.id}, {a.system} and {b.system}: {outcome}")
        else:
            emit({**outcome.to_json(), "seed": seed, **protocol})
    raise typer.Exit(int(any(isinstance(outcome, PodevalError) for outcome in outcomes)))


@judge.command()
def reasons(
    answers: Annotated[Path, typer.Argument(metavar="ANSWERS", help="answers to the questionnaire, as JSON lines")],
    name: Judge,
    records: Records = None,
) -> None:
    """Have a judge score listeners' reasons, question by question; prints lines to append to the answers, for score
    J of `mos`.

    Example: podeval judge reasons answers.jsonl --judge judge.yaml >> answers.jsonl
    """
    from podeval.metrics.human.mos import QUESTIONS, SUMMARISE, group_reasons, judge_justifications
    from podeval.metrics.human_records import read_answers
    from podeval.metrics.judge_use import JudgeUse

    read = read_answers(answers)
    questions = group_reasons(read.answers, read.clips)
    if not questions:
        raise BadInput(f"{answers}: no question has reasons for every system")
    asks = JudgeUse(prompts=lambda _: (SUMMARISE,))
    conversations = [judge_justifications(QUESTIONS[question], texts) for question, texts in questions.items()]
    outcomes, judge_id = _ask(conversations, asks, name, records)
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
    """Download a local judge from the Hub at a fixed commit; safetensors only, no code.

    Example: podeval judge install transformers:RMSnow/SpeechJudge-GRM@0123456789abcdef0123456789abcdef01234567
    """
    from podeval.judges.judge import find_judge
    from podeval.models.chat_transformers import install as fetch

    config = find_judge(name)
    if config.backend != "transformers":
        raise BadInput(f"{name} needs nothing from the Hub; only transformers:OWNER/NAME@COMMIT is installed")
    print(fetch(config.model, str(config.revision), say))


def _ask(
    conversations: "Sequence[Conversation[T]]", asks: "JudgeUse", name: str, records: Path | None
) -> tuple[list[T | PodevalError], str]:
    """What each conversation found, and who was asked."""
    from podeval.cli.progress_bar import show_progress
    from podeval.judges.rounds import hold
    from podeval.metrics.judge_use import JudgeConfig

    judging = JudgeConfig(name, records).judging(asks, {})
    if judging is None:
        raise BadInput("choose a judge with --judge")
    with show_progress(judging.judge.model):
        return hold(conversations, judging), judging.judge.id


def _dialogues(files: list[Path]) -> "Iterator[SpokenDialogue]":
    from podeval.metrics.spoken_dialogue import SpokenDialogue
    from podeval.text.text_file import read_text

    for path in files:
        try:
            yield SpokenDialogue.parse(read_text(path))
        except BadInput as refusal:
            raise BadInput(f"{path}: {refusal}") from None


def _read(path: Path, text: str) -> dict[str, Any]:
    """A dialogue or request as data; plain text is a request."""
    try:
        data: Any = json.loads(text) if text.lstrip().startswith("{") else {"instruction": text}
    except ValueError as error:
        raise BadInput(f"{path} looks like JSON but cannot be read as such: {error}") from None
    return dict(data)


def _require_absent(path: Path) -> None:
    if path.exists():
        raise BadInput(f"{path} exists, and may hold a person's decisions; choose another name or move it away")


def _save_written(
    kind: Literal["rubrics", "checklists"], names: list[str], outcomes: Sequence[Any], judge: str, prompt: str, to: Path
) -> None:
    """Save what was written, and say what was not and where to go on."""
    from podeval.metrics.rubric_writing import ReviewFile, save_review

    written = [item for item in outcomes if not isinstance(item, PodevalError)]
    if written:
        save_review(ReviewFile(kind=kind, judge=judge, prompt=prompt, items=written), to)
    for name, outcome in zip(names, outcomes, strict=True):
        if isinstance(outcome, PodevalError):
            say(f"podeval: {name}: {outcome}")
    if written:
        say(f"{to}: decide on every entry, then `podeval judge apply {to} … --to FOLDER`")
    raise typer.Exit(int(len(written) < len(outcomes)))
