"""Convert drafts of Real-Pod's scripts, as people and models write them, into the items and scripts of its splits.

A draft of an episode has a head of `name: value` lines, `---`, its turns as `Name: text`, `---`, and lines
`source: turn | claim | where it is from`. There a turn is its number from 0, or `@` and words that stand in it; in the
files turns count from 1. Two versions of a turn stand on one line with ` ||| ` between them. Head lines
`speaker: name | role | gender | manner` say who speaks.

A draft of hard lines holds many items. Each begins with `# id | topic | category | speakers`; a line is
`Name [tags of the line]: text`, and in the text `{as written|another form|@tag}` is a stretch with its other readings.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

from podeval.benchmarks.spoken import ReferenceVoice
from podeval.errors import BadInput
from podeval.store.files import write_whole
from podeval.text.accepted_readings import PLAIN
from podeval.text.text_file import read_text

VERSIONS = " ||| "
_HARD_LINE = re.compile(r"(?P<speaker>[^\[:]+)(?:\[(?P<tags>[a-z_, ]+)\])?: (?P<text>.+)")
_STRETCH = re.compile(r"\{([^{}]+)\}|\[([^\[\]|]+\|[^\[\]]+)\]")
_LINE_TAG = re.compile(r" \[([a-z_]+)\]$")


@dataclass(frozen=True)
class EpisodeDraft:
    """A draft: its head, who speaks (name, role, gender, manner), the turns in their versions, and the claims."""

    head: Mapping[str, str]
    speakers: tuple[Mapping[str, str], ...]
    turns: tuple[tuple[str, ...], ...]
    claims: tuple[Mapping[str, Any], ...] = field(default=())


def parse_episode(text: str) -> EpisodeDraft:
    """Read a draft of an episode.

    Raises:
        BadInput: a part is missing, a line has another form, or a source's turn is not there.
    """
    parts = [part.strip("\n").splitlines() for part in re.split(r"^---$", text, flags=re.MULTILINE)]
    if len(parts) not in (2, 3):
        raise BadInput(f"a draft has a head, its turns and its sources, with `---` between them; this has {len(parts)}")
    pairs = [_split_once(line, ":") for line in parts[0] if line.strip()]
    speakers = [
        dict(zip(("name", "role", "gender", "manner"), map(str.strip, value.split("|")), strict=True))
        for name, value in pairs
        if name == "speaker"
    ]
    lines = [_split_once(line, ":") for line in parts[1] if line.strip()]
    turns = tuple((name, *(version.strip() for version in text.split(VERSIONS))) for name, text in lines)
    sources = [line for line in (parts[2] if len(parts) == 3 else []) if line.strip()]
    return EpisodeDraft(
        head={name: value for name, value in pairs if name != "speaker"},
        speakers=tuple(speakers),
        turns=turns,
        claims=tuple(_parse_claim(line, turns) for line in sources),
    )


def _split_once(line: str, sign: str) -> tuple[str, str]:
    before, middle, after = line.partition(sign)
    if not middle or not after.strip():
        raise BadInput(f"a line of a draft is `name: text`, not {line[:60]!r}")
    return before.strip(), after.strip()


def _parse_claim(line: str, turns: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    name, value = _split_once(line, ":")
    parts = [part.strip() for part in value.split("|", 2)]
    if name != "source" or len(parts) != 3:
        raise BadInput(f"a source is `source: turn | claim | where it is from`, not {line[:60]!r}")
    position, claim, source = parts
    if position.startswith("@"):
        numbers = [number for number, turn in enumerate(turns) if any(position[1:] in version for version in turn[1:])]
        if not numbers:
            raise BadInput(f"no turn has the words {position[1:]!r} of a source")
        return {"turn": numbers[0] + 1, "claim": claim, "source": source}
    if not position.isdecimal() or int(position) >= len(turns):
        raise BadInput(f"a source is of turn {position}, and there are {len(turns)}, from 0")
    return {"turn": int(position) + 1, "claim": claim, "source": source}


def make_item(draft: EpisodeDraft, inline: bool = False) -> dict[str, Any]:
    """Return the item of a draft: what it is about, and, where it is `inline`, its script with its sources."""
    head = draft.head
    item: dict[str, Any] = {
        "id": head["id"],
        "category": head["category"],
        "language": head["language"],
        "voices": len(draft.speakers),
        "topic": head["topic"],
    }
    if "minutes" in head:
        item["properties"] = {"minutes": head["minutes"]}
    if inline:
        item["script"] = [{"speaker": turn[0], "text": turn[1]} for turn in draft.turns]
        item["claims"] = list(draft.claims)
    return item


def make_script(draft: EpisodeDraft, voices: Iterable[ReferenceVoice] = ()) -> dict[str, Any]:
    """Return the script of a draft; each speaker has the next voice of the same gender, none twice.

    Raises:
        BadInput: there are fewer voices of a gender than speakers.
    """
    left: dict[str, list[str]] = {}
    for voice in voices:
        left.setdefault(voice.gender, []).append(voice.id)
    speakers = []
    for speaker in draft.speakers:
        voice_of = {"voice": _take(left, speaker["gender"])} if left else {}
        speakers.append({name: speaker[name] for name in ("name", "role", "gender", "manner")} | voice_of)
    versions = ("text", "spontaneous")
    turns = [{"speaker": turn[0], **dict(zip(versions, turn[1:], strict=False))} for turn in draft.turns]
    return {"id": draft.head["id"], "speakers": speakers, "turns": turns, "sources": list(draft.claims)}


def _take(left: Mapping[str, list[str]], gender: str) -> str:
    if not left.get(gender):
        raise BadInput(f"there is no {gender} voice left for another speaker")
    return left[gender].pop(0)


def rotate_voices(voices: Sequence[ReferenceVoice], drafts: Sequence[EpisodeDraft]) -> list[list[ReferenceVoice]]:
    """Order the voices for each draft so that, over the drafts, each voice is used about as often as the others."""
    used: Counter[str] = Counter()
    orders = []
    places = cycle(range(len(voices)))
    for draft in drafts:
        shift = next(places)
        turned = sorted([*voices[shift:], *voices[:shift]], key=lambda voice: used[voice.id])
        orders.append(turned)
        for gender, number in Counter(speaker["gender"] for speaker in draft.speakers).items():
            used.update([voice.id for voice in turned if voice.gender == gender][:number])
    return orders


def parse_hard_items(text: str) -> list[dict[str, Any]]:
    """Read a draft of hard lines and return its items.

    Raises:
        BadInput: a line has another form, or somebody else speaks than is named.
    """
    items: list[dict[str, Any]] = []
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("# "):
            name, topic, category, speakers = (part.strip() for part in line[2:].split("|"))
            about = {"id": name, "category": category, "language": "en", "voices": len(speakers.split(", "))}
            items.append({**about, "topic": topic, "script": [], "lines": []})
            continue
        match = _HARD_LINE.fullmatch(line)
        if not match or not items:
            raise BadInput(f"a hard line is `Name [tags]: text`, not {line[:60]!r}")
        words, hard = _parse_hard_line(match["text"], match["tags"] or "")
        items[-1]["script"].append({"speaker": match["speaker"].strip(), "text": words})
        items[-1]["lines"].append(hard)
    for item in items:
        if len({turn["speaker"] for turn in item["script"]}) != item["voices"]:
            raise BadInput(f"{item['id']} names {item['voices']} speakers; others speak")
    return items


def _parse_hard_line(text: str, tags: str) -> tuple[str, dict[str, Any]]:
    """Return the words of a line and what is hard about it; a line without anything hard is tagged as plain."""
    line_tags = [tag for tag in tags.replace(",", " ").split() if tag]
    if match := _LINE_TAG.search(text):
        line_tags.append(match[1])
        text = text[: match.start()]
    readings = []
    for match in _STRETCH.finditer(text):
        written, *forms = (match[1] or match[2]).split("|")
        laughter = match[2] is not None
        readings.append(
            {
                "text": f"[{written}]" if laughter else written,
                "accepted": [form for form in forms if not form.startswith("@")],
                "tags": [form[1:] for form in forms if form.startswith("@")],
            }
        )
    words = _STRETCH.sub(lambda m: m[1].partition("|")[0] if m[1] else f"[{m[2].partition('|')[0]}]", text)
    if not line_tags and not readings:
        line_tags = [PLAIN]
    return " ".join(words.split()), {"tags": line_tags, "readings": readings}


def lay_out_items(items: Sequence[Mapping[str, Any]], attribution: str) -> str:
    """Return the content of a file of items, an item a line, so that a change shows as what it is."""
    head = json.dumps({"licence": "CC-BY-4.0", "attribution": attribution}, ensure_ascii=False)[1:-1]
    lines = ",\n".join(json.dumps(item, ensure_ascii=False) for item in items)
    return f'{{{head}, "items": [\n{lines}\n]}}\n'


def lay_out_scripts(scripts: Sequence[Mapping[str, Any]]) -> str:
    """Return the content of a file of scripts, as JSON lines."""
    return "".join(json.dumps(script, ensure_ascii=False) + "\n" for script in scripts)


def convert_folder(
    folder: Path, into: Path, name: str, attribution: str, voices: Sequence[ReferenceVoice] = ()
) -> list[Path]:
    """Convert every draft of a folder and write `NAME.json`, with `NAME_scripts.jsonl` where scripts stand apart.

    They stand apart where a draft states its minutes or has two versions; shorter ones are part of their items.

    Returns:
        The files that were written.

    Raises:
        BadInput: there is no draft, or one has another form; the message names it.
    """
    drafts = sorted(folder.glob("*.txt"))
    if not drafts:
        raise BadInput(f"{folder} contains no drafts (*.txt)")
    into.mkdir(parents=True, exist_ok=True)
    texts = {draft: read_text(draft) for draft in drafts}
    items_file, scripts_file = into / f"{name}.json", into / f"{name}_scripts.jsonl"
    if all(text.startswith("# ") for text in texts.values()):
        hard = [item for text in texts.values() for item in parse_hard_items(text)]
        write_whole(items_file, lay_out_items(hard, attribution).encode())
        return [items_file]
    episodes = [_parse_named(path, text) for path, text in texts.items()]
    apart = any("minutes" in episode.head or len(episode.turns[0]) > 2 for episode in episodes)
    items = [make_item(episode, inline=not apart) for episode in episodes]
    write_whole(items_file, lay_out_items(items, attribution).encode())
    if not apart:
        return [items_file]
    orders = rotate_voices(voices, episodes) if voices else [[] for _ in episodes]
    scripts = [make_script(episode, order) for episode, order in zip(episodes, orders, strict=True)]
    write_whole(scripts_file, lay_out_scripts(scripts).encode())
    return [items_file, scripts_file]


def _parse_named(path: Path, text: str) -> EpisodeDraft:
    try:
        return parse_episode(text)
    except (BadInput, ValueError) as error:
        raise BadInput(f"{path.name}: {error}") from None
