"""Downloads for readers: the numbers of a view as a table, and the badge of a system for its README."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from html import escape
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from jinja2 import Template

from podeval.board import scene
from podeval.board.board_json import Addresses, describe_board, describe_picture
from podeval.board.build import build
from podeval.board.columns import EVERYTHING, format_standing, to_number
from podeval.board.item_results import read_scores
from podeval.board.playable import list_parts
from podeval.board.runs_folder import Index, RunsFolder
from podeval.board.system_info import Facts, read_links
from podeval.board.view import BoardView, ResolvedView, resolve_view
from podeval.board.words import Words, write_board_name
from podeval.errors import BadInput, PodevalError
from podeval.files import locate_hub_source, write_whole
from podeval.models.profiles import PAPER
from podeval.plots.svg import draw_badge
from podeval.recording.playback import Playback, Stretch
from podeval.text.message_catalogue import read_texts
from podeval.text.table_files import make_csv_safe
from podeval.texts import write_sentence


def render_badge(index: Index, system: str, wish: BoardView) -> str:
    """Return a system's badge as SVG: the system's rank range, `provisional` if it has no rank, `reported`, or
    `unscored`.

    Args:
        index: the board.
        system: id of the system.
        wish: the board, the profile and the dimension; `sort` is the column whose rank the badge shows, by default the
            system's first column, preferably a column in the overview.

    Raises:
        BadInput: the system is not on this board.
    """
    for profile, dimension in product((wish.profile, PAPER), (wish.dimension, wish.dimension or EVERYTHING)):
        settled = resolve_view(BoardView(wish.board, profile, dimension, sort=wish.sort), index)
        for column in sorted(settled.columns, key=lambda one: one.id != settled.view.sort):
            rows = settled.sheet.rows(column.id)
            if row := next((row for (each, _), row in rows.items() if each == system), None):
                ranked = sum(to_number(other["rank_best"]) is not None for other in rows.values())
                standing = format_standing(row)
                unranked = "unscored" if to_number(row["value"]) is None else "provisional"
                ranks = f"{standing} of {ranked}" if standing.startswith("#") else unranked
                said = f"{column.title} {'reported' if row['provenance'] == 'reported' else ranks}"
                return draw_badge(f"podeval · {write_board_name(settled.title)}", said)
    first = resolve_view(BoardView(wish.board, wish.profile), index)
    if system in first.board.systems:
        return draw_badge(f"podeval · {write_board_name(first.title)}", "unscored")
    raise BadInput(write_sentence("no-such-choice", what="system", value=f"{system[:80]!r}"))


def make_tidy(settled: ResolvedView) -> pd.DataFrame:
    """Return the numbers of the displayed table for download, one per row.

    Each row also contains the interval, ranks, counts, protocol, the system's stated facts, the scope of the ranks'
    correction (`column` or `view`), and the maximum expected number of columns in the view with a false rank.
    """
    ids = {c.id for c in settled.columns}
    rows = settled.sheet.frame(set(settled.keys).__contains__)
    rows = rows[(rows["metric"] + "." + rows["key"]).isin(ids)].reset_index(drop=True)
    facts = [settled.facts.get(system, Facts()) for system in rows["system"]]
    return rows.assign(
        licence=[fact.licence for fact in facts],
        openness=[fact.openness for fact in facts],
        size_parameters=pd.Series([fact.size for fact in facts], dtype="float64"),
        languages=[" ".join(fact.languages) for fact in facts],
        correction=settled.view.correction or "column",
        expected_false_columns=settled.expected_false,
    )


# Results on long-form speech and dialogue in the columns of Hugging Face's Open TTS Leaderboard. In September 2026, its
# maintainers named these columns: model, dataset, cloned or fixed voice, WER, SIM and RTFx; its scripts, and therefore
# the exact names, are not public. `--preset open-tts` measures in the same way. We added the other columns (language,
# items, interval and protocol), without which rows cannot be compared.

_PLACE = ["system_title", "benchmark", "split", "profile", "slice"]


def write_columns(board: pd.DataFrame, folder: Path) -> str:
    """Write a row for each system, split, profile, language and error-rate protocol; return a sentence about the file.

    `wer` is the word error rate in percent or, in Chinese, the character error rate; `sim` is a cosine from −1 to 1;
    `rtfx` is the number of seconds of speech generated per second of computation. A value that was not measured is
    empty.

    Args:
        board: the rows of the board.
        folder: folder to write `open-tts.csv` to.
    """
    measured = board[(board["profile"] != "paper") & board["value"].notna() & board["slice"].str.match("$|language=")]
    errors = measured[(measured["metric"] == "wer") & measured["key"].isin(("wer", "cer"))]
    table = errors.sort_values([*_PLACE, "key"], ascending=[True] * 5 + [False]).drop_duplicates([*_PLACE, "protocol"])
    for name in ("sim", "rtf"):
        values = measured[(measured["metric"] == name) & (measured["key"] == name)].drop_duplicates(_PLACE)
        table = table.join(values.set_index(_PLACE)["value"].rename(name), on=_PLACE)
    voices = [json.loads(text).get("generation", {}).get("voices") for text in table["protocol_json"]]
    columns = {
        "model": table["system_title"],
        "dataset": table["benchmark"] + "/" + table["split"],
        "voice": ["cloned" if each == "given" else "fixed" for each in voices],
        "wer": 100 * table["value"],
        "sim": table["sim"],
        "rtfx": 1 / table["rtf"],
        "language": table["slice"].str.removeprefix("language="),
        "items": table["scored"].astype("Int64"),
        "wer_low": 100 * table["low"],
        "wer_high": 100 * table["high"],
        "rate": table["key"],
        "protocol": table["protocol"],
    }
    file = folder / "open-tts.csv"
    write_whole(file, make_csv_safe(pd.DataFrame(columns)).to_csv(index=False).encode())
    return f"{file}: {len(table)} rows"


# The leaderboard as a folder for any static host: pages with their data, a script, excerpts and badges. The folder uses
# the site's script and styles. Each page contains its data, because browsers do not let a page in a local folder read
# other files; for programs, the same data is stored next to each page as JSON and CSV.

LANGUAGES = {"en": "", "zh": ".zh"}
"""Languages of the pages, each with the suffix that its file names have before the extension."""
EXCERPT = 20.0
"""Length of a playable excerpt, in seconds."""
MOST_EXCERPTS = 60
"""Maximum number of excerpts on a site, about 320 kB each."""
SHARED = {"board.css": ("podeval.css", "board.css"), "board.js": ("page.js", "server.js", "board.js")}
"""Files of the folder, each with the Space's files from which it is made."""
README = """---
title: podeval leaderboard
emoji: 🎙
colorFrom: blue
colorTo: gray
sdk: static
app_file: index.html
pinned: false
tags: [leaderboard, podeval, modality:audio]
---

# The leaderboard of podeval

Written by `podeval report export --form site`; open `index.html`, or serve this folder with any web server.
"""
PAGE = """<!doctype html>
<html lang="{language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>{title} · podeval</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="board.css"></head>
<body><main><p class="quiet">podeval · {others}</p>{frame}
<noscript><p class="notice"><a href="{csv}">CSV</a></p></noscript></main>
<script type="application/json" id="board-data">{data}</script>
<script src="board.js"></script></body></html>
"""


def write_site(runs: Path, out: Path) -> list[Path]:
    """Write the folder, and return its pages.

    Args:
        runs: the folder of runs; its tables are rebuilt.
        out: the folder to write.

    Raises:
        BadInput: there is nothing to show, or the folder contains other data.
    """
    if out.exists() and any(out.iterdir()) and not (out / "board.js").exists():
        raise BadInput(f"{out} contains files that do not belong to a site; choose another folder with --out")
    build(runs)
    folder = RunsFolder(runs)
    index = folder.index()
    if index.empty:
        raise BadInput(f"there are no results to show in {runs}; create some runs with `podeval run` or `podeval demo`")
    places = list(_list_places(index))
    _write_shared(out)
    writer = _Excerpts(folder, out)
    links = read_links(folder.systems())
    to = Addresses(lambda system, where: links.get(system, ""), writer.write)
    written = []
    for language, ending in LANGUAGES.items():
        words = Words(read_texts(locate_hub_source("space") / "locale", language, ("board",))["board"], language)
        pages = [
            (f"{name}{ending}.html", label if profile == PAPER else f"{label} · {profile}")
            for _, profile, name, label in places
        ]
        for (board, profile, name, _), (page, _) in zip(places, pages, strict=True):
            wish = BoardView(board=board, profile=profile)
            data = _describe_still(wish, index, folder, words, to) | {"boards": pages}
            data["place"] |= {"board": page}
            files = [[words["csv"], f"data/{name}.csv"], ["JSON", f"data/{name}{ending}.json"]]
            data["still"] |= {"files": files}
            settled = resolve_view(BoardView(board=board, profile=profile, dimension=EVERYTHING), index)
            write_whole(out / "data" / f"{name}.csv", make_csv_safe(make_tidy(settled)).to_csv(index=False).encode())
            write_whole(out / "data" / f"{name}{ending}.json", json.dumps(data, ensure_ascii=False).encode())
            others = [f'<a href="{name}{end}.html" lang="{each}">{each}</a>' for each, end in LANGUAGES.items()]
            html = _render_page(data, language, name, " · ".join(others))
            for file in (page, *([f"index{ending}.html"] if name == places[0][2] else [])):
                write_whole(out / file, html.encode())
            written.append(out / page)
    _write_badges(index, places, out)
    return written


def _list_places(index: Index) -> Iterator[tuple[str, str, str, str]]:
    """List every board, with file and label, once for each profile with measurements or, without any, for printed
    figures.
    """
    for board in sorted(index.boards, key=lambda name: (-index.known[name], -index.measured[name])):
        profiles = index.profiles(board)
        for profile in [one for one in profiles if one != PAPER] or list(profiles):
            name = "-".join(part for part in (*board.split("/"), profile) if part)
            yield board, profile, name, write_board_name(board)


def _describe_still(wish: BoardView, index: Index, folder: RunsFolder, words: Words, to: Addresses) -> dict[str, Any]:
    """Describe all columns of a place, marking those in the overview, and every available picture of the place."""
    overview = describe_board(wish, index, folder, words, to)
    everything = BoardView(board=wish.board, profile=wish.profile, dimension=EVERYTHING)
    data = describe_board(everything, index, folder, words, to)
    first = {column["id"] for column in overview["columns"]}
    for column in data["columns"]:
        column["headline"] = column["id"] in first
    drawn = {}
    for plot, _ in overview["plots"]:
        settled = resolve_view(BoardView(board=wish.board, profile=wish.profile, plot=plot), index)
        drawn[plot] = describe_picture(settled, folder, words, to, scene.PAGE)["picture"]
    return data | {
        "fields": [field for field in data["fields"] if field["local"]],
        "plot": overview["plot"],
        "plots": overview["plots"],
        "still": {"pictures": drawn},
    }


def _render_page(data: Mapping[str, Any], language: str, name: str, others: str) -> str:
    written = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c").replace("&", "\\u0026")
    title = escape(str(data["texts"]["title"]))
    frame = Template((locate_hub_source("space") / "templates/board.html").read_text("utf-8"), autoescape=True).render(
        t={"board": data["texts"]}, still=True
    )
    return PAGE.format(language=language, title=title, data=written, frame=frame, others=others, csv=f"data/{name}.csv")


def _write_shared(out: Path) -> None:
    """Write the styles, the Space's card, and the script, which is not a module, because local pages cannot load
    modules.
    """
    static = locate_hub_source("space") / "static"
    for name, sources in SHARED.items():
        text = "\n".join((static / source).read_text(encoding="utf-8") for source in sources)
        write_whole(out / name, re.sub(r"(?m)^(export |import .*\n)", "", text).encode())
    write_whole(out / "README.md", README.encode())


def _write_badges(index: Index, places: list[tuple[str, str, str, str]], out: Path) -> None:
    for board, profile, name, _ in places:
        settled = resolve_view(BoardView(board=board, profile=profile), index)
        for system in dict.fromkeys(system for system, _ in settled.keys):
            badge = render_badge(index, system, BoardView(board=board, profile=profile))
            write_whole(out / "badges" / name / f"{quote(system, safe='')}.svg", badge.encode())


class _Excerpts:
    """Writes excerpts from the beginnings of recordings, each only once, up to a maximum number of excerpts.

    Args:
        folder: the folder of runs.
        out: the folder of the site.
    """

    def __init__(self, folder: RunsFolder, out: Path) -> None:
        self._folder, self._out, self._playback = folder, out, Playback.default()
        self._written: dict[tuple[str, str, str], str] = {}

    def write(self, system: str, where: str, item: str) -> str:
        """Return the relative address of an excerpt; empty if there is none."""
        key = (system, where, item)
        if key not in self._written and len(self._written) < MOST_EXCERPTS:
            self._written[key] = self._write(*key)
        return self._written.get(key, "")

    def _write(self, system: str, where: str, item: str) -> str:
        result = read_scores(self._folder, system, where).items.get(item)
        audio = list_parts(self._folder.path, result.output)[0].audio if result else None
        if audio is None:
            return ""
        try:
            copy = self._playback.compress(self._playback.copy(Stretch(audio, 0.0, EXCERPT)))
        except PodevalError:
            return ""
        name = f"sounds/{quote(where.replace('/', '-'), safe='')}-{quote(system, safe='')}{copy.suffix}"
        (self._out / "sounds").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(copy, self._out / name)
        return name
