"""Construct an LFS-Bench: cases are written or imported, refined, reviewed, replaced, finished.

The folder holds, in the order of the steps: `plan.jsonl`, `orders.jsonl`, `written.jsonl` and `taken.jsonl` (cases),
`digested.jsonl`, `unique.jsonl`, `rated.jsonl`, `screened.jsonl`, `review.csv` for people, and `finished/`, a source of
the dataset with its statistics. Rows that a step took out stand in `left_out.jsonl`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from podeval.construction import collecting
from podeval.construction.lfs_cases import Case, read_cases
from podeval.construction.lfs_finishing import (
    REVIEW,
    apply_review,
    compute_statistics,
    make_review_row,
    publish,
    read_published_cases,
    write_statistics,
)
from podeval.construction.lfs_refining import (
    ALIKE,
    DULL,
    UNSAFE,
    Encode,
    ScreenedCase,
    deduplicate,
    digest_cases,
    rate,
    screen,
)
from podeval.construction.lfs_scenarios import BY_NAME
from podeval.construction.lfs_writing import CaseOrder, CasePlan, place_orders, validate_plan, write_cases
from podeval.construction.near_duplicates import THRESHOLD
from podeval.construction.review import lay_out
from podeval.construction.staged_rows import StepReport, Workshop
from podeval.errors import BadInput
from podeval.judges.rounds import Asked
from podeval.store.files import read_lines

PLAN, ORDERS, WRITTEN, TAKEN = "plan.jsonl", "orders.jsonl", "written.jsonl", "taken.jsonl"
TABLE, FINISHED = "review.csv", "finished"
COLLECTED, TRANSCRIPTS = "collected.jsonl", "transcripts.csv"


def write(
    workshop: Workshop, plan: CasePlan | None, judging: Asked, topics: Mapping[str, Sequence[str]] | None = None
) -> StepReport:
    """Order the cases that the plan lacks, and have them written; another run goes on, or replaces those left out.

    Args:
        workshop: the folder.
        plan: the plan; None for the one of the last run.
        judging: client of the language model that writes.
        topics: topics of one's own, by scenario.

    Raises:
        BadInput: there is no plan, or it cannot be carried out.
    """
    plans = workshop.read(PLAN, CasePlan)
    if plan is None:
        if not plans:
            raise BadInput(f"{workshop.folder} contains no plan; `podeval data construct lfs_bench write` makes one")
        plan = plans[0]
    workshop.write(PLAN, [validate_plan(plan)])
    report = StepReport()
    # Order what is missing.
    orders, written = workshop.read(ORDERS, CaseOrder), workshop.read(WRITTEN, Case)
    gone = {left.id for left in workshop.read_left_out()}
    new, waiting = place_orders(plan, orders, gone, judging, topics=topics)
    report.waiting += waiting
    workshop.write(ORDERS, [*orders, *new])
    # Have written what was ordered and is not written yet.
    written_ids = {case.id for case in written}
    unwritten = [order for order in (*orders, *new) if order.id not in written_ids]
    result = write_cases(unwritten, judging)
    by_id = {case.id: case for case in (*written, *result.kept)}
    workshop.write(WRITTEN, [by_id[order.id] for order in (*orders, *new) if order.id in by_id])
    report.say(f"ordered: {len(new)} cases, {len(orders)} before, {len(gone & {o.id for o in orders})} of them gone")
    report.add_result("written", result)
    return report


def take(workshop: Workshop, files: Sequence[Path]) -> StepReport:
    """Import cases of one's own, in the published schema; a file that was imported before is read anew.

    Raises:
        BadInput: a file or a row cannot be read, or two files have one name.
    """
    if len({path.stem for path in files}) < len(files):
        raise BadInput("two of the files have one name, and ids are made of names; rename one")
    prefixes = tuple(f"{path.stem}-" for path in files)
    before = [case for case in workshop.read(TAKEN, Case) if case.id.rpartition("-")[0] + "-" not in prefixes]
    new = [case for path in files for case in read_cases(path, path.stem)]
    workshop.write(TAKEN, [*before, *new])
    report = StepReport()
    report.say(f"taken: {len(new)} cases, {len(before)} from other files before")
    return report


def refine(
    workshop: Workshop, judging: Asked, encode: Encode, *, threshold: float = THRESHOLD, least: int = 3
) -> StepReport:
    """Digest, de-duplicate, rate and screen the cases; then write the table for the review.

    Args:
        workshop: a folder with cases, written or imported.
        judging: client of the judge.
        encode: encodes texts, for comparing cases.
        threshold: cosine from which cases count as duplicates.
        least: lowest overall rating that is kept.

    Raises:
        BadInput: there are no cases.
    """
    cases = [*workshop.read(TAKEN, Case), *workshop.read(WRITTEN, Case)]
    if not cases:
        raise BadInput(f"{workshop.folder} contains no cases; `write` or `take` some first")
    report = StepReport()
    # Digest the cases, and drop those on the same subject.
    digested = digest_cases(cases, judging)
    report.add_result("digested", digested)
    workshop.write("digested.jsonl", digested.kept)
    unique = deduplicate(digested.kept, encode, threshold)
    report.add_result(ALIKE, unique)
    workshop.write_sifted(ALIKE, "unique.jsonl", unique)
    # Keep cases that are fit for long speech and safe to publish.
    rated = rate(unique.kept, judging, least)
    report.add_result(DULL, rated)
    workshop.write_sifted(DULL, "rated.jsonl", rated)
    screened = screen(rated.kept, judging)
    report.add_result(UNSAFE, screened)
    workshop.write_sifted(UNSAFE, "screened.jsonl", screened)
    # Write the table for the review.
    table = workshop.folder / TABLE
    undecided = lay_out(table, [make_review_row(row) for row in screened.kept])
    report.say(f"review: {undecided} of {len(screened.kept)} cases to decide in {table}")
    return report


def finish(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Read the review; write the kept cases as a source of the dataset, with its statistics.

    Raises:
        BadInput: nothing was refined, the table cannot be used, or nothing was kept.
        BrokenRules: the dataset would refuse a case.
    """
    rows = workshop.read("screened.jsonl", ScreenedCase, made_by="podeval data construct lfs_bench refine")
    review = apply_review(rows, workshop.folder / TABLE, accept_all=accept_all)
    report = StepReport()
    report.add_result(REVIEW, review)
    workshop.write_sifted(REVIEW, "reviewed.jsonl", review)
    if not review.kept:
        raise BadInput(f"no case is kept yet; write yes under keep in {workshop.folder / TABLE}")
    into = workshop.folder / FINISHED
    counts = publish(review.kept, into)
    kept = {case.id for case in review.kept}
    topics = [topic for row in rows if row.id in kept for topic in row.digest.topics]
    write_statistics(compute_statistics(review.kept, topics), into)
    report.say(f"finished: {', '.join(f'{part} {number}' for part, number in counts.items())} in {into}")
    return report


def count_published(folder: Path, into: Path) -> StepReport:
    """Compute statistics of published files, the authors' or one's own; the most common themes stand for topics.

    Raises:
        BadInput: the folder does not hold the published files.
    """
    cases = read_published_cases(folder)
    paths = write_statistics(compute_statistics(cases, [case.theme for case in cases]), into)
    report = StepReport()
    report.say(f"counted: {len(cases)} cases in {', '.join(str(path) for path in paths)}")
    return report


def collect(workshop: Workshop, folder: Path, settings: collecting.CollectionSettings) -> StepReport:
    """Transcribe one's own recordings, and write the table in which people proofread them.

    Raises:
        BadInput: there is no recording, the scenario is unknown, or the enhancer cannot be run.
        ModelMissing: a model that is needed is not installed.
    """
    if settings.scenario not in BY_NAME:
        raise BadInput(f"there is no scenario {settings.scenario!r}; choose from {', '.join(BY_NAME)}")
    files = list_recordings(folder)
    report = StepReport()
    if not settings.enhancer:
        report.say("enhanced: none, no enhancer is given (--enhancer COMMAND); recordings are heard as they are")
    record = workshop.folder / COLLECTED
    # Transcribe new recordings.
    before = read_collected(record)
    results = collecting.collect(files, record, before, settings)
    # Record the dropped ones, beside those that other steps left out.
    table = workshop.folder / TRANSCRIPTS
    left = collecting.list_left_out(results)
    others = [one for one in workshop.read_left_out() if one.step != collecting.STEP]
    workshop.write("left_out.jsonl", [*others, *left])
    # Write the table for proofreading.
    undecided = lay_out(table, collecting.make_review_rows(results))
    report.say(f"collected: {len(results) - len(left)} recordings kept, {len(left)} dropped, of {len(files)}")
    for one in left:
        report.say(f"  {one.id}: {one.reason}")
    report.say(f"proofreading: {undecided} passages to decide in {table}")
    return report


def proofread(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Import the passages that people kept in the transcripts.

    Raises:
        BadInput: nothing was collected, or the table cannot be used.
    """
    record = workshop.folder / COLLECTED
    rows = list({row.id: row for row in read_collected(record)}.values())
    if not rows:
        raise BadInput(f"{record} is not there; `podeval data construct lfs_bench collect` makes it")
    result = collecting.proofread(rows, workshop.folder / TRANSCRIPTS, accept_all=accept_all)
    report = StepReport()
    report.add_result("proofread", result)
    ids = {case.id for case in result.kept} | {entry.id for entry in collecting.make_review_rows(rows)}
    others = [case for case in workshop.read(TAKEN, Case) if case.id not in ids]
    workshop.write(TAKEN, [*others, *result.kept])
    left = [one for one in workshop.read_left_out() if one.step != "proofreading"]
    workshop.write("left_out.jsonl", [*left, *result.left_out])
    return report


def read_collected(record: Path) -> list[collecting.Collected]:
    """Read the results collected so far; where a recording was transcribed twice, the last result counts."""
    return [collecting.Collected.model_validate(line) for line in read_lines(record)]


def list_recordings(folder: Path) -> list[Path]:
    """List the audio files of a folder by name.

    Raises:
        BadInput: there are none.
    """
    from podeval.datasets.episodes import is_recording

    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}")
    files = sorted(path for path in folder.iterdir() if is_recording(path))
    if not files:
        raise BadInput(f"{folder} holds no audio")
    return files
