"""Construct an MTalk-Bench dataset: dialogues are imported, tagged, recorded, checked, mixed with sounds and finished.

The folder contains `dialogues.jsonl`, a table for each kind of tag (`tags-para.csv`, `tags-amb.csv`), and
`script.jsonl` with the texts to record into `recordings/`. It also contains `checks.csv` for people, `checks.jsonl`,
your own `sounds.csv`, and `finished/`, a source of the dataset.
"""

import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError

from podeval.construction import mtalk_raw
from podeval.construction.mtalk_recordings import (
    RATE,
    Check,
    State,
    Take,
    add_sounds,
    compute_state,
    describe_rounds,
    find_takes,
    lay_out_sounds,
    list_tags,
    make_check,
    read_sounds,
    read_verdicts,
)
from podeval.construction.mtalk_tagging import (
    DIALOGUES,
    KINDS,
    PROMPTS,
    Dialogue,
    Tagged,
    find_tagging_fault,
    make_review_row,
    tag_dialogues,
)
from podeval.construction.review import apply_review, lay_out
from podeval.construction.workshop import LeftOut, Sifted, Step, WaitingRow, Workshop
from podeval.datasets.mtalk_turns import TYPES
from podeval.errors import BadInput, CannotScore, describe_validation_error, require_known
from podeval.files import write_json
from podeval.judges.rounds import Asked

SCRIPT, CHECKS, SOUNDS, DUE = "script.jsonl", "checks.jsonl", "sounds.csv", "due.jsonl"


def take(workshop: Workshop, files: Sequence[Path]) -> None:
    """Import dialogues from JSON lists of `{number, turns}` with optional `type`, prompts, `profile` and `variants`."""
    dialogues: dict[str, Dialogue] = {}
    for path in files:
        try:
            raw = [{"type": "sem", **one} for one in json.loads(path.read_text(encoding="utf-8"))]
        except (OSError, ValueError, TypeError) as error:
            raise BadInput(f"{path} cannot be read as a JSON list of dialogues ({error})") from None
        for number, one in enumerate(raw, 1):
            facts = {key: value for key, value in one.items() if key in Dialogue.model_fields}
            try:
                dialogue = Dialogue.model_validate(facts | {"id": f"{one['type']}-{one.get('number')}"})
            except ValidationError as error:
                raise BadInput(f"{path}, dialogue {number}: {describe_validation_error(error)}") from None
            if dialogue.id in dialogues:
                raise BadInput(f"{path}, dialogue {number}: {dialogue.id} appears twice")
            dialogues[dialogue.id] = dialogue
    workshop.write(DIALOGUES, dialogues.values())
    workshop.say(f"imported: {len(dialogues)} dialogues, {sum(len(d.turns) for d in dialogues.values())} turns")


def tag(
    workshop: Workshop,
    judging: Asked,
    *,
    kind: Annotated[str, Field(description="kind of the tags: paralinguistic or ambient")] = "ambient",
) -> None:
    """Have the semantic dialogues tagged twice, and write the table in which a third annotator resolves differences."""
    require_known("kind of tags", KINDS, kind)
    dialogues = workshop.read(DIALOGUES, Dialogue, made_by="take")
    rows, waiting = tag_dialogues(dialogues, KINDS[kind], judging)
    workshop.waiting += waiting
    workshop.write(f"tagged-{KINDS[kind]}.jsonl", rows)
    agreed = sum(len(set(row.versions)) == 1 for row in rows)
    workshop.say(f"tagged: {len(rows)} dialogues; both annotators agree on {agreed} of them")
    table = workshop.folder / f"tags-{KINDS[kind]}.csv"
    workshop.say(f"review: {lay_out(table, [make_review_row(row) for row in rows])}")


def write_script(workshop: Workshop, accept_all: bool) -> None:
    """Read the resolved tags, and list the lines to record and the tags that need a sound."""
    dialogues = workshop.read(DIALOGUES, Dialogue, made_by="take")
    plain, to_record, names = {d.number: d for d in dialogues}, list(dialogues), {d.id for d in dialogues}

    def revise(row: Tagged, edited: dict[str, str]) -> Dialogue:
        turns = [" ".join(line.split()) for line in edited["tagged"].splitlines() if line.strip()]
        if fault := find_tagging_fault(plain[row.dialogue.number].turns, turns):
            raise BadInput(fault)
        return row.dialogue.model_copy(update={"turns": tuple(turns)})

    # Tagged variants are recorded only in the form that people accepted; the third annotator may change only the tags.
    for kind in KINDS.values():
        if rows := workshop.read(f"tagged-{kind}.jsonl", Tagged):
            table = workshop.folder / f"tags-{kind}.csv"
            review = apply_review(table, rows, make_review_row, revise, table.stem, accept_all)
            to_record += [row for row in workshop.settle(table.stem, review) if row.id not in names]
    workshop.write(SCRIPT, to_record)
    (workshop.folder / "recordings").mkdir(parents=True, exist_ok=True)
    turns = sum(len(dialogue.turns) for dialogue in to_record)
    workshop.say(f"to record: {turns} turns of {len(to_record)} dialogues, each in a file recordings/ID-TURN.wav")
    if unknown := lay_out_sounds(workshop.folder / SOUNDS, list_tags(to_record)):
        workshop.say(f"sounds: {len(unknown)} tags need a line in {workshop.folder / SOUNDS}: {', '.join(unknown[:5])}")


def check(workshop: Workshop) -> tuple[list[Dialogue], list[Take], State]:
    """Read the verdicts on recordings, and write the table of recordings to check next, in up to three rounds.

    Returns:
        The dialogues, their recordings, and the state of the recordings.
    """
    dialogues = workshop.read(SCRIPT, Dialogue, made_by="script")
    takes, missing = find_takes(dialogues, workshop.folder / "recordings")
    table = workshop.folder / "checks.csv"
    checks = [*workshop.read(CHECKS, Check), *read_verdicts(table, workshop.read(DUE, Check))]
    workshop.write(CHECKS, checks)
    state = compute_state(takes, checks)
    due = [make_check(take, number) for take, number in state.due]
    workshop.write(DUE, due)
    lay_out(table, [row.entry for row in due])
    undecided = [WaitingRow(row.turn, f"its recording must be checked in round {row.round}: {table}") for row in due]
    workshop.waiting += [*missing, *state.waiting, *undecided]
    for sentence in describe_rounds(checks):
        workshop.say(sentence)
    workshop.say(f"checked: {len(state.accepted)} of {sum(len(d.turns) for d in dialogues)} turns accepted")
    # A dialogue is removed if one of its turns was refused in every round.
    gone = list[LeftOut]()
    for dialogue in dialogues:
        turns = (f"{dialogue.id}-{number}" for number in range(1, len(dialogue.turns) + 1))
        if refused := next((turn for turn in turns if turn in state.gone), ""):
            reason = f"{refused} was {state.gone[refused]}"
            gone.append(LeftOut(id=dialogue.id, step="quality check", reason=reason))
    left = {one.id for one in gone}
    workshop.settle("quality check", Sifted([d for d in dialogues if d.id not in left], gone))
    return dialogues, takes, state


def finish(workshop: Workshop, accept_all: bool) -> None:
    """Mix sounds into the accepted recordings, and write complete dialogues as a source of the dataset.

    Recordings that no one has checked are used only with `--accept-all`.
    """
    dialogues, takes, state = check(workshop)
    fit = set(state.accepted)
    if accept_all:
        unchecked = {take.turn for take, _ in state.due}
        fit |= unchecked
        workshop.waiting = [one for one in workshop.waiting if one.id not in unchecked]
    rows = _make_source_rows(workshop, dialogues, fit, {take.turn: take for take in takes})
    if not rows:
        raise BadInput(
            "no dialogue is complete yet: every turn must be recorded and accepted, and every tag needs a sound"
        )
    whole = [row for row in rows if row["turn"] == "turn1"]
    counts = {
        "dimension": Counter(TYPES[row["type"]] for row in whole),
        "scenario": Counter(sorted(row["number"].split("-")[0] for row in whole)),
        "turns in a dialogue": Counter(str(len(d.turns)) for d in dialogues),
    }
    with workshop.finish("mtalk_bench", "turns", "dialogues") as folder:
        _write_parquet(rows, folder / "data" / "test-00000-of-00001.parquet")
        write_json(folder / "statistics.json", {"turns": len(rows), "counts": counts})
    into = workshop.folder / "finished"
    workshop.say(f"finished: {len(whole)} of {len(dialogues)} dialogues ({len(rows)} turns) in {into}")
    if quiet := sum(not row["arena_prompt"] for row in rows):
        workshop.say(f"  {quiet} turns have no arena prompt, so their capability is unknown")


STEPS: Mapping[str, Step] = {
    **mtalk_raw.STEPS,
    "take": take,
    "tag": tag,
    "script": write_script,
    "check": check,
    "finish": finish,
}


def _make_source_rows(
    workshop: Workshop, dialogues: Sequence[Dialogue], fit: set[str], takes: dict[str, Take]
) -> list[dict[str, Any]]:
    """Make the rows of every complete dialogue in which all tags have a sound."""
    sounds, rows = read_sounds(workshop.folder / SOUNDS), list[dict[str, Any]]()
    for dialogue in dialogues:
        turns = [f"{dialogue.id}-{number}" for number in range(1, len(dialogue.turns) + 1)]
        if not fit.issuperset(turns):
            continue
        if unknown := [tag for tag in list_tags([dialogue]) if tag not in sounds]:
            lack = f"{SOUNDS} states no kind for the tag {unknown[0]!r}; write background, event or none"
            workshop.waiting.append(WaitingRow(dialogue.id, lack))
            continue
        for number, (turn, text) in enumerate(zip(turns, dialogue.turns, strict=True), 1):
            try:
                samples = add_sounds(text, takes[turn].path, sounds if dialogue.type == "amb" else {})
            except CannotScore as refusal:
                raise BadInput(f"{takes[turn].path}: {refusal}") from None
            rows.append(_make_source_row(dialogue, number, text, samples))
    return rows


def _make_source_row(dialogue: Dialogue, number: int, text: str, samples: Any) -> dict[str, Any]:
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="FLAC", subtype="PCM_16")
    audio = {"bytes": file.getvalue(), "path": f"{dialogue.id}-{number}.flac"}
    facts = {"type": dialogue.type, "number": dialogue.number, "turn": f"turn{number}", "source": "question"}
    prompts = {name: getattr(dialogue, name) for name in PROMPTS}
    return {**facts, "audio": audio, "transcription": text, **prompts}


def _write_parquet(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the rows in the schema of the authors' file, with small row groups because audio is large."""
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
