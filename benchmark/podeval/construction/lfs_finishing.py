"""Finish the construction of an LFS-Bench: the review, the published files, and statistics like the paper's.

Figure 8 counts cases by language, speakers, challenge, scenario and topic; figure 9 shows how long they are, Chinese in
characters and English in words without punctuation, with the mean of each language.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from podeval.construction.checked_source import write_source
from podeval.construction.lfs_cases import Case, make_case, parse_turns, read_cases, render_published
from podeval.construction.lfs_refining import ScreenedCase
from podeval.construction.lfs_scenarios import BY_NAME, LANGUAGES
from podeval.construction.review import ReviewRow, read_decisions
from podeval.construction.staged_rows import Sifted, WaitingRow
from podeval.errors import BadInput
from podeval.plots import bars
from podeval.store.files import write_json, write_whole

REVIEW = "review"
PARTS = ("mono", "two", "multi")
TEXT, THEME = "text", "theme"
_TOPICS = 40


def make_review_row(row: ScreenedCase) -> ReviewRow:
    """Make the row that a reviewer sees of a case: the text may be corrected, one turn a line."""
    case = row.case
    context = {
        "scenario": case.scene,
        "language": case.language,
        "speakers": str(case.num_speakers),
        "rated": f"{row.rating.overall}: {row.rating.reasoning}",
        "replaced": "; ".join(f"{one.was} → {one.now} ({one.why})" for one in row.replaced),
        "look at": "; ".join(row.warnings),
        "summary": row.digest.summary,
    }
    return ReviewRow(row.id, context, {THEME: case.theme, TEXT: case.lines})


def apply_review(rows: Sequence[ScreenedCase], table: Path, *, accept_all: bool = False) -> Sifted[Case]:
    """Return the cases that people kept, as they corrected them.

    Raises:
        BadInput: the table cannot be used, or a corrected text is not valid.
    """
    review = read_decisions(table, [make_review_row(row) for row in rows], REVIEW, accept_all=accept_all)
    kept: list[Case] = []
    for row in rows:
        if (edited := review.kept.get(row.id)) is None:
            continue
        try:
            facts = row.case.model_dump(include={"source", "scene", "language", "order"})
            kept.append(make_case(row.id, parse_turns(edited[TEXT]), theme=edited[THEME], **facts))
        except BadInput as error:
            review.waiting.append(WaitingRow(row.id, f"its corrected text in {table.name} cannot be read: {error}"))
    return Sifted(kept, review.left_out, review.waiting)


def publish(cases: Iterable[Case], into: Path) -> dict[str, int]:
    """Write cases as the authors publish theirs: a source of the dataset, checked by its builder.

    Returns:
        The number of cases in each file.

    Raises:
        BrokenRules: the dataset would refuse a case; the existing folder stays as it is.
    """
    by_part: dict[str, list[Case]] = {part: [] for part in PARTS}
    for case in cases:
        by_part[case.part].append(case)
    with write_source("lfs_bench", into, ["texts"]) as folder:
        for part, its in by_part.items():
            write_whole(
                folder / f"{part}_speaker.jsonl", "".join(f"{render_published(case)}\n" for case in its).encode()
            )
    return {part: len(its) for part, its in by_part.items()}


def read_published_cases(folder: Path) -> list[Case]:
    """Read the cases of a folder of the published files, the authors' or one's own.

    Raises:
        BadInput: a file is missing, or a row cannot be read.
    """
    return [case for part in PARTS for case in read_cases(folder / f"{part}_speaker.jsonl", part)]


def compute_statistics(cases: Sequence[Case], topics: Iterable[str] = ()) -> dict[str, Any]:
    """Compute the statistics of the paper's figures 8 and 9.

    Args:
        cases: the finished cases.
        topics: topics of the cases, as the judge named them; the most common are shown.
    """
    groups = {
        "language": _count_values((LANGUAGES[case.language] for case in cases), LANGUAGES.values()),
        "speakers": _count_values((case.part for case in cases), PARTS),
        "challenge": _count_values(
            (BY_NAME[case.scene].challenge for case in cases), dict.fromkeys(s.challenge for s in BY_NAME.values())
        ),
        "scenario": _count_values((case.scene for case in cases), BY_NAME),
    }
    lengths = {name: [case.length for case in cases if case.language == code] for code, name in LANGUAGES.items()}
    topic_counts = Counter(topic.strip().casefold() for topic in topics if topic.strip())
    return {
        "cases": len(cases),
        "counts": groups,
        "lengths": {
            name: {"mean": round(sum(each) / len(each), 1), "least": min(each), "most": max(each)} if each else None
            for name, each in lengths.items()
        },
        "length_values": lengths,
        "topics": dict(topic_counts.most_common(_TOPICS)),
    }


def write_statistics(figures: dict[str, Any], into: Path) -> list[Path]:
    """Write the figures and the two plots, and return their paths."""
    plots = {
        "categories.svg": bars.draw_bars(f"{figures['cases']} cases by kind", figures["counts"], figures["topics"]),
        "lengths.svg": bars.draw_histogram(
            "Length of the texts",
            "words of English, characters of Chinese (without punctuation)",
            figures["length_values"],
            width=25,
        ),
    }
    write_json(into / "statistics.json", {key: value for key, value in figures.items() if key != "length_values"})
    for name, content in plots.items():
        write_whole(into / name, content.encode())
    return [into / name for name in ("statistics.json", *plots)]


def _count_values(values: Iterable[str], order: Iterable[str]) -> dict[str, int]:
    counted = Counter(values)
    return {name: counted[name] for name in order}
