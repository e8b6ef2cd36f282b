"""Read people's scores and a judge's from files, join them by item, and measure their agreement."""

import csv
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from podeval.errors import BadInput
from podeval.leaderboard.judge_audit import Named, compare_with_people
from podeval.stats.agreement import krippendorff_alpha

Scores = Mapping[str, float]
Ratings = Mapping[str, Mapping[str, float]]
"""Scores by rater and item."""


@dataclass(frozen=True)
class Agreement:
    """The agreement of a judge with people: figures over the items that both have.

    `figures` compare with the mean of the people; `alpha` counts the judge as one more rater.
    """

    figures: Named
    items: int
    raters: int
    only_judge: int
    only_people: int


def compute_agreement(scores: Scores, people: Ratings) -> Agreement:
    """Return how a judge's scores agree with people's.

    Raises:
        BadInput: fewer than three items are common.
    """
    by_item: dict[str, list[float]] = defaultdict(list)
    for ratings in people.values():
        for item, score in ratings.items():
            by_item[item].append(score)
    common = sorted(set(scores) & set(by_item))
    if len(common) < 3:
        raise BadInput(
            f"the judge's scores and people's have {len(common)} items in common, at least 3 are needed; "
            f"the judge's are named like {_some(scores)}, people's like {_some(by_item)}"
        )
    judged = [scores[item] for item in common]
    truth = [sum(by_item[item]) / len(by_item[item]) for item in common]
    figures = compare_with_people(judged, truth)
    raters: list[list[float | None]] = [list(judged)]
    raters += [[ratings.get(item) for item in common] for ratings in people.values()]
    figures["Krippendorff alpha, the judge one of the raters"] = krippendorff_alpha(raters, "interval")
    if len(people) > 1:
        figures["Krippendorff alpha, people alone"] = krippendorff_alpha(raters[1:], "interval")
    return Agreement(figures, len(common), len(people), len(set(scores) - set(common)), len(set(by_item) - set(common)))


def _some(names: Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in sorted(names)[:3]) or "nothing"


def read_scores(path: Path, key: str | None) -> dict[str, float]:
    """Read a judge's scores by item from `podeval measure --json`, or a CSV with the columns item and score.

    Args:
        path: a `.csv` or a file of JSON lines.
        key: key of the value, where there are several.

    Raises:
        BadInput: the file cannot be read, or holds no such values.
    """
    if path.suffix.lower() == ".csv":
        by_rater = read_people(path, key)
        if len(by_rater) > 1:
            raise BadInput(f"{path} holds the scores of {len(by_rater)} raters; a judge has one score per item")
        return dict(next(iter(by_rater.values())))
    scores: dict[str, float] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            data = json.loads(line)
            name = Path(str(data["file"])).stem
        except (ValueError, KeyError, TypeError):
            raise BadInput(f"{path}, line {number} is not what `podeval measure --json` prints") from None
        if "unscored" in data:
            continue
        if key is None:
            keys = [k for k, value in data.items() if isinstance(value, int | float) and not isinstance(value, bool)]
            if len(keys) != 1:
                raise BadInput(f"{path} holds {', '.join(keys) or 'no values'}; name one with --key")
            (key,) = keys
        if not isinstance(data.get(key), int | float):
            raise BadInput(f"{path}, line {number} has no value {key!r}")
        if name in scores:
            raise BadInput(f"{path} scores {name!r} twice; items are told apart by the names of their files")
        scores[name] = float(data[key])
    return scores


def read_people(path: Path, key: str | None = None) -> dict[str, dict[str, float]]:
    """Read scores by rater and item from a CSV with the columns item and score, and perhaps rater and key.

    Raises:
        BadInput: the file cannot be read, a column is missing, or a score is not a number.
    """
    rows = list(csv.DictReader(_text(path).splitlines()))
    if not rows or not {"item", "score"} <= set(rows[0]):
        raise BadInput(f"{path} needs the columns item and score (and may have rater and key)")
    by_rater: dict[str, dict[str, float]] = defaultdict(dict)
    for number, row in enumerate(rows, 2):
        if key is not None and row.get("key") not in (None, "", key):
            continue
        rater, item = row.get("rater") or "", row["item"] or ""
        try:
            score = float(row["score"])
        except (TypeError, ValueError):
            raise BadInput(f"{path}, line {number}: the score {row['score']!r} is not a number") from None
        if item in by_rater[rater]:
            raise BadInput(f"{path}, line {number}: {item!r} has a second score{f' by {rater}' if rater else ''}")
        by_rater[rater][item] = score
    if not by_rater:
        raise BadInput(f"{path} has no scores of the key {key!r}")
    return dict(by_rater)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read ({error})") from None
