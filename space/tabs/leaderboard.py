"""The leaderboard: one table of one profile, one protocol per metric, with intervals and rank ranges."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr
from downloads import Downloads
from events import QUIET
from gradio.components.plot import PlotData
from links import link_box
from written_by_others import as_markdown

from podeval.leaderboard import plots, table
from podeval.leaderboard.folder import RunsFolder
from podeval.leaderboard.view import Choice, Settled, View, settle

LEGEND = """Value ± 95 % interval · **#1–2** the ranks the data allows: where ranges overlap, systems are tied ·
**incomplete** too little scored for a rank · **(control)** checks the metrics, does not compete ·
↑ higher is better, ↓ lower, ↔ in range."""
PAPER = """Figures as the papers print them: no intervals, so no ranks · ↑ higher is better, ↓ lower, ↔ in range."""
NAME_WIDTH, NUMBER_WIDTH, SHORT_WIDTH, REASON_WIDTH = "150px", "160px", "90px", "520px"


@dataclass(frozen=True)
class LeaderboardTab:
    """What the app connects: the components this tab fills, and the way to a system's page."""

    outputs: list[Any]
    arrive: Callable[..., list[Any]]
    wishes: list[Any]
    files: Callable[..., Any]
    downloads: list[Any]
    open_page: gr.Button
    chosen: gr.State
    where: gr.State
    protocols: gr.State


def build(folder: RunsFolder) -> LeaderboardTab:
    """Lay the tab out and connect its controls; nothing is read before somebody arrives."""
    written = Downloads()
    with gr.Row():
        board = gr.Dropdown([], label="Benchmark", min_width=150)
        dimension = gr.Dropdown([], label="View", min_width=150)
        sort = gr.Dropdown([], label="Best first by", min_width=150)
        profile = gr.Dropdown([], label="Profile", min_width=150)
    with gr.Accordion("Filters, columns, protocols", open=False):
        with gr.Row():
            slice_ = gr.Dropdown([], label="Items", min_width=150)
            provenance = gr.CheckboxGroup([], label="Provenance", min_width=150)
            controls = gr.Checkbox(True, label="Show controls", min_width=150)
        with gr.Row():
            columns = gr.Dropdown([], label="Columns (all, unless some are chosen)", multiselect=True, min_width=280)
            protocols = gr.Dropdown([], label="Protocols (one per metric)", multiselect=True, min_width=280)
    legend = gr.Markdown(elem_classes="quiet")
    frame = gr.Dataframe(
        label="Leaderboard",
        show_label=False,
        interactive=False,
        show_search="search",
        pinned_columns=1,
        buttons=["fullscreen"],
        wrap=True,
        max_chars=110,
        max_height=640,
        elem_classes="board",
    )
    open_page = gr.Button("Select a row to open that system's page", interactive=False, size="md")
    with gr.Row():
        csv = gr.DownloadButton("Download CSV", size="sm", min_width=120)
        parquet = gr.DownloadButton("Download Parquet", size="sm", min_width=120)
    plotted = gr.Dropdown([], label="Plot", min_width=150)
    plot = gr.Plot(show_label=False, container=True)
    with gr.Accordion("Protocols of these numbers", open=False):
        contents = gr.Dataframe(
            headers=["Metric", "Protocol", "Content"],
            show_label=False,
            label="Protocols",
            interactive=False,
            wrap=True,
            column_widths=["110px", "220px", "600px"],
        )
    link = link_box()
    chosen, where, protocol_ids = gr.State(""), gr.State(""), gr.State(())

    wishes: list[Any] = [board, profile, dimension, slice_, provenance, controls, columns, protocols, sort, plotted]
    outputs = [*wishes, legend, frame, open_page, plot, contents, link, chosen, where, protocol_ids]

    def look(*values: Any) -> list[Any]:
        if folder.board().empty:
            return [gr.skip() for _ in outputs]
        return _filled(settle(_view(values), folder.board()))

    def arrive(request: gr.Request) -> list[Any]:
        if folder.board().empty:
            return [gr.skip() for _ in outputs]
        query = {name: str(value) for name, value in dict(request.query_params).items()}
        return _filled(settle(View.from_query(query), folder.board()))

    def files(*values: Any) -> Any:
        if folder.board().empty:
            return gr.skip(), gr.skip()
        settled = settle(_view(values), folder.board())
        view = settled.view
        parts = ("podeval", view.board, view.profile, view.dimension, view.slice)
        return written.write(table.tidy(settled), "-".join(filter(None, parts)))

    def choose(event: gr.SelectData, *values: Any) -> tuple[str, gr.Button]:
        row = event.row_value
        shown = table.build(settle(_view(values), folder.board()))
        system = shown.system_of(row[0]) if row else None
        if system is None:
            return "", gr.Button("Select a row to open that system's page", interactive=False, variant="secondary")
        return system, gr.Button(f"Open the page of {row[0]}", interactive=True, variant="primary")

    for control in wishes:
        looked = control.input(look, wishes, outputs, trigger_mode="always_last", **QUIET)
        looked.then(files, wishes, [csv, parquet], **QUIET)
    frame.select(choose, wishes, [chosen, open_page], **QUIET)
    return LeaderboardTab(outputs, arrive, wishes, files, [csv, parquet], open_page, chosen, where, protocol_ids)


def _view(values: tuple[Any, ...]) -> View:
    board, profile, dimension, slice_, provenance, controls, columns, protocols, sort, plot = values
    return View(
        board=board or "",
        profile=profile or "",
        dimension=dimension or "",
        slice=slice_ or "",
        provenance=tuple(provenance or ()),
        controls=bool(controls),
        columns=tuple(columns or ()),
        protocols=tuple(protocols or ()),
        sort=sort or "",
        plot=plot or "",
    )


def _filled(settled: Settled) -> list[Any]:
    """Updates for every output of the tab, in their order."""
    view, choices = settled.view, settled.choices
    shown = table.build(settled)
    column = next((c for c in settled.columns if c.id == view.plot), None)
    shown_columns = [(c.header, c.id) for c in settled.columns]
    drawn = plots.whiskers(settled, column) if column else None
    return [
        _dropdown(choices.boards, view.board),
        _dropdown(choices.profiles, view.profile),
        _dropdown(choices.dimensions, view.dimension),
        _dropdown(choices.slices, view.slice),
        gr.CheckboxGroup(
            choices=list(choices.provenances), value=list(view.provenance or [v for _, v in choices.provenances])
        ),
        gr.Checkbox(value=view.controls),
        gr.Dropdown(choices=list(choices.columns), value=list(view.columns), multiselect=True),
        gr.Dropdown(
            choices=list(choices.protocols),
            value=[p for p in settled.protocols.values() if p in {v for _, v in choices.protocols}],
            multiselect=True,
            visible=bool(choices.protocols),
        ),
        gr.Dropdown(choices=shown_columns, value=view.sort),
        gr.Dropdown(choices=shown_columns, value=view.plot),
        _legend(settled),
        _dataframe(shown, len(settled.columns)),
        gr.Button("Select a row to open that system's page", interactive=False, variant="secondary"),
        gr.Plot(PlotData(type="altair", plot=json.dumps(drawn)) if drawn else None, visible=drawn is not None),
        _protocol_rows(settled),
        f"?{view.to_query()}",
        "",
        f"{view.board}/{view.profile}",
        tuple(settled.protocols.values()),
    ]


def _legend(settled: Settled) -> str:
    view = settled.view
    said = PAPER if view.profile == "paper" else LEGEND
    several = {value.partition("@")[0] for _, value in settled.choices.protocols}
    if several:
        metrics = ", ".join(as_markdown(name) for name in sorted(several))
        said += f" One of several protocols is shown of {metrics}: choose under *Filters*."
    if view.slice:
        said += f" Only items with **{as_markdown(view.slice)}**."
    return said


def _dataframe(shown: table.Table, numbers: int) -> gr.Dataframe:
    widths: list[str | int] = [NAME_WIDTH, *[NUMBER_WIDTH] * numbers, SHORT_WIDTH, "130px", REASON_WIDTH]
    datatypes: list[Any] = ["str", *["number"] * (numbers + 1), "str", "str"]
    return gr.Dataframe(
        value={
            "headers": list(shown.headers),
            "data": [list(row) for row in shown.cells],
            "metadata": {"display_value": [list(row) for row in shown.display]},
        },
        datatype=datatypes,
        column_widths=widths,
    )


def _protocol_rows(settled: Settled) -> list[list[str]]:
    firsts = settled.rows.drop_duplicates("metric").set_index("metric")["protocol_json"]
    return [
        [metric, protocol, str(firsts.get(metric, ""))]
        for metric, protocol in settled.protocols.items()
        if metric in {c.metric for c in settled.columns}
    ]


def _dropdown(choices: tuple[Choice, ...], value: str) -> gr.Dropdown:
    return gr.Dropdown(choices=list(choices), value=value)
