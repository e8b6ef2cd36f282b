"""The leaderboard: choices as fields of Gradio's, and the table with intervals and the plots as a part of ours.

What is shown is an address. A field that changes says which, the part fetches its content from the site; a link in the
part, or going back, says the fields.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import gradio as gr
from board_words import Words, write_board_name
from tab_parts import make_part
from website import Site, get_web_request

from podeval.board import pictures
from podeval.board.compare import list_sides
from podeval.board.view import FACTS, BoardView, ResolvedView, resolve_view
from podeval.errors import PodevalError

_LOG = logging.getLogger("podeval.site")

RATE, COMPARISON_RATE = "300/minute", "120/minute"
LONGEST_ID = 200
EVENT: dict[str, Any] = {
    "api_visibility": "private", "queue": False, "show_progress": "hidden", "preprocess": False,
}  # fmt: skip
"""What is sent is looked at here and is never a file, so that Gradio prepares nothing of it."""
_LABELS = {"board": "benchmark", "slice": "of_items"}
_FOLD = (
    '<button type="button" class="second" id="fold-choices" aria-expanded="false" aria-controls="choices">{}</button>'
)
_WHERE = "() => [location.search]"
_WITH_WHERE = "(...given) => [location.search, ...given.slice(1)]"

Pair = tuple[str, str]
"""What is shown, and the value that it stands for."""

PLACES = ("board", "profile")
"""Fields whose change leaves no column chosen: those chosen before were of other figures."""


class LeaderboardTab:
    """The tab of one language.

    Args:
        site: the site of the results.
        language: the language of the fields.
    """

    def __init__(self, site: Site, language: str) -> None:
        self._site = site
        self._language = language
        self._words = Words(site.texts[language]["board"], language)
        self.fields: dict[str, Any] = {}

    def build(self, app: gr.Blocks) -> None:
        """Put the components where they are called for, and say what happens."""
        where = gr.Textbox(visible=False)
        make_part("board-head", content=self._head())
        self._place_choices()
        view = make_part("board-view", "board.js", self._frame())
        with gr.Row(elem_id="plot-fields"):
            self.fields["plot"] = gr.Radio([], label=self._words["plots"], elem_id="f-plot", scale=3)
            self.fields["of"] = _dropdown(self._words["of"], "of")
        make_part("board-plots")
        _build_comparison(self._site, self._language, app)
        every = list(self.fields.values())
        app.load(self.arrive, where, every, js=_WHERE, **EVENT)
        view.select(self.follow, None, every, **EVENT)
        for name, field in self.fields.items():
            if name != "q":
                # Each choice is sent at once with all that is chosen by then: none is lost while another is answered.
                field.input(
                    self.change, [where, *every], [view, *every], js=_WITH_WHERE, trigger_mode="multiple", **EVENT
                )
        # `change`, as what is pasted or composed is no input to Gradio; what the site itself filled in changes nothing.
        typed = self.fields["q"].change
        typed(self.search, [where, *every], [view, *every], js=_WITH_WHERE, trigger_mode="always_last", **EVENT)

    def _place_choices(self) -> None:
        """All that can be chosen, folded into one line.

        Gradio does not make what stands in a closed accordion, whose fields would then say nothing: the fold is ours.
        """
        words, fields = self._words, self.fields
        with gr.Column(elem_id="choices"):
            with gr.Row(elem_id="board-fields"):
                for name in ("board", "profile", "slice"):
                    fields[name] = _dropdown(words[_LABELS.get(name, name)], name)
                fields["q"] = gr.Textbox(
                    label=words["search"],
                    placeholder=words["search_hint"],
                    max_length=100,
                    elem_id="f-q",
                    min_width=160,
                )
            with gr.Accordion(words["filters"], open=False, elem_id="filters"):
                for name in FACTS:
                    fields[name] = _ticks(words["facts"][name], name)
                fields["provenance"] = _ticks(words["provenance"], "provenance")
                fields["hide"] = gr.Checkbox(label=words["hide_controls"], elem_id="f-controls")
                fields["judge"] = _dropdown(words["judge"], "judge")
                fields["protocols"] = _ticks(words["protocols"], "protocols")
            with gr.Accordion(words["columns"], open=False, elem_id="columns"):
                fields["columns"] = _ticks(words["columns"], "columns", info=words["columns_about"])

    def _head(self) -> str:
        """One line that says what this is, the three ways in, and the fold of all that can be chosen."""
        safe = {name: escape(str(self._words[name])) for name in ("title", "intro", "go_vote", "go_score", "go_submit")}
        ways = (("arena", "go_vote"), ("score", "go_score"), ("submit", "go_submit"))
        links = "".join(
            f'<a class="button{" second" if number else ""}" href="/{address}">{safe[name]}</a>'
            for number, (address, name) in enumerate(ways)
        )
        fold = _FOLD.format(escape(str(self._words["choices"])))
        return f'<h1>{safe["title"]}</h1><p class="pitch">{safe["intro"]}</p><p class="ways">{links}{fold}</p>'

    def _frame(self) -> str:
        """What stands around the view from the beginning: what goes wrong, and that something is loading."""
        texts = {name: escape(str(self._words[name])) for name in ("failed", "offline", "retry", "loading")}
        return (
            f'<p id="board-problem" class="notice" role="alert" hidden data-failed="{texts["failed"]}" '
            f'data-offline="{texts["offline"]}"><span></span> '
            f'<button type="button" class="second">{texts["retry"]}</button></p>'
            f'<p id="board-loading" class="visually-hidden" role="status" data-loading="{texts["loading"]}"></p>'
            '<div id="view" aria-busy="true"></div>'
        )

    def settle(self, query: str) -> ResolvedView | None:
        """The view of an address; None where there is nothing to show, which the part says."""
        try:
            index = self._site.results.index()
            return None if index.empty else resolve_view(read_view(query), index)
        except PodevalError as error:
            _LOG.error("the board cannot be shown: %s", error)
            return None

    def arrive(self, query: Any, request: gr.Request) -> list[Any]:
        """The fields as the page's address says."""
        self._site.limit(get_web_request(request), RATE, "board")
        return self._updates(self.settle(query if isinstance(query, str) else ""))

    def follow(self, event: gr.EventData, request: gr.Request) -> list[Any]:
        """The fields as a link of the view says that was followed."""
        self._site.limit(get_web_request(request), RATE, "board")
        address = str(event._data.get("address", "")) if isinstance(event._data, dict) else ""
        return self._updates(self.settle(urlsplit(address[:20_000]).query))

    def change(self, request: gr.Request, query: Any, *given: Any) -> list[Any]:
        """The address that the fields say, and what there is to choose there."""
        return self._moved("push", query, given, request)

    def search(self, request: gr.Request, query: Any, *given: Any) -> list[Any]:
        """The same for what is typed: the field stays as it is, since its reader may be further."""
        updates = self._moved("replace", query, given, request)
        updates[1 + list(self.fields).index("q")] = gr.skip()
        return updates

    def _moved(self, how: str, query: Any, given: tuple[Any, ...], request: gr.Request) -> list[Any]:
        self._site.limit(get_web_request(request), RATE, "board")
        before = self.settle(query if isinstance(query, str) else "")
        if before is None:
            return [gr.skip()] * (1 + len(self.fields))
        view = choose(before.view, dict(zip(self.fields, given, strict=True)))
        settled = resolve_view(view, self._site.results.index())
        if settled.view == before.view:
            return [gr.skip()] * (1 + len(self.fields))
        return [{"query": settled.view.to_query(), "how": how}, *self._updates(settled)]

    def _updates(self, settled: ResolvedView | None) -> list[Any]:
        if settled is None:
            return [gr.update(visible=False)] * len(self.fields)
        choices_of = describe_fields(settled, self._words)
        updates = []
        for name, field in self.fields.items():
            choices = {} if name in ("q", "hide") else {"choices": choices_of[name].choices}
            updates.append(type(field)(value=choices_of[name].value, visible=choices_of[name].visible, **choices))
        return updates


def _dropdown(label: str, name: str) -> gr.Dropdown:
    return gr.Dropdown([], label=label, elem_id=f"f-{name}", interactive=True, min_width=160, filterable=False)


def _ticks(label: str, name: str, **options: Any) -> gr.CheckboxGroup:
    return gr.CheckboxGroup([], label=label, elem_id=f"f-{name}", interactive=True, **options)


@dataclass(frozen=True)
class Field:
    """One field of the tab: what can be chosen, what is, and whether there is anything to choose."""

    choices: list[Pair]
    value: Any
    visible: bool = True


def describe_fields(settled: ResolvedView, words: Words) -> dict[str, Field]:
    """Every field of the tab by the name of the view's attribute that it sets; `hide` stands for `controls`."""
    view, choices = settled.view, settled.choices
    counted = {
        name: [(f"{words.fact(name, value)} ({number})", value) for value, number in choices.facts[name]]
        for name in FACTS
    }
    judges = [(str(words["any_judge"]), ""), *choices.judges]
    provenances = [(str(words["provenances"].get(value, value)), value) for _, value in choices.provenances]
    slices = [(words.slice(value), value) for _, value in choices.slices]
    drawn = [(words.column(column), column.id) for column in settled.columns]
    columns = [(words.column(column), column.id) for column in choices.columns]
    plots = pictures.list_offered_plots(settled)
    plot = view.plot if view.plot in plots else next(iter(plots), "")
    return {
        "board": Field([(write_board_name(label), value) for label, value in choices.boards], view.board),
        "profile": Field([(words["profiles"].get(v, v), v) for _, v in choices.profiles], view.profile),
        "slice": Field(slices, view.slice, len(slices) > 1),
        "q": Field([], view.q),
        **{name: Field(counted[name], list(getattr(view, name)), len(counted[name]) > 1) for name in FACTS},
        "provenance": Field(provenances, list(view.provenance), len(provenances) > 1),
        "hide": Field([], not view.controls),
        "judge": Field(judges, view.judge, len(judges) > 2),
        "protocols": Field(list(choices.protocols), list(view.protocols), bool(choices.protocols)),
        "columns": Field(columns, list(view.columns)),
        "plot": Field([(str(words[f"plot_{name}"]), name) for name in plots], plot, len(plots) > 1),
        "of": Field(drawn, view.of, plot != "radar" and len(drawn) > 1),
    }


def read_view(query: str) -> BoardView:
    """The view of an address's query string, which names what has several values once for each or with commas."""
    values: dict[str, str] = {}
    for name, value in parse_qsl(query.removeprefix("?")[:20_000]):
        values[name] = f"{values[name]},{value}" if name in values else value
    return BoardView.from_query(values)


def choose(current: BoardView, given: Mapping[str, Any]) -> BoardView:
    """The view that a reader wants who saw one and changed fields of the tab.

    Args:
        current: the view of the page's address, which has what no field says: order, pins, number of rows.
        given: values by name of field, as they were sent; what has another type counts as empty.
    """
    texts = {name: _as_text(value) for name, value in given.items() if name != "hide"}
    texts["controls"] = "0" if given.get("hide") is True else ""
    wish = BoardView.from_query(texts)
    field_names = {field.name for field in fields(BoardView)} & texts.keys()
    chosen = replace(current, **{name: getattr(wish, name) for name in field_names})
    moved = any(getattr(chosen, name) != getattr(current, name) for name in PLACES if getattr(current, name))
    return replace(chosen, columns=()) if moved else chosen


def _as_text(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _build_comparison(site: Site, language: str, app: gr.Blocks) -> None:
    """Two systems side by side: chosen in fields of Gradio's, shown by a part of ours.

    The part asks the route of the document /compare for its content, in which strangers' words are escaped.

    Args:
        site: the site of the systems.
        language: the language of the fields.
        app: the app that is being built.
    """
    texts = site.texts[language]["compare"]
    make_part("compare-head", content=f"<h2>{escape(texts['in_tab'])}</h2>")
    with gr.Row(elem_id="compare-fields"):
        fields = [
            gr.Dropdown([], label=texts[name], elem_id=f"f-compare-{letter}", interactive=True, min_width=160)
            for name, letter in (("first", "a"), ("second", "b"))
        ]
    view = make_part("board-compare", "compare_part.js")

    def arrive(request: gr.Request) -> list[Any]:
        """The systems there are."""
        site.limit(get_web_request(request), COMPARISON_RATE, "comparison")
        try:
            board = site.results.board()
            systems = [(side.title, side.system) for side in list_sides(board)] if len(board) else []
        except PodevalError:
            systems = []
        return [gr.Dropdown(choices=systems, value=None, visible=len(systems) > 1) for _ in fields]

    def show(request: gr.Request, a: Any, b: Any) -> Any:
        """The address of what is shown, once two are chosen."""
        site.limit(get_web_request(request), COMPARISON_RATE, "comparison")
        if not all(isinstance(id, str) and 0 < len(id) <= LONGEST_ID for id in (a, b)):
            return gr.skip()
        return f"/compare?{urlencode({'a': a, 'b': b})}"

    app.load(arrive, None, fields, **EVENT)
    for field in fields:
        # Who chooses twice before the first answer is there sees the second choice.
        field.input(show, fields, view, trigger_mode="always_last", **EVENT)
