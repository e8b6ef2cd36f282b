"""Logs of battles as written by podeval, judges and other arenas: each record has two sides and an outcome."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podeval.errors import BadInput, is_missing
from podeval.files import read_lines
from podeval.stats.battles import OUTCOMES, SKIPPED, Battles
from podeval.text.characters import clean_text

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("a", "first", "left", "modela", "systema", "assistanta"), "a"),
    **dict.fromkeys(("b", "second", "right", "modelb", "systemb", "assistantb"), "b"),
    **dict.fromkeys(("tie", "tied", "draw", "equal", "bothgood", "tiebothgood"), "tie"),
    **dict.fromkeys(("bothbad", "tiebothbad"), "both_bad"),
    **dict.fromkeys(("skip", "skipped"), SKIPPED),
}
"""Outcomes by their names in logs; names are in lower case, without spaces, underscores, hyphens or brackets."""

_VOTERS = (
    "voter",
    "judge",
    "judge_hash",
    "user_id",
    "user",
    "username",
    "rater",
    "annotator",
    "annotator_id",
    "worker_id",
)
"""Field names for the voter in other logs. If a record has an `outcome`, only the first is read, because a model that a
log names as the judge decided all battles, and would count as a single voter.
"""
_SIDES = (("first", "second"), ("system_a", "system_b"), ("model_a", "model_b"))

JUDGES, BATTLES = "judges", "battles.jsonl"
"""The folder of judges in a folder of runs, and the file in each judge's folder with the output of `judge battles`."""


@dataclass(frozen=True)
class JudgedLog:
    """The battles that one judge decided in the same way.

    Attributes:
        file: the file that contains them.
        judge: the id of the judge.
        way: the variant, the pairing rule and the seed that the judge used.
        records: the records of the battles.
    """

    file: Path
    judge: str
    way: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]

    @property
    def is_trial(self) -> bool:
        """Whether the judge is declared to be a trial model, whose scores are not for publication."""
        return any(record.get("trial") for record in self.records)

    def read_by_dimension(self) -> dict[str, Battles]:
        """Read the battles of each dimension, and all battles under an empty name.

        Raises:
            BadInput: a record is not a battle; the message names the file.
        """
        parts: dict[str, list[Mapping[str, Any]]] = {"": list(self.records)}
        for record in self.records:
            if record.get("dimension"):
                parts.setdefault(str(record["dimension"]), []).append(record)
        return {name: read_battles(part, [f"{self.file}: a battle"] * len(part)) for name, part in parts.items()}


def read_judged_logs(runs: Path) -> list[JudgedLog]:
    """Read the battles of all judges in a folder of runs; a half-written last line is ignored.

    Battles from different files, by different judges or in different ways are never combined into one log.

    Raises:
        BadInput: a line does not have the format of `podeval judge battles`; the message names the file.
    """
    logs: dict[tuple[Path, str, str], list[Mapping[str, Any]]] = {}
    for file in sorted((runs / JUDGES).glob(f"*/{BATTLES}")):
        for number, record in enumerate(read_lines(file), 1):
            if not isinstance(record, Mapping) or not record.get("judge"):
                raise BadInput(
                    f"{file}, line {number} is not a battle that a judge decided; keep only the output of `podeval "
                    "judge battles` in this file, and move everything else to another file"
                )
            way = json.dumps({name: record.get(name) for name in ("variant", "pairing", "seed")})
            logs.setdefault((file, str(record["judge"]), way), []).append(record)
    return [JudgedLog(file, judge, json.loads(way), records) for (file, judge, way), records in logs.items()]


def read_battles(records: Iterable[Mapping[str, Any]], places: Sequence[str] = ()) -> Battles:
    """Read battles from the records of a log, in any form that `read_log_record` accepts.

    Votes that are marked as excluded in an export are skipped, and so are the export's gold battles.

    Args:
        records: the lines of the log, as plain data.
        places: the place of each record in the log, such as `line 3`; by default, records are numbered.

    Raises:
        BadInput: a record has an unknown form or outcome, or only some battles have a covariate; the message names the
            record's place.
    """
    rows = []
    for number, record in enumerate(records):
        row = read_log_record(places[number] if places else f"vote {number + 1}", record)
        left_out = record.get("standing") == "excluded" or record.get("purpose") == "gold"
        rows.append(row | {"outcome": SKIPPED} if left_out else row)
    names = sorted({name for row in rows for name in row["covariates"]})
    for name in names:
        if missing := sum(name not in row["covariates"] for row in rows):
            raise BadInput(
                f"{missing} of {len(rows)} votes lack the covariate {name}; give it for all votes or for none"
            )
    voters = [row["voter"] for row in rows]
    if not all(voters):
        voters = [voter or f"vote {number}" for number, voter in enumerate(voters)]
    return Battles.of(
        [row["first"] for row in rows],
        [row["second"] for row in rows],
        [row["outcome"] for row in rows],
        voters,
        {name: [row["covariates"][name] for row in rows] for name in names},
    )


def read_log_record(place: str, record: Mapping[str, Any]) -> dict[str, Any]:
    """Read a record from a battle log by podeval, a judge (`podeval judge battles`), an export or another arena.

    A record has two sides (`first` and `second`, `system_a` and `system_b`, or `model_a` and `model_b`) and an
    `outcome` or a `winner`: a word such as `a`, `model_a`, `left`, `tie`, `tie (bothbad)` or `draw`, or the name of a
    side. None, NaN or an empty text means a skipped battle. A record may have `covariates` by name and a `voter`, which
    can also be called `judge`, `user_id` and so on if there is a `winner`; without a voter, battles on the same
    `dialogue` are grouped. Names are cleaned by `clean_name`.

    Args:
        place: the place of the record in the log, for the message.
        record: the record as plain data.

    Returns:
        `first`, `second`, `outcome` (one of `OUTCOMES`, or `SKIPPED`), `voter` and `covariates`.

    Raises:
        BadInput: the record has an unknown form or outcome.
    """
    sides = next((pair for pair in _SIDES if not set(pair).isdisjoint(record)), _SIDES[0])
    key = next((name for name in ("outcome", "winner") if not is_missing(record.get(name))), "")
    key = key or next((name for name in ("outcome", "winner") if name in record), "")
    lacking = [name for name in sides if not isinstance(record.get(name), str) or is_missing(record[name])]
    if lacking or not key:
        lacking += ["outcome"] * (not key)
        raise BadInput(f"{place} lacks {' and '.join(lacking)}; a vote needs first, second, outcome and voter")
    first, second = (clean_name(record[name]) for name in sides)
    outcome = _read_outcome(place, key, record[key], first, second)
    if first == second and outcome != SKIPPED:
        raise BadInput(f"{place}: {first} is on both sides of a battle; leave such battles out")
    covariates = record.get("covariates")
    covariates = {} if is_missing(covariates) else covariates
    if not isinstance(covariates, Mapping) or not all(isinstance(one, int | float) for one in covariates.values()):
        raise BadInput(f"{place}: covariates must be an object with a number for each name, not {covariates!r}")
    voters = (record.get(name) for name in (_VOTERS if key == "winner" else ("voter", "dialogue")))
    voter = next((voter for voter in voters if not is_missing(voter)), None)
    return {
        "first": first,
        "second": second,
        "outcome": outcome,
        "voter": None if voter is None else clean_name(voter),
        "covariates": covariates,
    }


def clean_name(name: object) -> str:
    """Return the name of a system or a person for comparisons: NFC, without leading or trailing spaces or invisible
    characters.
    """
    return clean_text(str(name)).strip()


def _read_outcome(place: str, key: str, word: Any, first: str, second: str) -> str:
    """Return the outcome of a record; a `winner` is read as a name first, an `outcome` as a word first."""
    if is_missing(word):
        return SKIPPED
    word_only = re.sub(r"[\s_()-]+", "", word.lower()) if isinstance(word, str) else ""
    meanings = ({first: "a", second: "b"}.get(clean_name(word)), _WORDS.get(word_only))
    outcome = next(filter(None, meanings if key == "winner" else reversed(meanings)), None)
    if outcome is None:
        raise BadInput(
            f"{place}: the {key} {word!r} is neither {first} nor {second}, nor a known outcome; write "
            f"{', '.join(OUTCOMES)}, {SKIPPED}, model_a, model_b or the name of a side"
        )
    return outcome
