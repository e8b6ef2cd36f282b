"""List the sentences in scripts of Real-Pod that may be claims about the world, but have no noted source.

    python -m studies.unsourced_claims

The script lists every sentence with a figure, a year or a name (of a person, a place, a work, a study) in a turn that
has no source and that no reader has marked as part of the story. It finds figures in English and Chinese, but names
only in English, because Chinese has no capitals. `real_pod_sources.json` lists the parts of the story: `own_turns`,
whose figures are prices, ages or dates of what happens to its people, and `own_names`, which are invented or only
mentioned.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from podeval.benchmarks.real_pod import BENCHMARK
from podeval.datasets.dataset_record import Row
from podeval.datasets.real_pod_scripts import make_claims_rows
from podeval.datasets.source_files import find_package_folder

_NUMERALS = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|hundreds?|thousands?|millions?|billions?|dozens?|percent"
)
_FIGURE = re.compile(rf"\d|[$£€%]|\b(?:{_NUMERALS})\b", re.IGNORECASE)
_CHINESE_FIGURE = re.compile(
    r"\d|[一二两三四五六七八九十零百千万亿]{2,}|第?[二两三四五六七八九十百千万][年月号日代世万亿个倍度层米公斤块元岁次名座部家]|百分|《"
)
_WORD = re.compile(r"[^\W\d_][^\W_]*(?:['-][^\W\d_]+)*")
_ENDING = re.compile(r"'(?:s|ll|d|m|re|ve)$")
_CALENDAR = frozenset(
    "I God Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August"  # noqa: SIM905
    " September October November December Christmas Easter Mr Mrs Ms Dr Mum Dad Mom".split()
)


@dataclass(frozen=True)
class OpenSentence:
    """A sentence with a figure or a name whose source nobody has stated."""

    script: str
    turn: int
    sentence: str
    because: str


def find_open_sentences(rows: Sequence[Row]) -> Iterator[OpenSentence]:
    """Yield the open sentences in scripts, which are rows of the table of sources."""
    lower = Counter(word for row in rows for turn in row["turns"] for word in _WORD.findall(turn["text"]))
    for row in rows:
        speakers = {word for turn in row["turns"] for word in turn["speaker"].split()}
        own_turns, own_names = set(row["own_turns"]), set(row["own_names"])
        for number, turn in enumerate(row["turns"], 1):
            if turn["claims"]:
                continue
            for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", turn["text"]):
                named = [name for name in _find_names(sentence, lower) if name not in speakers | own_names]
                if named:
                    yield OpenSentence(row["id"], number, sentence, f"names {', '.join(named)}")
                elif number not in own_turns and _has_figure(sentence):
                    yield OpenSentence(row["id"], number, sentence, "says a figure")


def list_idle_marks(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a reader's marks that have no effect: turns and names that do not exist, and turns that have a source."""
    for row in rows:
        text = " ".join(turn["text"] for turn in row["turns"])
        for number in row["own_turns"]:
            if not 1 <= number <= len(row["turns"]):
                yield f"{row['id']} has no turn {number}"
            elif row["turns"][number - 1]["claims"]:
                yield f"turn {number} of {row['id']} has a source"
        yield from (f"{row['id']} does not name {name}" for name in row["own_names"] if name not in text)


def _has_figure(sentence: str) -> bool:
    return bool(_FIGURE.search(sentence) or _CHINESE_FIGURE.search(sentence))


def _find_names(sentence: str, seen: Mapping[str, int]) -> Iterator[str]:
    """Yield capitalised words; the first word of a sentence only if no script contains it in lower case."""
    for place, word in enumerate(_WORD.findall(sentence)):
        name = _ENDING.sub("", word)
        if not name[0].isupper() or (not name.isascii() and len(name) == 1) or name in _CALENDAR:
            continue
        if place or not (seen.get(word.lower()) or seen.get(name.lower())):
            yield name


def main() -> None:
    """Print every open sentence of every script."""
    splits = [split for split in BENCHMARK.splits if split.version == "written"]
    rows = list(make_claims_rows(find_package_folder("podeval.benchmarks:data"), splits))
    found = list(find_open_sentences(rows))
    for one in found:
        print(f"{one.script}, turn {one.turn}, {one.because}: {one.sentence}")
    print(f"{len(found)} sentences without a source in {len(rows)} scripts")


if __name__ == "__main__":
    main()
