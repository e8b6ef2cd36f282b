"""Files of human ratings, in the layouts of public corpora and of podeval: marks of outputs, or choices between two
outputs.

Each layout is one entry of `LAYOUTS`: its columns, how a line is read, and the source of its data. A file is recognised
by its columns. Systems and items are named as in the file; if a file names the recording of an output, the name is
kept, so that the recording can be found in a folder.

The filters of a corpus are applied, and a note gives the number of omitted lines. The filters are those of PAM's
appendix 10.2 if a file has raters and times, SOMOS's own quality checks if a file has the column `clean`, and, for a
podeval listening test, the exclusion of sessions that do not count.
"""

import csv
import re
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from podeval.datasets.http import Web
from podeval.errors import BadInput
from podeval.metrics.battle_log import read_log_record
from podeval.metrics.human_records import list_records, read_number, read_webmushra
from podeval.stats.mushra_scores import Mark, screen_pam
from podeval.validation.human_scores import read_marks
from podeval.validation.raters import read_votes

Output = tuple[str, str]
"""A system and an item."""
Record = Mapping[str, Any]
Records = Sequence[tuple[str, Record]]
"""The lines of a file, each with its location; column names are in lower case."""

# These values include the words that Excel writes in German, French, Spanish and Italian.
_FALSE = ("0", "0.0", "false", "no", "n", "f", "falsch", "faux", "falso")
_SCORES = ("system", "item", "score")
_RATERS = ("rater", "listener", "listenerid", "workerid", "worker id")
_SECONDS = ("seconds", "worktimeinseconds", "work time in seconds")
_VOICEMOS = re.compile(
    r"(?P<system>[^,]+,)?(?P<file>[^,]+-[^,]+\.wav),\s*(?P<mark>[\d.]+)(?(system)(?:,.*?(?P<rater>[^,]+))?)\s*$"
)
_CHOICE = re.compile(r"(a|b|tie)(?![a-z])", re.IGNORECASE)
_CHOICES = {"a": 1, "b": -1, "tie": 0}
_OUTCOMES = {"a": 1, "b": -1, "tie": 0, "both_bad": 0}


@dataclass(frozen=True)
class Preference:
    """A choice between two systems on an item, or overall: 1 for the first, -1 for the second, 0 for neither."""

    rater: str
    item: str
    first: str
    second: str
    choice: int


@dataclass(frozen=True)
class RatingFile:
    """The content of a rating file.

    Attributes:
        name: name of the file, or of its task.
        layout: name of the file's layout.
        marks: marks of outputs; a mark of a whole system has no page.
        preferences: choices between two systems.
        votes: votes as records, for the analyses of votes.
        recordings: names of the recordings by output, if the file has them.
        notes: sentences about omitted lines.
    """

    name: str
    layout: str
    marks: tuple[Mark, ...] = ()
    preferences: tuple[Preference, ...] = ()
    votes: tuple[Record, ...] = ()
    recordings: Mapping[Output, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layout:
    """A layout of rating files.

    Attributes:
        name: the name, for `podeval data fetch ratings NAME`.
        title: a title for its ratings.
        columns: sets of columns; a file must have all columns of at least one set.
        where: the source of the data.
        scales: columns with marks, each with the name of its scale; missing ones are skipped.
        locate: function that returns the system, the item and the name of the recording for a line.
        counts: column that marks the lines to use, with the reason why the other lines are left out.
        read: function that reads the file if it does not contain marks line by line.
        archive: address of the published archive; empty if a program cannot fetch it.
    """

    name: str
    title: str
    columns: tuple[frozenset[str], ...]
    where: str
    scales: Mapping[str, str] = field(default_factory=dict)
    locate: Callable[[Record], tuple[str, str, str]] | None = None
    counts: tuple[str, str] = ("", "")
    read: Callable[[Path, Records], RatingFile] | None = None
    archive: str = ""


def read_rating_files(path: Path) -> list[RatingFile]:
    """Read the ratings in a file, or in a folder such as PAM's `human_eval`, which has a folder with `scores.csv` per
    task.

    Raises:
        BadInput: the file cannot be read, has none of the `LAYOUTS`, or has an invalid line, which the message names.
    """
    if not path.is_dir():
        return [_read_file(path)]
    files = sorted({*path.glob("scores.csv"), *path.glob("*/scores.csv")})
    if not files:
        raise BadInput(f"{path} contains no scores.csv, either directly or in a subfolder; specify a ratings file")
    return [_read_file(file) for file in files]


def _read_file(path: Path) -> RatingFile:
    try:
        records = _read_records(path)
        layout = next(
            (one for one in LAYOUTS.values() if any(needed <= records[0][1].keys() for needed in one.columns)), None
        )
        if layout is not None:
            return layout.read(path, records) if layout.read else _read_lines(path, records, layout)
        return _read_votes(path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadInput(f"{path} cannot be read ({error})") from None
    except BadInput as refusal:
        names = ", ".join(LAYOUTS)
        raise BadInput(
            f"{path}: {refusal} (layouts of ratings: {names}; `podeval data fetch ratings` describes them)"
        ) from None


def _read_records(path: Path) -> Records:
    """Read the lines of a file; Parquet columns of audio give only paths, and VoiceMOS's lists have no column names."""
    if path.suffix == ".parquet":
        import pyarrow.parquet
        from pyarrow.types import is_binary, is_struct

        schema = pyarrow.parquet.read_schema(path)
        names = [f"{one.name}.path" if is_struct(one.type) else one.name for one in schema if not is_binary(one.type)]
        with pyarrow.parquet.ParquetFile(path) as file:
            rows = list(enumerate(file.read(columns=names).to_pylist(), 1))
        return [(f"row {number}", {name.lower(): value for name, value in row.items()}) for number, row in rows]
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    if lines and _VOICEMOS.match(lines[0]):
        matches = [(f"line {number}", _VOICEMOS.match(line)) for number, line in enumerate(lines, 1) if line.strip()]
        if wrong := [line for line, match in matches if match is None]:
            raise BadInput(
                f"{wrong[0]} has neither the form `system-utterance.wav,mark` nor `system,utterance.wav,mark,…`"
            )
        return [(line, match.groupdict()) for line, match in matches if match]
    records = list_records(path, "rating")
    return [(line, {str(name).strip().lower(): value for name, value in row.items()}) for line, row in records]


def _read_lines(path: Path, records: Records, layout: Layout) -> RatingFile:
    """Read the marks of a file with a line for each output, or for each mark of an output.

    Raises:
        BadInput: a line lacks a system, or has a mark that is not a number.
    """
    columns = records[0][1].keys()
    rater, seconds = (next((name for name in names if name in columns), "") for names in (_RATERS, _SECONDS))
    scales = {column: scale for column, scale in layout.scales.items() if column in columns}
    counts, why = layout.counts
    counted = [(line, row) for line, row in records if str(row.get(counts)).lower() not in _FALSE]
    recordings, marks = {}, []
    for line, row in counted:
        assert layout.locate is not None, "a layout with scales locates its lines"
        system, item, recording = layout.locate(row)
        if not system.strip():
            raise BadInput(f"{line} does not name a system")
        recordings[system, item] = recording
        for column, scale in scales.items():
            if row[column] not in (None, ""):
                who, time = str(row.get(rater) or ""), _to_number(line, row, seconds) if seconds else None
                mark = _to_number(line, row, column)
                marks.append(Mark(who, item, system, mark, str(row.get("scale") or scale), time))
    notes = [f"{len(records) - len(counted)} lines were left out: {why}"] if len(counted) < len(records) else []
    if layout.name == "pam" and rater:
        screened = screen_pam(marks)
        marks = list(screened.kept)
        notes += [
            f"{len(screened.dropped_raters)} raters who gave all scales the same mark on more than five samples were "
            f"excluded, and so were {screened.hurried} marks given in less than ten seconds (PAM, appendix 10.2)"
        ]
    name = path.parent.name if path.name == "scores.csv" else path.stem
    return RatingFile(name, layout.name, tuple(marks), recordings=recordings, notes=tuple(notes))


def _to_number(line: str, record: Record, name: str) -> float:
    """Return a value of a line as a number.

    Raises:
        BadInput: the value is not a number.
    """
    number = read_number(record[name])
    if number is None:
        raise BadInput(f"{line}: {name} must be a number, not {record.get(name)!r}")
    return number


def _locate_voicemos(row: Record) -> tuple[str, str, str]:
    system, _, item = str(row["file"]).strip().removesuffix(".wav").partition("-")
    return (row["system"] or system).rstrip(","), item, str(row["file"])


def _locate_somos(row: Record) -> tuple[str, str, str]:
    utterance = str(row.get("utteranceid") or "").removesuffix(".wav")
    item, _, system = utterance.rpartition("_")
    return system or str(row.get("systemid") or ""), item, utterance


def _locate_nisqa(row: Record) -> tuple[str, str, str]:
    file = str(row.get("filepath_deg") or row.get("filename_deg"))
    return f"{row.get('db', '')}/{row['con']}", PurePosixPath(file).stem, file


def _read_order(path: Path, records: Records) -> RatingFile:
    """Read an order of systems (1 is the best position), or one score for each system as a whole."""
    name, sign = ("place", -1) if "place" in records[0][1] else ("score", 1)
    marks = tuple(Mark("", "", str(row["system"]), sign * _to_number(at, row, name)) for at, row in records)
    if len({mark.stimulus for mark in marks}) < len(marks):
        raise BadInput(
            "a system is listed twice, but an order has one line per system; to give scores by item, add a column "
            "named 'item'"
        )
    return RatingFile(path.stem, "order", marks)


def _read_listening(path: Path, records: Records) -> RatingFile:
    """Read the marks of a podeval listening test; pages with two outputs are choices, positive for the second."""
    paired = [(line, row) for line, row in records if row.get("compared_with")]
    single = [(line, row) for line, row in records if not row.get("compared_with")]
    ratings = _read_lines(path, single, LAYOUTS["listening"]) if single else RatingFile(path.stem, "listening")
    preferences = []
    for line, row in paired:
        if row.get("kind") != "abx" and str(row.get("counted")).lower() not in _FALSE:
            mark = _to_number(line, row, "mark")
            sides = str(row["stimulus"]), str(row["compared_with"])
            preferences.append(Preference(str(row["listener"]), str(row["item"]), *sides, (mark < 0) - (mark > 0)))
    left_out = len(paired) - len(preferences)
    notes = (f"{left_out} choices were left out because they come from ABX pages or do not count",) if left_out else ()
    return replace(ratings, preferences=tuple(preferences), notes=(*ratings.notes, *notes))


def _read_speechjudge(path: Path, records: Records) -> RatingFile:
    """Read which of `audioA` and `audioB` is more natural according to each rater or to the majority."""
    preferences, recordings = [], {}
    for line, row in records:
        item, choices = str(row["index"]), row.get("naturalness_annotation") or [row.get("naturalness_label")]
        raters = row.get("rater") or [""] * len(choices)
        matches = [_CHOICE.match(str(choice)) for choice in choices]
        sides = [_CHOICES[match[1].lower()] if match else None for match in matches]
        if isinstance(choices, str) or None in sides or len(raters) != len(sides):
            raise BadInput(f"{line}: annotations must be a list with A…, B… or Tie for each rater, not {choices!r}")
        preferences += [Preference(rater, item, "A", "B", side or 0) for rater, side in zip(raters, sides, strict=True)]
        for side_name in "AB":
            audio = row.get(f"audio{side_name.lower()}")
            file = audio.get("path") if isinstance(audio, Mapping) else audio
            recordings[side_name, item] = str(file or f"{item}_{side_name}")
    return RatingFile(path.stem, "speechjudge", preferences=tuple(preferences), recordings=recordings)


def _read_votes(path: Path) -> RatingFile:
    """Read votes in any form that `raters.read_votes` accepts; a vote's item, if given, applies to both outputs."""
    votes, preferences = read_votes(path), []
    for number, vote in enumerate(votes):
        row = read_log_record(f"vote {number + 1}", vote)
        if row["outcome"] in _OUTCOMES and vote.get("standing") != "excluded" and vote.get("purpose") != "gold":
            item, sides = str(vote.get("item") or ""), (row["first"], row["second"])
            preferences.append(Preference(row["voter"] or "", item, *sides, _OUTCOMES[row["outcome"]]))
    return RatingFile(path.stem, "votes", preferences=tuple(preferences), votes=tuple(votes))


def fetch_ratings(name: str, into: Path, web: Web, most_bytes: int) -> Path:
    """Download the archive of a corpus, and unpack it.

    Args:
        name: name of the layout.
        into: the folder; the archive stays in it, so an interrupted download can be resumed.
        web: reader for the server.
        most_bytes: maximum size of an accepted archive in bytes.

    Raises:
        BadInput: there is no such corpus, the corpus cannot be fetched, or the download is not an archive.
    """
    layout = LAYOUTS.get(name)
    if layout is None or not layout.archive:
        why = f"{name} can only be fetched by hand: {layout.where}" if layout else f"there are no ratings {name!r}"
        raise BadInput(f"{why}; choose {', '.join(one.name for one in LAYOUTS.values() if one.archive)}")
    archive = web.save(layout.archive, into / PurePosixPath(layout.archive).name, most_bytes)
    try:
        # Names that lead outside the folder are skipped or refused.
        if zipfile.is_zipfile(archive):
            shutil.unpack_archive(archive, into)
        else:
            shutil.unpack_archive(archive, into, filter="data")
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise BadInput(f"{archive} is not the archive of {layout.archive} ({error}); delete it and try again") from None
    return into


def _columns(*alternatives: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names.split(", ")) for names in alternatives)


_ZENODO = "https://zenodo.org/records/"
_LIST = (
    Layout(
        "pam",
        "PAM's human_eval: sounds and music generated from text, OVL and REL",
        _columns("file name, model, ovl", "file name, model, rel"),
        f"{_ZENODO}10737388 (ratings and recordings)",
        {"ovl": "OVL", "rel": "REL"},
        lambda row: (str(row["model"]), str(row["file name"]), f"{row['model']}/{row['file name']}"),
        archive=f"{_ZENODO}10737388/files/human_eval.zip",
    ),
    Layout(
        "voicemos",
        "VoiceMOS Challenge 2022 (BVCC): naturalness of synthesis and conversion",
        _columns("system, file, mark, rater"),
        f"{_ZENODO}6572573 (lists of marks, and programs that collect the recordings)",
        {"mark": "MOS"},
        _locate_voicemos,
        archive=f"{_ZENODO}6572573/files/main.tar.gz",
    ),
    Layout(
        "somos",
        "SOMOS: naturalness of 200 systems of speech synthesis",
        _columns("systemid, utteranceid, choice", "utteranceid, mean", "systemid, mean"),
        f"{_ZENODO}7378801 (ratings and recordings, 4 GB)",
        {"choice": "MOS", "mean": "MOS"},
        _locate_somos,
        ("clean", "their pages failed SOMOS's quality checks"),
        archive=f"{_ZENODO}7378801/files/somos.zip",
    ),
    Layout(
        "nisqa",
        "NISQA Corpus: transmitted speech; overall quality, noisiness, coloration, discontinuity, loudness",
        _columns("filepath_deg, con, mos", "filename_deg, con, mos"),
        f"{_ZENODO}4728081 (ratings and recordings)",
        {scale: scale for scale in ("mos", "noi", "col", "dis", "loud")},
        _locate_nisqa,
        archive=f"{_ZENODO}4728081/files/NISQA_Corpus.zip",
    ),
    Layout(
        "speechjudge",
        "SpeechJudge-Data: which of two clips is more natural",
        _columns("index, naturalness_annotation", "index, naturalness_label"),
        "https://huggingface.co/datasets/RMSnow/SpeechJudge-Data (Parquet files, for those who accept its terms)",
        read=_read_speechjudge,
    ),
    Layout(
        "webmushra",
        "results of webMUSHRA's MUSHRA pages",
        _columns("session_uuid, trial_id, rating_stimulus, rating_score"),
        "results/TEST/*.csv of your webMUSHRA",
        read=lambda path, records: RatingFile(path.stem, "webmushra", tuple(read_webmushra(path))),
    ),
    Layout(
        "listening",
        "a listening test of podeval",
        _columns("listener, item, stimulus, mark"),
        "`podeval listening export TEST --form csv`",
        {"mark": ""},
        lambda row: (str(row["stimulus"]), str(row["item"]), ""),
        ("counted", "their sessions do not count"),
        _read_listening,
    ),
    Layout(
        "scores",
        "scores by system and item, and optionally rater and measure",
        _columns("system, item, score"),
        "a table of your own",
        read=lambda path, records: RatingFile(path.stem, "scores", tuple(read_marks(path, columns=_SCORES))),
    ),
    Layout(
        "order",
        "an order of systems, or a score of each system as a whole",
        _columns("system, place", "system, score"),
        "a table of your own, for studies that do not print marks by item",
        read=_read_order,
    ),
)
LAYOUTS: Mapping[str, Layout] = {layout.name: layout for layout in _LIST}
"""The layouts by name, in the order in which they are tried; add new ones here. All other files are read as votes."""
