"""Construct an MTalk-Bench: dialogues are imported, tagged, recorded, checked in three rounds, given sounds, finished.

The folder holds `dialogues.jsonl`; a table of tags for each kind (`tags-para.csv`, `tags-amb.csv`); `script.jsonl`, the
texts to be recorded into `recordings/`; `round-1.csv` to `round-3.csv` and `checks.jsonl`; `sounds.csv` and
`voices.yaml` of one's own; `audio.jsonl`, what was mixed; and `finished/`, a source of the dataset.
"""

import io
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podeval.construction.checked_source import write_source
from podeval.construction.mtalk_checking import (
    ROUNDS,
    Check,
    Due,
    State,
    Take,
    compute_state,
    describe_rounds,
    find_takes,
    lay_out_rounds,
    read_verdicts,
)
from podeval.construction.mtalk_sound import (
    RATE,
    Mixed,
    add_sounds,
    lay_out_sounds,
    list_tags,
    read_sounds,
    read_voices,
)
from podeval.construction.mtalk_tagging import (
    PROMPTS,
    Dialogue,
    Kind,
    Tagged,
    find_tagging_fault,
    make_review_row,
    tag_dialogues,
)
from podeval.construction.review import lay_out, read_decisions
from podeval.construction.staged_rows import (
    LeftOut,
    Sifted,
    StepReport,
    WaitingRow,
    Workshop,
    describe_validation_error,
)
from podeval.datasets.mtalk_turns import TYPES
from podeval.errors import BadInput, CannotScore
from podeval.judges.rounds import Asked
from podeval.plots.bars import draw_bars
from podeval.store.files import write_json, write_whole

DIALOGUES, SCRIPT, CHECKS, AUDIO = "dialogues.jsonl", "script.jsonl", "checks.jsonl", "audio.jsonl"
SOUNDS, VOICES, FINISHED, DUE = "sounds.csv", "voices.yaml", "finished", "due.jsonl"


def take(workshop: Workshop, path: Path) -> StepReport:
    """Import dialogues: a JSON list of `{number, turns}`, with `type` (sem by default), prompts and `profile`.

    Raises:
        BadInput: the file cannot be used; the message says which dialogue and what is wrong.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read as JSON ({error})") from None
    if not isinstance(raw, list):
        raise BadInput(f"{path} should hold a list of dialogues")
    # Read each dialogue strictly; its id follows from type and number.
    dialogues: dict[str, Dialogue] = {}
    for number, one in enumerate(raw, 1):
        facts = {key: value for key, value in one.items() if key in Dialogue.model_fields} if type(one) is dict else {}
        facts = {"type": "sem"} | facts
        try:
            dialogue = Dialogue.model_validate(facts | {"id": f"{facts['type']}-{facts.get('number')}"})
        except ValidationError as error:
            raise BadInput(f"{path}, dialogue {number}: {describe_validation_error(error)}") from None
        if dialogue.id in dialogues:
            raise BadInput(f"{path}, dialogue {number}: {dialogue.id} is there twice")
        dialogues[dialogue.id] = dialogue
    workshop.write(DIALOGUES, dialogues.values())
    report = StepReport()
    report.say(f"taken: {len(dialogues)} dialogues, {sum(len(d.turns) for d in dialogues.values())} turns")
    return report


def annotate(workshop: Workshop, kind: Kind, judging: Asked) -> StepReport:
    """Have the semantic dialogues tagged twice, and write the table in which a third annotator resolves differences.

    Raises:
        BadInput: no dialogues were imported.
    """
    dialogues = workshop.read(DIALOGUES, Dialogue, made_by="podeval data construct mtalk_bench take")
    report = StepReport()
    rows, report.waiting = tag_dialogues(dialogues, kind, judging)
    workshop.write(f"tagged-{kind}.jsonl", rows)
    agreed = sum(row.agreed for row in rows)
    report.say(f"tagged: {len(rows)} dialogues, both annotators alike in {agreed}")
    table = workshop.folder / f"tags-{kind}.csv"
    undecided = lay_out(table, [make_review_row(row) for row in rows])
    report.say(f"review: {undecided} of {len(rows)} dialogues to decide in {table}")
    return report


def write_script(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Write the script for recording: the dialogues, and their tagged variants as people kept and corrected them.

    Raises:
        BadInput: there are no dialogues, or a table cannot be used.
    """
    dialogues = workshop.read(DIALOGUES, Dialogue, made_by="podeval data construct mtalk_bench take")
    report, to_record = StepReport(), list(dialogues)
    # Tagged variants are recorded only as people kept them.
    for kind in ("para", "amb"):
        rows = workshop.read(f"tagged-{kind}.jsonl", Tagged)
        if rows:
            kept = _apply_resolutions(
                rows, workshop.folder / f"tags-{kind}.csv", accept_all, {d.number: d for d in dialogues}
            )
            report.add_result(f"tags of {TYPES[kind]} dialogues", kept)
            workshop.write_sifted(f"tags-{kind}", f"resolved-{kind}.jsonl", kept)
            to_record += [row for row in kept.kept if row.id not in {d.id for d in dialogues}]
    # Write the script, and prepare folder and table for recordings and sounds.
    workshop.write(SCRIPT, to_record)
    (workshop.folder / "recordings").mkdir(parents=True, exist_ok=True)
    turns = sum(len(dialogue.turns) for dialogue in to_record)
    report.say(f"to record: {turns} turns of {len(to_record)} dialogues, one file each: recordings/ID-TURN.wav")
    unknown = lay_out_sounds(workshop.folder / SOUNDS, list_tags(to_record))
    if unknown:
        report.say(f"sounds: {len(unknown)} tags to fill in in {workshop.folder / SOUNDS}: {', '.join(unknown[:5])}")
    return report


def check(workshop: Workshop) -> StepReport:
    """Read the verdicts of the rounds, and write the tables of the recordings to check next.

    Raises:
        BadInput: there is no script, or a table cannot be used.
    """
    dialogues, checks, takes, missing = _read_recorded(workshop)
    tables = {number: workshop.folder / f"round-{number}.csv" for number in range(1, ROUNDS + 1)}
    checks += read_verdicts(tables, workshop.read(DUE, Due))
    workshop.write(CHECKS, checks)
    state = compute_state(takes, checks)
    due, undecided = lay_out_rounds(tables, state)
    workshop.write(DUE, due)
    report = StepReport(waiting=[*missing, *state.waiting, *undecided])
    for sentence in describe_rounds(checks):
        report.say(sentence)
    report.say(f"checked: {len(state.accepted)} of {sum(len(d.turns) for d in dialogues)} turns accepted")
    gone = Sifted[Dialogue](left_out=_list_gone(dialogues, state))
    workshop.write_sifted("quality check", "gone.jsonl", gone)
    return report


def finish(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Add sounds and voices to the accepted recordings; write complete dialogues as a source of the dataset.

    Args:
        workshop: the folder.
        accept_all: take also recordings that nobody has checked.

    Raises:
        BadInput: there is no script, a table cannot be used, or no dialogue is complete.
        BrokenRules: the dataset would refuse a turn.
    """
    check(workshop)
    dialogues, checks, takes, missing = _read_recorded(workshop)
    state = compute_state(takes, checks)
    report = StepReport(waiting=[*missing, *state.waiting])
    # Which recordings may be used.
    fit = set(state.accepted)
    for number, due in state.due.items():
        if accept_all:
            fit |= {one.turn for one in due}
        else:
            report.waiting += [WaitingRow(one.turn, f"due in round {number}") for one in due]
    rows, done = _mix_dialogues(workshop, dialogues, fit, {take.turn: take for take in takes}, report)
    if not rows:
        raise BadInput("no dialogue is whole yet: every turn recorded and accepted, every tag with its sound")
    # Write the source, what was mixed, and the statistics.
    into = workshop.folder / FINISHED
    with write_source("mtalk_bench", into, ["turns", "dialogues"]) as folder:
        _write_parquet(rows, folder / "data" / "test-00000-of-00001.parquet")
    workshop.write(AUDIO, done)
    counts = {
        "dimension": dict(Counter(TYPES[row["type"]] for row in rows if row["turn"] == "turn1")),
        "scenario": dict(
            sorted(Counter(row["number"].split("-")[0] for row in rows if row["turn"] == "turn1").items())
        ),
        "turns in a dialogue": dict(Counter(str(len(d.turns)) for d in dialogues)),
    }
    write_json(into / "statistics.json", {"turns": len(rows), "counts": counts})
    whole = sum(counts["dimension"].values())
    write_whole(into / "categories.svg", draw_bars(f"{whole} dialogues by kind", counts).encode())
    report.say(f"finished: {whole} of {len(dialogues)} dialogues, {len(rows)} turns, in {into}")
    if quiet := sum(not row["arena_prompt"] for row in rows):
        report.say(f"  {quiet} turns have no arena prompt, so that nothing is known of their capability")
    return report


def _mix_dialogues(
    workshop: Workshop, dialogues: Sequence[Dialogue], fit: set[str], by_turn: dict[str, Take], report: StepReport
) -> tuple[list[dict[str, Any]], list[Mixed]]:
    """Mix the turns of every dialogue that is whole; return the rows of the source, and what was mixed."""
    sounds, voices = read_sounds(workshop.folder / SOUNDS), read_voices(workshop.folder / VOICES)
    rows, done = list[dict[str, Any]](), list[Mixed]()
    for dialogue in dialogues:
        if not all(f"{dialogue.id}-{n}" in fit for n in range(1, len(dialogue.turns) + 1)):
            continue
        if lacking := _describe_lack(dialogue, sounds, voices):
            report.waiting.append(WaitingRow(dialogue.id, lacking))
            continue
        for number, text in enumerate(dialogue.turns, 1):
            one = by_turn[f"{dialogue.id}-{number}"]
            voice = (dialogue.profile, voices[dialogue.profile]) if dialogue.profile else None
            tag_sounds = sounds if dialogue.type == "amb" else {}
            try:
                samples, mixed = add_sounds(one.turn, text, one.path, voice, tag_sounds)
            except CannotScore as refusal:
                raise BadInput(f"{one.path}: {refusal}") from None
            rows.append(_make_source_row(dialogue, number, text, samples))
            done.append(mixed)
    return rows, done


def _apply_resolutions(
    rows: Sequence[Tagged], table: Path, accept_all: bool, plain: dict[str, Dialogue]
) -> Sifted[Dialogue]:
    """Return the tagged dialogues that the third annotator kept, with corrections, which may change tags only."""
    review = read_decisions(table, [make_review_row(row) for row in rows], table.stem, accept_all=accept_all)
    result: Sifted[Dialogue] = Sifted(left_out=review.left_out, waiting=review.waiting)
    for row in rows:
        if (edited := review.kept.get(row.id)) is None:
            continue
        turns = [" ".join(line.split()) for line in edited["tagged"].splitlines() if line.strip()]
        if wrong := find_tagging_fault(plain[row.dialogue.number].turns, turns):
            result.waiting.append(WaitingRow(row.id, f"its corrected tags in {table.name}: {wrong}"))
        else:
            result.kept.append(row.dialogue.model_copy(update={"turns": tuple(turns)}))
    return result


def _read_recorded(workshop: Workshop) -> tuple[list[Dialogue], list[Check], list[Take], list[WaitingRow]]:
    dialogues = workshop.read(SCRIPT, Dialogue, made_by="podeval data construct mtalk_bench script")
    takes, missing = find_takes(dialogues, workshop.folder / "recordings")
    return dialogues, workshop.read(CHECKS, Check), takes, missing


def _list_gone(dialogues: Sequence[Dialogue], state: State) -> list[LeftOut]:
    left_out = []
    for dialogue in dialogues:
        its = [f"{dialogue.id}-{n}" for n in range(1, len(dialogue.turns) + 1)]
        if refused := [turn for turn in its if turn in state.gone]:
            reason = f"{refused[0]} was {state.gone[refused[0]]}"
            left_out.append(LeftOut(id=dialogue.id, step="quality check", reason=reason))
    return left_out


def _describe_lack(dialogue: Dialogue, sounds: dict[str, Any], voices: dict[str, Any]) -> str:
    """Describe what a dialogue still needs before it can be mixed; "" where it needs nothing."""
    if dialogue.profile and dialogue.profile not in voices:
        return f"{VOICES} has no profile {dialogue.profile!r}; name a converter and a reference for it"
    if unknown := [tag for tag in list_tags([dialogue]) if tag not in sounds]:
        return f"{SOUNDS} does not say what {unknown[0]!r} sounds like; write background, event or none"
    return ""


def _make_source_row(dialogue: Dialogue, number: int, text: str, samples: Any) -> dict[str, Any]:
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="FLAC", subtype="PCM_16")
    audio = {"bytes": file.getvalue(), "path": f"{dialogue.id}-{number}.flac"}
    facts = {"type": dialogue.type, "number": dialogue.number, "turn": f"turn{number}", "source": "question"}
    prompts = {name: getattr(dialogue, name) for name in PROMPTS}
    return {**facts, "audio": audio, "transcription": text, **prompts}


def _write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows in the schema of the authors' file, with small row groups, as audio is large."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    import datasets

    texts = ("type", "number", "turn", "source")
    features = datasets.Features(
        {name: datasets.Value("string") for name in texts}
        | {"audio": datasets.Audio(sampling_rate=RATE)}
        | {name: datasets.Value("string") for name in ("transcription", *PROMPTS)}
    )
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=features.arrow_schema), path, row_group_size=8)
