"""Make the semantic dialogues of an MTalk-Bench from scenarios and capabilities: write, label, infer, select.

The folder holds `orders.jsonl`, `raw.jsonl`, `dependent.jsonl`, `labelled.jsonl`, `candidates.jsonl` with the table
`candidates.csv` in which people decide, and then `dialogues.jsonl`, from which the later steps go on.
"""

from collections import Counter

from podeval.construction.mtalk import DIALOGUES
from podeval.construction.mtalk_labelling import (
    ALIKE,
    INDEPENDENT,
    DialogueCandidate,
    Encode,
    Labelled,
    deduplicate,
    infer_foremost,
    keep_dependent,
    label_dialogues,
    make_review_row,
)
from podeval.construction.mtalk_tagging import Dialogue
from podeval.construction.mtalk_writing import (
    ARENA_PROMPTS,
    CAPABILITIES,
    SCENES,
    DialogueOrder,
    DialoguePlan,
    Raw,
    find_user_fault,
    place_orders,
    validate_plan,
    write_dialogues,
)
from podeval.construction.review import lay_out, read_decisions
from podeval.construction.staged_rows import Sifted, StepReport, WaitingRow, Workshop
from podeval.judges.rounds import Asked

ORDERS, RAW, DEPENDENT, LABELLED, CANDIDATES = (
    "orders.jsonl",
    "raw.jsonl",
    "dependent.jsonl",
    "labelled.jsonl",
    "candidates.jsonl",
)
TABLE, REVIEW = "candidates.csv", "review of candidates"

LEAST = 10
"""Fewest dialogues that the paper has for a capability."""

RETAINED = 0.19
"""Share of the candidates that the paper retains."""


def write(workshop: Workshop, plan: DialoguePlan, judging: Asked) -> StepReport:
    """Order the dialogues that the plan lacks, and have them written; another run replaces those left out since.

    Raises:
        BadInput: a scenario or capability is unknown.
    """
    plan = validate_plan(plan)
    report, before = StepReport(), workshop.read(ORDERS, DialogueOrder)
    gone = {left.id for left in workshop.read_left_out()}
    new, report.waiting = place_orders(plan, before, gone, judging)
    orders = [*before, *new]
    workshop.write(ORDERS, orders)
    written = {raw.id: raw for raw in workshop.read(RAW, Raw)}
    result = write_dialogues([order for order in orders if order.id not in written], judging)
    written |= {raw.id: raw for raw in result.kept}
    report.waiting += result.waiting
    workshop.write(RAW, [written[order.id] for order in orders if order.id in written])
    report.say(f"ordered: {len(orders)} dialogues of {len({order.cell for order in orders})} kinds, {len(new)} new")
    report.say(f"written: {len(written)}, {len(result.kept)} new")
    return report


def annotate(workshop: Workshop, judging: Asked) -> StepReport:
    """Leave out dialogues whose last turn stands alone, and have the others labelled.

    Raises:
        BadInput: nothing was written.
    """
    report = StepReport()
    raw = workshop.read(RAW, Raw, made_by="podeval data construct mtalk_bench write")
    kept = keep_dependent(raw, judging)
    report.add_result("last turns that need the others", kept)
    labelled = label_dialogues(workshop.write_sifted(INDEPENDENT, DEPENDENT, kept), judging)
    report.add_result("labelled", labelled)
    workshop.write(LABELLED, labelled.kept)
    return report


def infer(workshop: Workshop, judging: Asked, encode: Encode) -> StepReport:
    """Have the foremost capability inferred, take out near-duplicates, and write the table of the rest for people.

    Raises:
        BadInput: nothing was labelled, or the table cannot be read.
    """
    report = StepReport()
    labelled = workshop.read(LABELLED, Labelled, made_by="podeval data construct mtalk_bench label")
    inferred = infer_foremost(labelled, judging)
    report.add_result("inferred", inferred)
    unlike = deduplicate(inferred.kept, encode)
    report.add_result(ALIKE, unlike)
    candidates = workshop.write_sifted(ALIKE, CANDIDATES, unlike)
    agreed = sum(row.agreed for row in candidates)
    report.say(f"capability as ordered: {agreed} of {len(candidates)}; people resolve the others")
    undecided = lay_out(workshop.folder / TABLE, [make_review_row(row) for row in candidates])
    report.say(f"review: {undecided} of {len(candidates)} candidates to decide in {workshop.folder / TABLE}")
    return report


def select(workshop: Workshop, *, accept_all: bool = False) -> StepReport:
    """Write the dialogues that people kept, as they corrected them, for the later steps.

    A candidate whose inferred capability is not the ordered one waits until a person has decided which it is, also with
    `accept_all`.

    Raises:
        BadInput: there are no candidates, or a table cannot be used.
    """
    report = StepReport()
    candidates = workshop.read(CANDIDATES, DialogueCandidate, made_by="podeval data construct mtalk_bench infer")
    places = {order.id: number for number, order in _number_orders(workshop.read(ORDERS, DialogueOrder))}
    review = read_decisions(
        workshop.folder / TABLE, [make_review_row(row) for row in candidates], REVIEW, accept_all=accept_all
    )
    chosen: Sifted[Dialogue] = Sifted(left_out=review.left_out, waiting=review.waiting)
    # A kept candidate needs speakable words and a capability of the taxonomy.
    counts: Counter[str] = Counter()
    for row in candidates:
        if (edited := review.kept.get(row.id)) is None:
            continue
        turns = [" ".join(line.split()) for line in edited["user"].splitlines() if line.strip()]
        capability = edited["capability"].strip()
        if wrong := find_user_fault(turns):
            chosen.waiting.append(WaitingRow(row.id, f"as corrected in {TABLE}: {wrong}"))
        elif capability not in CAPABILITIES:
            why = f"ordered for {row.raw.capability}, inferred {row.foremost}; write under capability which it is"
            chosen.waiting.append(WaitingRow(row.id, why))
        else:
            counts[capability] += 1
            number = places[row.id]
            prompt = ARENA_PROMPTS[capability]
            chosen.kept.append(
                Dialogue(id=f"sem-{number}", type="sem", number=number, turns=tuple(turns), arena_prompt=prompt)
            )
    # Write the dialogues, and compare their numbers with the paper's.
    report.add_result(REVIEW, chosen)
    workshop.write_sifted(REVIEW, DIALOGUES, chosen)
    written = len(workshop.read(RAW, Raw))
    share = len(chosen.kept) / written if written else 0.0
    report.say(
        f"selected: {len(chosen.kept)} of {written} written, {share:.0%}; the paper retains about {RETAINED:.0%}"
    )
    for name in CAPABILITIES:
        if 0 < counts[name] < LEAST or (counts[name] == 0 and any(row.raw.capability == name for row in candidates)):
            report.say(f"  {name}: {counts[name]}; the paper has at least {LEAST} of each")
    return report


def _number_orders(orders: list[DialogueOrder]) -> list[tuple[str, DialogueOrder]]:
    """Give each order the number of its dialogue, `scenario-place`; numbers are stable, as orders are only added."""
    seen: Counter[str] = Counter()
    numbered = []
    for order in orders:
        seen[order.scenario] += 1
        numbered.append((f"{list(SCENES).index(order.scenario) + 1}-{seen[order.scenario]}", order))
    return numbered
