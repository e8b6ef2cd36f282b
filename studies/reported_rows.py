"""Convert the figures that LFS-Bench, PodBench and MTalk-Bench report for systems from transcribed tables to
`submissions/`.

    .venv/bin/python studies/reported_rows.py TABLES SUBMISSIONS

The script writes the `results.csv` of each system, its `submission.yaml` if there is none yet, and `left_out.csv`. The
latter contains, with the reason, every printed value that is not a figure of a system or cannot be right. Figures from
PodEval are not changed. TABLES contains a CSV file for each table, with one value per row, such as
`mtalk_table09_arena_rubric_votes.csv`.
"""

import csv
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

NUMBERS = {
    "lfs": (2, 9, 14, 3, 10, 15, 13),
    "podbench": (1, 8, 9),
    # Table 9 comes first, because its judges rated the most systems.
    "mtalk": (9, 2, 12, 10, 11, 4, 8, 5, 6),
}
"""Tables with figures of systems on a benchmark, in the order of the rows."""

BENCHMARKS = {"lfs": "lfs_bench", "podbench": "podbench", "mtalk": "mtalk_bench"}
TITLES = {"lfs": "LFS-Bench", "podbench": "PodBench", "mtalk": "MTalk-Bench"}
PAPERS = {"lfs": "2605.28618", "podbench": "2601.14903", "mtalk": "2508.18240"}
TRACKS = {"lfs": "voice", "podbench": "write", "mtalk": "respond"}
LANGUAGES = {"lfs": "en, zh", "podbench": "en, zh", "mtalk": "en"}
COLUMNS = (
    *("benchmark", "paper", "table", "printed", "module", "key", "variant", "breakdown", "group"),
    *("value", "spread", "count", "better", "note"),
)
LEFT_OUT_COLUMNS = ("paper", "table", "row", "printed", "variant", "group", "value", "reason")

METRICS = {
    "timbre_consistency": ("Timbre", "timbre_consistency", "timbre_consistency"),
    "reverb_consistency": ("Reverb", "reverb_consistency", "reverb_consistency"),
    "sound_fidelity": ("Sound Fidelity", "sound_fidelity", "pesq_estimate"),
    "CER": ("CER", "wer", "cer"),
    "WER": ("WER", "wer", "wer"),
    "prosodic_coherence": ("Prosody", "prosodic_coherence", "prosodic_coherence"),
    "expressive_richness": ("Richness", "expressive_richness", "expressive_richness"),
    "expressive_hierarchy": ("Hierarchy", "expressive_hierarchy", "expressive_hierarchy"),
    "RTF": ("RTF", "rtf", "rtf"),
    "instruction_following": ("Instruction Following", "instruction_following", "instruction_following"),
    "depth_value": ("Depth & Value", "script_quality", "substance"),
    "structure": ("Structure", "script_quality", "narrative"),
    "language": ("Language", "script_quality", "naturalness"),
    "quality_overall": ("Overall", "script_quality", "script_quality"),
    "average": ("Ave.", "podbench_final", "podbench_final"),
    "elo": ("Arena", "arena", "rating"),
    "rubric_score": ("Rubric", "rubric", "rubric"),
    "response_quality": ("Response quality", "rubric", "rubric"),
    "content_density": ("Content density", "content_density", "content_density"),
    "same_quality": ("Same quality, %", "", ""),
    "same_quality_count": ("Same quality, count", "", ""),
    "direct_file_better": ("Direct audio file input better, %", "", ""),
    "direct_file_better_count": ("Direct audio file input better, count", "", ""),
    "microphone_better": ("Microphone-based input better, %", "", ""),
    "microphone_better_count": ("Microphone-based input better, count", "", ""),
}
"""The printed name, our module and our key of each metric, by its name in the tables."""

VOICES = {
    "single-speaker": "single_speaker",
    "two-speaker dialogue": "two_speakers",
    "3-4-speaker dialogue": "three_and_four_speakers",
}
IDS = {"MOSS-TTSD": "mossttsd", "Human": "mtalk_human"}
"""Ids that cannot be derived from the name."""

SYSTEMS = Path(__file__).with_name("reported_systems.csv")
"""Facts about each system as its makers state them: the makers, the licence of the weights (empty if they are not
available) and the system's own addresses. `licence_from` names the commit or model card in which a licence was found in
November 2026, if it had to be looked up; `unknown_because` gives the reason why no licence was found.
"""

NO_LICENCE = {
    "mtalk": "the paper states none for what people recorded",
    "lfs": "the paper states none for its recordings of people",
}
"""Reasons why rows of people have no licence."""


@dataclass(frozen=True)
class Repository:
    """Facts in a system's own repository that differ from the paper."""

    description: str
    languages: str


REPOSITORIES = {
    "Westlake-Omni": Repository(
        description=(
            "An open Chinese spoken dialogue system as MTalk-Bench measured it, in English. The paper names Westlake "
            "University; the repository is xinchen-ai's. Its language model is Apache-2.0, its code and its vocoder's "
            "weights are CC-BY-NC-SA-4.0."
        ),
        languages="zh",
    ),
}
"""Facts that were looked up because the paper's statement was doubtful, in the README at commit 634c2c29."""

BILLIONS = {"GLM-4-Voice": "9", "Step-Audio-Chat": "130", "Llama-4-Scout-17B-16E-Instruct": ""}
"""Parameters that MTalk-Bench states; for Llama 4 Scout, PodBench states only the active ones."""

KINDS = {
    "single_speaker": "one voice",
    "two_speakers": "dialogues of two",
    "three_and_four_speakers": "dialogues of three and four",
}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Cell:
    """One printed value with its position and subject; `reason` says why it is not a reported figure."""

    paper: str
    number: int
    row: Row
    reason: str = ""

    @property
    def system(self) -> str:
        """The name of the system; a model with thinking and the same model without it are two systems."""
        name = self.row["system"]
        modes = {"instruct": " (instruct)", "thinking": " (thinking)"}
        return name + modes[self.row["mode"]] if name.startswith("Qwen3-") and self.paper == "podbench" else name

    @property
    def printed(self) -> str:
        """The name of the metric as printed."""
        name = METRICS[self.row["metric"]][0]
        if self.row["split"] == "STD over buckets":
            return f"{name}, STD over {'input length' if self.number == 8 else 'speaker number'}"
        return name

    @property
    def key(self) -> str:
        """Our key for the metric."""
        if self.row["split"] == "STD over buckets":
            return "spread_input_length" if self.number == 8 else "spread_speakers"
        return METRICS[self.row["metric"]][2]

    @property
    def variant(self) -> str:
        """The facts that distinguish it from other figures of the same metric: voices, or the judge, the judged form
        and the pool.
        """
        if self.paper == "lfs":
            return VOICES[self.row["split"]]
        if self.paper == "podbench":
            return "podbench"
        if self.number == 4:
            return f"turn_{self.row['turn']}"
        if self.number in (5, 6):
            return ""
        if self.number == 8:
            return "microphone_or_file"
        how = "audio" if self.row["modality"] == "audio" else "transcript"
        pool = "" if self.number == 12 else "_11_systems" if self.number == 2 else "_14_systems"
        return f"{slug(self.row['judge'])}_{how}{pool}"

    @property
    def group(self) -> tuple[str, str]:
        """Breakdown and group; empty for a figure over all items."""
        split = self.row["split"]
        if self.number in (14, 15) and self.paper == "lfs":
            return "language", self.row["language"]
        if self.paper == "podbench" and self.number != 1 and split != "STD over buckets":
            return ("input_length", split) if self.number == 8 else ("speakers", split.removeprefix("speakers "))
        if self.paper == "mtalk" and split in ("semantic", "paralinguistic", "ambient"):
            return "dimension", split
        return "", ""

    def figure(self) -> dict[str, str]:
        """Return the figure as a row of `results.csv`."""
        breakdown, group = self.group
        return {
            "benchmark": BENCHMARKS[self.paper],
            "paper": self.paper,
            "table": f"Table {self.number}",
            "printed": self.printed,
            "module": METRICS[self.row["metric"]][1],
            "key": self.key,
            "variant": self.variant,
            "breakdown": breakdown,
            "group": group,
            "value": self.row["value"],
            "spread": self.row["std"],
            "count": self.row["n"],
            "better": self.row["direction"] or "neither",
            "note": "; ".join(self.notes()),
        }

    def notes(self) -> Iterator[str]:
        """Yield notes about the printed figure for its readers."""
        row, note = self.row, self.row["note"]
        label = re.sub(r" \([\d.]+B\)$", "", row["system_printed"]).rstrip(")")
        if "label reassigned" in note:
            yield f"printed in the row of {label}, but its votes and scores are those of {row['system']} in Table 9"
        elif label != row["system"]:
            yield f"printed as {label}"
        if row["metric"] in ("CER", "WER"):
            yield "Chinese only" if row["metric"] == "CER" else "English only"
        if "batch size" in note:
            yield "made in batches of 32"
        check = row.get("check", "")
        if "suspect" in check:
            yield "the last row that could be read; it fails the check by the number of criteria"
        if "n left out" in note:
            yield f"the printed count of votes ({_quoted(note)}) cannot be right"
        elif "n_fail" in check or "n_doubtful" in check:
            yield "the printed counts of votes do not add up in this row"


def slug(name: str) -> str:
    """Convert a name to an id."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def system_id(name: str) -> str:
    """Return the name of a system's folder."""
    return IDS.get(name, slug(name))


def cells(tables: Path) -> Iterator[Cell]:
    """Yield every value of the tables, in order, with the reason if it is left out."""
    for paper, numbers in NUMBERS.items():
        for number in numbers:
            (file,) = tables.glob(f"{paper}_table{number:02d}_*.csv")
            for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
                yield Cell(paper, number, row, _reason(paper, number, row))


def _reason(paper: str, number: int, row: Row) -> str:
    """Return the reason why a value is left out; empty if it is not."""
    if row["system"].startswith("AVERAGE"):
        return "a mean over systems, not a system"
    if paper == "mtalk" and number in (5, 6):
        kind = "capabilities" if number == 5 else "scenarios"
        return f"{kind} were compared with one another by how much they matter; not a figure of a system"
    if row["value"]:
        return ""
    if row["note"].startswith("printed"):
        return "printed as a dash"
    if row["note"].startswith("MISSING"):
        return "lost in the transcription, which ends here"
    why = re.sub(r"^.*?printed [\d.]+( \(\d+\))?[,;]? ?", "", row["note"])
    return "cannot be right: " + re.sub(r"^\((.*?)\)", r"\1", why)


def _quoted(note: str) -> str:
    found = re.search(r"printed ([\d.]+(?: \(\d+\))?)", note)
    return found[1] if found else ""


def left_out(found: Iterable[Cell]) -> Iterator[dict[str, str]]:
    """Yield the values that are not figures of a system, as rows of `left_out.csv`."""
    for cell in found:
        if cell.reason:
            yield {
                "paper": cell.paper,
                "table": f"Table {cell.number}",
                "row": f"{cell.row['system']} ({cell.row['split']})" if cell.number in (5, 6) else cell.row["system"],
                "printed": cell.printed,
                "variant": cell.variant,
                "group": cell.group[1],
                "value": cell.row["value"] or _quoted(cell.row["note"]),
                "reason": cell.reason,
            }
    yield dict.fromkeys(LEFT_OUT_COLUMNS, "") | {
        "paper": "mtalk",
        "table": "Table 10",
        "row": "13 systems",
        "printed": METRICS["rubric_score"][0],
        "variant": "judges Gemini-2.5-pro, Kimi K2, Grok 4 and OpenAI o3, transcript",
        "reason": "208 values lost in the transcription, which ends in the first row of this block",
    }


@cache
def _read_systems() -> dict[str, dict[str, str]]:
    with SYSTEMS.open(encoding="utf-8", newline="") as table:
        return {row["id"]: row for row in csv.DictReader(table)}


def document(name: str, own: list[Cell]) -> str:
    """Return the `submission.yaml` of a system, with the facts from the papers or, if they differ, from its
    repository.
    """
    paper = own[0].paper
    group = own[0].row["group"]
    repository = REPOSITORIES.get(name)
    facts = _read_systems().get(system_id(name))
    organisation = facts["organisation"] if facts else ""
    # For a row of people, or of a system without an owner, only the paper is linked.
    links = {"paper": f"https://arxiv.org/abs/{PAPERS[paper]}"}
    if facts:
        links = {link: facts[link] for link in ("homepage", "code", "paper") if facts[link]}
    licence = (facts or {}).get("licence") or ("proprietary" if group == "closed" else "unknown")
    billions = _billions(name, own)
    described = _description(name, own)
    if because := (facts or {}).get("unknown_because"):
        described += f" Its licence is unknown: {because}."
    if group in ("real", "human"):
        described += f" Their licence is unknown: {NO_LICENCE[paper]}."
    lines = [
        "schema_version: 1",
        "",
        "system:",
        f"  id: {system_id(name)}",
        f"  name: {name}",
        "  description: >-",
        *textwrap.wrap(described, 100, initial_indent="    ", subsequent_indent="    "),
        *([f"  organisation: {organisation}"] if organisation else []),
        *(["  links:"] if links else []),
        *(f"    {link}: {address}" for link, address in links.items()),
        f"  licence: {licence}",
        f"  open: {'true' if group == 'open' else 'false'}",
        *([f"  size_parameters: {round(float(billions) * 1e9)}"] if billions else []),
        f"  languages: [{repository.languages if repository else LANGUAGES[paper]}]",
        "",
        "benchmarks:",
        f"  - name: {BENCHMARKS[paper]}",
        f"    tracks: [{TRACKS[paper]}]",
        "",
        "source:",
        "  kind: reported",
        "  results: results.csv",
    ]
    return "\n".join(lines) + "\n"


def _description(name: str, own: list[Cell]) -> str:
    if name in REPOSITORIES:
        return REPOSITORIES[name].description
    paper, group = own[0].paper, own[0].row["group"]
    if paper == "lfs":
        parts = [KINDS[variant] for variant in dict.fromkeys(cell.variant for cell in own)]
        what = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
        if group == "real":
            return f"Recordings of people, {what}, as LFS-Bench measured them."
        return f"{'An open' if group == 'open' else 'A closed'} speech system that LFS-Bench measured on {what}."
    if paper == "podbench":
        mode = {"(thinking)": ", thinking before it writes", "(instruct)": ", not thinking before it writes"}
        how = next((text for end, text in mode.items() if name.endswith(end)), "")
        return f"{'An open' if group == 'open' else 'A proprietary'} language model as PodBench measured it{how}."
    if group == "human":
        return "Answers that people recorded for MTalk-Bench, judged like those of the systems."
    return f"{'An open' if group == 'open' else 'A closed'} spoken dialogue system as MTalk-Bench measured it."


def _billions(name: str, own: list[Cell]) -> str:
    if name in BILLIONS:
        return BILLIONS[name]
    printed = [cell.row.get("params", "").removesuffix("B") for cell in own]
    named = re.search(r"(\d+(?:\.\d+)?)B", name) if own[0].paper == "podbench" else None
    return next(filter(None, printed), "") or (named[1] if named else "")


def by_system(found: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Group the values that are figures by the name of their system."""
    systems = defaultdict(list)
    for cell in found:
        if not cell.reason:
            systems[cell.system].append(cell)
    return systems


def write(tables: Path, submissions: Path) -> int:
    """Write all files; return the number of figures."""
    found = list(cells(tables))
    for name, own in by_system(found).items():
        folder = submissions / system_id(name)
        folder.mkdir(exist_ok=True)
        results, described = folder / "results.csv", folder / "submission.yaml"
        rows = [cell.figure() for cell in own]
        if results.exists():
            known = csv.DictReader(results.read_text(encoding="utf-8").splitlines())
            rows = [row for row in known if row["paper"] not in NUMBERS] + rows
        if not described.exists():
            described.write_text(document(name, own), encoding="utf-8")
        _write(results, COLUMNS, rows)
    _write(submissions / "left_out.csv", LEFT_OUT_COLUMNS, left_out(found))
    return sum(not cell.reason for cell in found)


def _write(file: Path, columns: tuple[str, ...], rows: Iterable[Mapping[str, str]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1]), Path(sys.argv[2]))} figures written")
