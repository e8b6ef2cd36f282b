"""Construct an LFS-Bench dataset: cases are written or imported, refined, reviewed and finished; removed cases are
replaced.

The folder contains, in the order of the steps: `orders.jsonl` and `written.jsonl`, `taken.jsonl` (cases),
`refined.jsonl`, `review.csv` for people, and `finished/`, a source of the dataset with its statistics.

A plan sets the number of cases for each scenario, language and number of speakers. For each missing case, an order
requests an unused topic and a case about this topic. After refinement, running the step `write` again replaces the
cases that were left out; new cases are refined in the same way (LFS-Bench, appendix A.2 and A.3).
"""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from podeval.benchmarks.lfs_bench import CHALLENGES, SCENARIOS
from podeval.construction.lfs_cases import BY_NAME, CODES, LANGUAGES, Case, CaseTurn, make_case, parse_turns, read_cases
from podeval.construction.lfs_refining import DULL, UNSAFE, RefinedCase, digest_cases, rate, screen
from podeval.construction.review import ReviewRow, apply_review, lay_out
from podeval.construction.workshop import (
    ALIKE,
    THRESHOLD,
    Encode,
    Names,
    Order,
    Step,
    Suggestions,
    WaitingRow,
    Workshop,
    ask_each,
    drop_near_duplicates,
    suggest,
    write_ordered,
    write_rows,
)
from podeval.errors import BadInput, require_known
from podeval.files import write_json
from podeval.judges import Asked, JudgeAnswer, JudgeRequest, Prompt
from podeval.text.language import read_as

WRITTEN, TAKEN, REFINED, TABLE = "written.jsonl", "taken.jsonl", "refined.jsonl", "review.csv"
PARTS = ("mono", "two", "multi")
_TOPICS = 40
SOURCE = "LLM Generation"

_SLACK = 0.5
"""A case is requested again if its length deviates from the requested length by more than this share, in either
direction."""


def write(
    workshop: Workshop,
    judging: Asked,
    *,
    each: Annotated[int, Field(ge=1, description="cases per scenario, language and number of speakers")] = 1,
    scenarios: Names = tuple(BY_NAME),
    languages: Names = tuple(LANGUAGES),
    speakers: Annotated[tuple[int, ...], Field(description="only these numbers of speakers")] = (1, 2, 3),
    lengths: Annotated[
        tuple[int, int], Field(description="minimum and maximum length, in English words or Chinese characters")
    ] = (80, 500),
) -> None:
    """Have a language model write cases based on the template of each scenario.

    A later call with the same settings resumes the work, and replaces cases that have since been removed.
    """
    require_known("scenario", BY_NAME, *scenarios)
    require_known("language", LANGUAGES, *languages)
    if not 1 <= lengths[0] <= lengths[1]:
        raise BadInput(f"`lengths` must be a minimum and a maximum, such as 100,400, not {lengths[0]},{lengths[1]}")
    kinds = {
        f"{scenario}/{language}": [number for number in BY_NAME[scenario].speakers if number in speakers]
        for scenario in scenarios
        for language in languages
    }
    if not any(kinds.values()):
        raise BadInput("no scenario in the plan has any of these numbers of speakers; extend the setting `speakers`")
    write_ordered(
        workshop,
        WRITTEN,
        (CaseOrder, Case),
        lambda before, gone: place_orders(kinds, each, lengths, before, gone, judging),
        lambda orders: ask_each(judging, orders, _request_case, _make_written_case),
    )


def take(workshop: Workshop, files: Sequence[Path]) -> None:
    """Import your own texts (JSON Lines in the published schema) for refinement; repeated files are read again."""
    if len({path.stem for path in files}) < len(files):
        raise BadInput("two of the files have the same name; rename one of them, because ids are made from file names")
    stems = {path.stem for path in files}
    before = [case for case in workshop.read(TAKEN, Case) if case.id.rpartition("-")[0] not in stems]
    new = [case for path in files for case in read_cases(path, path.stem)]
    workshop.write(TAKEN, [*before, *new])
    workshop.say(f"imported: {len(new)} cases; {len(before)} had already been imported from other files")


def refine(
    workshop: Workshop,
    judging: Asked,
    encode: Encode,
    *,
    threshold: Annotated[float, Field(ge=0, le=1, description="minimum cosine of similar cases")] = THRESHOLD,
    least: Annotated[
        int, Field(ge=1, le=5, description="minimum overall rating of the kept cases; above 2 in the paper")
    ] = 3,
) -> None:
    """Remove similar, dull and unsafe cases, replace private names, and write the table for the review."""
    cases = [*workshop.read(TAKEN, Case), *workshop.read(WRITTEN, Case)]
    if not cases:
        raise BadInput(f"{workshop.folder} contains no cases; create some with the step `write` or `take`")
    digested = workshop.settle("digested", digest_cases(cases, judging))
    sentences = [row.digest.sentence for row in digested]
    unique = workshop.settle(ALIKE, drop_near_duplicates(digested, sentences, encode, threshold))
    rated = workshop.settle(DULL, rate(unique, judging, least))
    screened = workshop.settle(UNSAFE, screen(rated, judging), REFINED)
    workshop.say(f"review: {lay_out(workshop.folder / TABLE, [_make_entry(row) for row in screened])}")


def finish(workshop: Workshop, accept_all: bool) -> None:
    """Read the review, and write the accepted cases as a source of the dataset, with statistics."""
    rows = workshop.read(REFINED, RefinedCase, made_by="refine")
    table = workshop.folder / TABLE
    cases = workshop.settle("review", apply_review(table, rows, _make_entry, _revise, "review", accept_all))
    if not cases:
        raise BadInput(f"no case has been accepted yet; write `yes` in the column `keep` of {table}")
    with workshop.finish("lfs_bench", "texts") as folder:
        published = {"content", "num_speakers", "theme", "source", "scene", "language"}
        for part in PARTS:
            lines = [case.model_dump(mode="json", include=published) for case in cases if case.part == part]
            write_rows(folder / f"{part}_speaker.jsonl", lines)
        kept = {case.id for case in cases}
        topics = [topic for row in rows if row.id in kept for topic in row.digest.topics]
        write_json(folder / "statistics.json", compute_statistics(cases, topics))
    counts = Counter(case.part for case in cases)
    workshop.say(f"finished: {', '.join(f'{part} {counts[part]}' for part in PARTS)} in {workshop.folder / 'finished'}")


def count_published(workshop: Workshop, files: Sequence[Path]) -> None:
    """Count the cases in a folder of published files (the authors' or your own), as in the paper's figures 8 and 9."""
    cases = [case for folder in files for case in read_published_cases(folder)]
    write_json(workshop.folder / "statistics.json", compute_statistics(cases, [case.theme for case in cases]))
    workshop.say(f"counted: {len(cases)} cases in {workshop.folder / 'statistics.json'}")


STEPS: Mapping[str, Step] = {
    "write": write,
    "take": take,
    "refine": refine,
    "finish": finish,
    "statistics": count_published,
}


def read_published_cases(folder: Path) -> list[Case]:
    """Read the cases in a folder of published files (the authors' or your own).

    Raises:
        BadInput: a file is missing, or a row cannot be read.
    """
    return [case for part in PARTS for case in read_cases(folder / f"{part}_speaker.jsonl", part)]


def compute_statistics(cases: Sequence[Case], topics: Iterable[str] = ()) -> dict[str, Any]:
    """Compute the statistics of the paper's figures 8 and 9.

    Figure 8 counts cases by language, speakers, challenge, scenario and topic; figure 9 shows the lengths of cases, in
    characters for Chinese and in words for English, excluding punctuation, and the mean for each language.

    Args:
        cases: the finished cases.
        topics: topics of the cases, as named by the judge; the most common are counted.
    """
    lengths = {name: [case.length for case in cases if case.language == code] for code, name in LANGUAGES.items()}
    commonest = Counter(topic.strip().casefold() for topic in topics if topic.strip()).most_common(_TOPICS)
    return {
        "cases": len(cases),
        "counts": {
            "language": {name: len(each) for name, each in lengths.items()},
            "speakers": _count_values((case.part for case in cases), PARTS),
            "challenge": _count_values((SCENARIOS[case.scene] for case in cases), CHALLENGES),
            "scenario": _count_values((case.scene for case in cases), BY_NAME),
        },
        "lengths": {
            name: {"mean": round(sum(each) / len(each), 1), "least": min(each), "most": max(each)} if each else None
            for name, each in lengths.items()
        },
        "topics": dict(commonest),
    }


def _count_values(values: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    counted = Counter(values)
    return {name: counted[name] for name in order}


def _make_entry(row: RefinedCase) -> ReviewRow:
    case = row.case
    context = {
        "scenario": case.scene,
        "language": case.language,
        "speakers": str(case.num_speakers),
        "rated": f"{row.rating.overall}: {row.rating.reasoning}" if row.rating else "",
        "replaced": "; ".join(f"{one.was} → {one.now} ({one.why})" for one in row.replaced),
        "look at": "; ".join(row.warnings),
        "summary": row.digest.summary,
    }
    return ReviewRow(row.id, context, {"theme": case.theme, "text": case.lines})


def _revise(row: RefinedCase, edited: dict[str, str]) -> Case:
    facts = row.case.model_dump(include={"source", "scene", "language", "order"})
    return make_case(row.id, parse_turns(edited["text"]), theme=edited["theme"], **facts)


class CaseOrder(Order):
    """An order for one case."""

    scenario: str
    language: str
    speakers: int
    length: int
    topic: str

    @property
    def kind(self) -> str:
        """Scenario and language, within which topics are unique."""
        return f"{self.scenario}/{self.language}"


class WrittenCase(JudgeAnswer):
    """A case as a language model writes it."""

    content: list[CaseTurn] = Field(min_length=1)
    summary: str


def place_orders(
    kinds: Mapping[str, Sequence[int]],
    each: int,
    lengths: tuple[int, int],
    before: Sequence[CaseOrder],
    gone: Collection[str],
    judging: Asked,
) -> tuple[list[CaseOrder], list[WaitingRow]]:
    """Create an order for each missing case, with a topic of its own.

    Args:
        kinds: the requested numbers of speakers by scenario and language.
        each: the number of cases for every kind and number of speakers.
        lengths: minimum and maximum number of English words or Chinese characters.
        before: existing orders.
        gone: the ids of orders whose cases were removed.
        judging: the client for the language model that suggests topics.

    Returns:
        The orders, and the rows that wait because no topics were suggested for their kind.
    """
    alive = Counter((order.kind, order.speakers) for order in before if order.id not in gone)
    missing = {
        kind: [number for number in numbers for _ in range(each - alive[kind, number])]
        for kind, numbers in kinds.items()
    }
    counts = {kind: len(numbers) for kind, numbers in missing.items()}
    used = {kind: [order.topic for order in before if order.kind == kind] for kind in kinds}
    suggested = suggest(judging, counts, used, make_topics_prompt)
    orders = []
    for kind, topics in suggested.kept:
        scenario, _, language = kind.partition("/")
        for index, (number, topic) in enumerate(zip(missing[kind], topics, strict=True), len(used[kind]) + 1):
            name = f"{scenario}-{CODES[language]}-{index:04d}"
            # The draw depends on the order's name, so the same plan always requests the same lengths.
            length = random.Random(name).randint(*lengths)  # noqa: S311
            facts = {"scenario": scenario, "language": language, "speakers": number, "length": length}
            orders.append(CaseOrder.model_validate({"id": name, "topic": topic, **facts}))
    return orders, suggested.waiting


def _request_case(order: CaseOrder) -> JudgeRequest:
    prompt = make_case_prompt(order)
    return JudgeRequest(prompt, {"topic": order.topic}, order.seed, partial(_check_case, order))


def _make_written_case(order: CaseOrder, written: WrittenCase) -> Case:
    facts = {"theme": order.topic, "source": SOURCE, "scene": order.scenario, "language": order.language}
    return make_case(order.id, written.content, order=order.id, **facts)


def make_topics_prompt(kind: str, count: int) -> Prompt:
    """Make the prompt that asks for topics of a scenario and language."""
    scenario, _, language = kind.partition("/")
    return Prompt(
        name=f"lfs_topics_{scenario}",
        version="2.0",
        system="You plan a collection of texts that speech synthesis is tested with. It must be varied.",
        template=(
            f"Suggest exactly {count} topics for this kind of text: {BY_NAME[scenario].kind}, in {LANGUAGES[language]}."
            "\nEach topic is one line, concrete enough to write from, about another matter than the others, and free "
            "of living people, of violence, of sex and of party politics. Write them in the language of the text.\n\n"
            "These topics are taken; suggest none that is about the same:\n{used}"
        ),
        answer=Suggestions,
        source="LFS-Bench appendix A.2, in our own words",
    )


def make_case_prompt(order: CaseOrder) -> Prompt:
    """Make the prompt that asks for a case of a scenario."""
    template, number = BY_NAME[order.scenario], order.speakers
    unit = "Chinese characters" if order.language == "chinese" else "English words"
    who = "one speaker, in paragraphs of one turn each" if number == 1 else f"exactly {number} speakers in turns"
    return Prompt(
        name=f"lfs_case_{order.scenario}",
        version="1.0",
        system=f"You are {template.author}. You write texts that are spoken aloud, and nothing but their words.",
        template=(
            f"Write {template.kind}, in {LANGUAGES[order.language]}, for {who}, called Speaker1, Speaker2 and so on. "
            f"About {order.length} {unit} in all.\n\n"
            f"What the text is to be good for: {template.hard}\n"
            "It is spoken by a machine, so every character must be speakable: no headings, lists, markup, emojis, web "
            "addresses, stage directions or names before the words. Private persons have invented names. End where "
            "the matter ends. Then sum it up in one sentence.\n\n"
            "The topic:\n{topic}"
        ),
        answer=WrittenCase,
        source="LFS-Bench figure 5 (the plan of its template), in our own words",
    )


def _check_case(order: CaseOrder, answer: WrittenCase) -> None:
    try:
        case = _make_written_case(order, answer)
    except BadInput as error:
        raise ValueError(str(error)) from None
    if case.num_speakers != order.speakers:
        raise ValueError(f"the text has {case.num_speakers} speakers, but {order.speakers} were requested")
    if read_as(case.text) not in (CODES[order.language], None):
        raise ValueError(f"the text is not in {LANGUAGES[order.language]}")
    if not (1 - _SLACK) * order.length <= case.length <= (1 + _SLACK) * order.length:
        raise ValueError(f"the length of the text is {case.length}, but about {order.length} was requested")
