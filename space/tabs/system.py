"""A system's page: what it is, where it stands among the others, and every item to listen to and to read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from events import QUIET
from gradio.components.plot import PlotData
from links import link_box
from written_by_others import as_markdown

from podeval.errors import BadInput
from podeval.leaderboard import plots, system_page
from podeval.leaderboard.folder import Output, RunsFolder, Turn
from podeval.leaderboard.view import View

TURN_HEADERS = ("Start (s)", "End (s)", "Speaker", "Words")
MEDIAN = """The median is over the other systems, controls left out, under the same protocol; *better* and *worse* are
said only where it lies outside this system's 95 % interval."""


@dataclass(frozen=True)
class SystemTab:
    """What the app connects: the components this tab fills, and what fills them for a chosen system."""

    outputs: list[Any]
    show: Callable[..., list[Any]]


class _Page:
    """The components of the page and what fills them, read from one folder of runs."""

    def __init__(self, folder: RunsFolder) -> None:
        self.folder = folder
        with gr.Row():
            self.system = gr.Dropdown([], label="System", min_width=200)
            self.where = gr.Dropdown([], label="Benchmark and profile", min_width=200)
        self.about = gr.Markdown(latex_delimiters=[])
        self.results = _grid("Results", list(system_page.RESULT_HEADERS), [150, 190, 110, 170, 80, 190, 420])
        gr.Markdown(MEDIAN, elem_classes="quiet")
        gr.Markdown("### Items")
        self.item = gr.Dropdown([], label="Item")
        self.problem = gr.Markdown(visible=False, latex_delimiters=[])
        self.audio = gr.Audio(label="What the system said", interactive=False, buttons=["download"])
        self.told = gr.Markdown(elem_classes="quiet", latex_delimiters=[])
        with gr.Row():
            with gr.Column(min_width=320):
                self.turns = _grid("Transcript (select a turn to hear it)", list(TURN_HEADERS), [65, 65, 90, 330])
            with gr.Column(min_width=320):
                self.scores = _grid("Scores of this item", list(system_page.SCORE_HEADERS), [130, 100, 120, 330])
        self.windowed = gr.Dropdown([], label="Over time")
        self.plot = gr.Plot(show_label=False)
        self.link = link_box()
        heard = [self.item, self.problem, self.audio, self.told, self.turns]
        self.item_outputs = [*heard, self.scores, self.windowed, self.plot, self.link]
        self.outputs = [self.system, self.where, self.about, self.results, *self.item_outputs]

    def fill(self, system: str, where: str, item: str, protocols: tuple[str, ...]) -> list[Any]:
        """Updates for `outputs`; an unknown system, place or item becomes the first there is."""
        board = self.folder.board()
        if board.empty:
            return [gr.skip() for _ in self.outputs]
        systems = system_page.systems(board)
        system = _known(system, systems)
        places = system_page.boards_of(board, system)
        where = _known(where, places)
        view = View(protocols=tuple(protocols))
        return [
            gr.Dropdown(choices=systems, value=system),
            gr.Dropdown(choices=places, value=where),
            _about(system_page.facts(board, system)),
            [list(row) for row in system_page.results(board, system, where, view)],
            *self.fill_item(system, where, item),
        ]

    def fill_item(self, system: str, where: str, item: str, windowed: str = "") -> list[Any]:
        """Updates for `item_outputs`."""
        items = self.folder.items()
        choices = system_page.items_of(items, system, where)
        item = _known(item, choices)
        found, path = system_page.item_results(items, system, where, item)
        output, problem = self._output(path) if choices else (None, "No items of this system are kept here.")
        tracks = system_page.timelines(found)
        windowed = windowed if windowed in tracks else next(iter(tracks), "")
        audio = output.audio if output else None
        turns = output.turns if output else ()
        drawn = plots.timeline(windowed.partition(" (")[0], tracks[windowed]) if windowed else None
        return [
            gr.Dropdown(choices=choices, value=item or None, visible=bool(choices)),
            gr.Markdown(as_markdown(problem), visible=bool(problem)),
            gr.Audio(value=str(audio) if audio else None, visible=audio is not None),
            _told(output),
            gr.Dataframe(value=[_turn_row(turn) for turn in turns], visible=bool(turns)),
            gr.Dataframe(value=[list(row) for row in system_page.score_rows(found)], visible=bool(found)),
            gr.Dropdown(choices=list(tracks), value=windowed or None, visible=len(tracks) > 1),
            gr.Plot(PlotData(type="altair", plot=json.dumps(drawn)) if drawn else None, visible=bool(drawn)),
            f"?{system_page.query(system, where, item)}",
        ]

    def _output(self, path: str) -> tuple[Output | None, str]:
        if not path:
            return None, "The system left no output for this item."
        try:
            output = self.folder.output(path)
        except BadInput as refusal:
            return None, str(refusal)
        return output, ""


def build(folder: RunsFolder, protocols: gr.State, tab: gr.Tab) -> SystemTab:
    """Lay the page out and connect its controls.

    Args:
        folder: the results.
        protocols: the protocols the reader chose on the leaderboard.
        tab: the tab it lies in; turning to it fills it, so that the leaderboard need not wait for it.
    """
    page = _Page(folder)

    def turn_to(system: str | None, chosen: tuple[str, ...], request: gr.Request) -> list[Any]:
        if system:
            return [gr.skip() for _ in page.outputs]
        query = {name: str(value) for name, value in dict(request.query_params).items()}
        if query.get("tab") != "system":
            query = {}
        return page.fill(query.get("system", ""), query.get("where", ""), query.get("item", ""), chosen)

    def show(system: str, where: str) -> list[Any]:
        return page.fill(system, where, "", ())

    def seek(event: gr.SelectData) -> gr.Audio:
        start = event.row_value[0] if event.row_value else None
        return gr.Audio(playback_position=float(start)) if isinstance(start, int | float) else gr.skip()

    page.system.input(
        lambda system, where, chosen: page.fill(system, where, "", chosen),
        [page.system, page.where, protocols], page.outputs, **QUIET,
    )  # fmt: skip
    page.where.input(
        lambda system, where, chosen: page.fill(system, where, "", chosen),
        [page.system, page.where, protocols], page.outputs, **QUIET,
    )  # fmt: skip
    page.item.input(page.fill_item, [page.system, page.where, page.item], page.item_outputs, **QUIET)
    page.windowed.input(page.fill_item, [page.system, page.where, page.item, page.windowed], page.item_outputs, **QUIET)
    tab.select(turn_to, [page.system, protocols], page.outputs, **QUIET)
    page.turns.select(seek, None, page.audio, **QUIET)
    return SystemTab(page.outputs, show)


def _grid(label: str, headers: list[str], widths: list[int]) -> gr.Dataframe:
    return gr.Dataframe(
        headers=headers,
        label=label,
        interactive=False,
        wrap=True,
        buttons=["fullscreen"],
        max_height=420,
        column_widths=[f"{width}px" for width in widths],
        elem_classes="board",
    )


def _about(facts: system_page.Facts) -> str:
    rows = [
        f"**{as_markdown(facts.kind)}** `{''.join(c for c in facts.system if c.isalnum() or c in '-_./')}`",
        as_markdown(", ".join(facts.provenances)),
        "from " + as_markdown(", ".join(facts.sources)) if facts.sources else "",
        f"updated {as_markdown(facts.updated[:10])}" if facts.updated else "",
    ]
    return f"## {as_markdown(facts.title)}\n" + " · ".join(filter(None, rows))


def _told(output: Output | None) -> str:
    if output is None:
        return ""
    parts = [f"{output.duration:.1f} s of audio"] if output.duration is not None else []
    if output.wall_seconds is not None:
        parts.append(f"made in {output.wall_seconds:.1f} s")
        if output.duration:
            parts.append(f"RTF {output.wall_seconds / output.duration:.2g}")
    return " · ".join(parts)


def _turn_row(turn: Turn) -> list[Any]:
    times = (round(time, 2) if time is not None else None for time in (turn.start, turn.end))
    return [*times, turn.speaker, turn.text]


def _known(wish: str, choices: list[tuple[str, str]]) -> str:
    values = [value for _, value in choices]
    return wish if wish in values else (values[0] if values else "")
