"""A system's report, to be read or printed, as text, tables and pictures; the site uses the same parts."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from podeval.board.columns import (
    Column,
    build_cell,
    count_unscored,
    describe_reasons,
    find_declaration,
    format_difference,
    format_value,
    to_number,
    write_dimension_title,
)
from podeval.board.item_results import format_reading
from podeval.board.report import Chapter, SystemReport
from podeval.board.report_figures import ReportFigure
from podeval.board.scene import FEWEST_AXES, find_axis
from podeval.board.words import write_board_name
from podeval.metrics.catalogue import NAMES, get_title
from podeval.metrics.description import name_source
from podeval.plots.charts import ON_PAPER, ON_PHONE, BoxRow, Series, draw_boxes, draw_radar
from podeval.plots.lines import LEFT, RIGHT, Line, draw_lines
from podeval.plots.svg import SHAPES, Axis, Frame
from podeval.reports import page
from podeval.stats.intervals import Interval
from podeval.texts import translate_reason

WIDE, GROUPS = 7, 5
"""Maximum number of value columns in printed tables of items and of groups; further columns are placed in another
table.
"""
KEY_FIGURES = 4
"""Maximum number of values in the line at the top of a page, so that a phone shows the line without scrolling."""


def render_reports(reports: Sequence[SystemReport], language: str = "en") -> str:
    """Render the reports of some systems as one self-contained HTML file.

    Raises:
        BadInput: the language does not exist.
    """
    texts = page.read_report_texts(language)
    return page.render_document([build_report(report, texts) for report in reports], language)


def build_report(report: SystemReport, texts: page.Texts) -> page.Report:
    """Build the report on one system from its data and the texts of the pages, in one language."""
    words = texts["report"]
    chapters = [ChapterPage(report.title, chapter, texts) for chapter in report.chapters]
    key_figures, radar, counts = chapters[0].list_key_figures(), chapters[0].draw_radar(), chapters[0].count()
    described = [page.Text(report.stated["description"], css="words")] if "description" in report.stated else []
    sections = []
    for number, one in enumerate(chapters):
        opening, drawn = (one.count(), one.draw_radar()) if number else ([], [])
        if record := one.chapter.benchmark:
            description = texts["board"]["benchmarks"].get(record.name, {}).get("about", record.description)
            opening.append(page.Text(description))
        sections += [
            page.Section(write_board_name(one.chapter.where), opening, 2),
            page.Section(words["summary"], [*drawn, *one.sum_up()], folded=number > 1),
            page.Section(words["verdicts"], one.name_verdicts(), folded=number > 1),
            *(page.Section(title, parts, folded=True) for title, parts in one.list_details()),
        ]
    sections.append(page.Section(words["method"], explain_method(report, words), 2))
    kind, today = words["kinds"].get(report.kind, report.kind), f"{datetime.now(UTC):%Y-%m-%d}"
    about = f"{kind} · {report.system} · {words['made']} {today}"
    head = [*described, *key_figures, *radar, *counts, build_facts(report, words)]
    return page.Report(report.system, report.title, about, sections, head, words["title"])


def build_facts(report: SystemReport, texts: page.Texts) -> page.FactList:
    """List the facts about a system as named lines, and its links."""
    formats: dict[str, Callable[[Any], str]] = {
        "open": lambda is_open: texts["open"]["yes" if is_open else "no"],
        "size_parameters": lambda count: f"{float(count):,.0f}",
        "source": lambda name: texts["sources"].get(name, name),
        "spot_check": lambda name: texts["spot_checks"].get(name, name),
        "provenance": lambda names: ", ".join(texts["provenances"].get(name, name) for name in names),
        "from": lambda sources: ", ".join(map(name_source, sources)),
        "updated": lambda time: time[:10],
    }
    names = texts["facts"] | {name: texts[name] for name in ("provenance", "from", "updated")}
    lines = [(names[name], formats.get(name, str)(report.stated[name])) for name in names if name in report.stated]
    return page.FactList([*lines, *((texts["links"].get(name, name), link) for name, link in report.links.items())])


def explain_method(report: SystemReport, words: page.Texts) -> list[page.Part]:
    """Describe the rules of comparison, list the metrics' papers, and say how to cite the report."""
    figures = (figure for chapter in report.chapters for figure in chapter.figures)
    metrics = (find_declaration(figure.column.metric) for figure in figures)
    papers = dict.fromkeys(one.paper for one in metrics if one and one.name in NAMES)
    records = [chapter.benchmark for chapter in report.chapters if chapter.benchmark]
    citations = dict.fromkeys((record.paper, record.citation) for record in records)
    return [
        page.Listing([page.Text(rule) for rule in words["rules"]]),
        *([page.Text(f"{words['metrics_of']} {'; '.join(papers)}.", css="")] if papers else []),
        page.Text(words["cite_about"], words["cite"], css=""),
        page.FactList([("", paper) for paper, _ in citations]),
        *(page.Text(citation, css="citation") for _, citation in citations),
    ]


def name_group(name: str, board: page.Texts) -> str:
    """Return the name of a group of items."""
    return str(board["groups"].get(name, name.replace("_", " ")))


@dataclass(frozen=True)
class ChapterPage:
    """The parts of a system's chapter, by topic; topics without data are empty.

    The texts are those of the pages `compare`, `report` and `board`, in one language. `link` returns the address of an
    item's page; "" if there is none.
    """

    system: str
    chapter: Chapter
    texts: page.Texts
    link: Callable[[str], str] = lambda item: ""

    def name(self, column: Column) -> tuple[str, str]:
        """Return the title of a column's dimension, and the header of the column."""
        language = self.texts["report"]["language"]
        return write_dimension_title(column.dimension, language), column.header_in(language)

    def list_key_figures(self) -> list[page.Part]:
        """List the first values of the dimensions, for the top of the page."""
        rows = []
        for figure in self.chapter.headlines:
            if figure.value is not None:
                dimension, header = self.name(figure.column)
                cell = build_cell(figure.row, figure.column.choose_decimals([figure.value]))
                rows.append((dimension, f"{header} {cell.translate(self.texts['board'])}"))
        return [page.FactList(rows[:KEY_FIGURES], "key-figures screen")] if rows else []

    def _compare(self) -> Iterator[tuple[str, dict[str, list[str]]]]:
        """Yield the dimensions grouped by the verdict that an interval supports, against systems and against people."""
        for name, attribute in ((self.chapter.others, "to_median"), ("people", "to_person")):
            dimensions: dict[str, list[str]] = {}
            for figure in self.chapter.headlines:
                against = getattr(figure, attribute)
                if against.sure and against.word:
                    dimensions.setdefault(against.word, []).append(self.name(figure.column)[0])
            if dimensions:
                yield name, dimensions

    def count(self) -> list[page.Part]:
        """Count the dimensions in which the system differs from the other systems and from people."""
        sentences: list[page.Part] = []
        for name, dimensions in self._compare():
            words = ("better", "worse", "unclear", "equal", "in range")
            better, worse, *unclear = (len(dimensions.get(word, ())) for word in words)
            numbers = {"better": better, "worse": worse, "unclear": sum(unclear)}
            numbers["all"] = sum(map(len, dimensions.values()))
            text = self.texts["report"]["counts"][name].format(**numbers, reference=self.chapter.people)
            sentences.append(page.Text(text, css=""))
        return sentences

    def name_verdicts(self) -> list[page.Part]:
        """Name the dimensions in which the system is clearly better or worse than the other systems or than people."""
        rows = [
            (self.texts["report"]["than"][f"{name}_{word}"], ", ".join(dimensions[word]))
            for name, dimensions in self._compare()
            for word in ("better", "worse")
            if word in dimensions
        ]
        return [page.FactList(rows, "keys")] if rows else []

    def sum_up(self) -> list[page.Part]:
        """Build the table of the headline figures."""
        headlines = self.chapter.headlines
        return [self._tabulate(headlines)] if headlines else [page.Text(self.texts["report"]["no_figures"])]

    def list_details(self) -> list[tuple[str, list[page.Part]]]:
        """List all other parts of the chapter under their titles."""
        words, chapter = self.texts["report"], self.chapter
        protocols = [(get_title(metric), content) for metric, content in chapter.contents.items()]
        dimensions = list(dict.fromkeys(figure.column.dimension for figure in chapter.figures))
        figures = sorted(chapter.figures, key=lambda figure: dimensions.index(figure.column.dimension))
        return [
            (words["distributions" if chapter.people else "distributions_alone"], self._draw_distributions()),
            (words["drift"], self._describe_drift()),
            (words["latency"], self._tabulate_latencies()),
            (words["figures"], [self._tabulate(figures, grouped=True)]),
            *self._tabulate_groups(),
            (words["by_item"], self._tabulate_items()),
            (words["missing"] + (f" ({len(chapter.missing)})" if chapter.missing else ""), self._tabulate_missing()),
            (words["protocols"], [page.Text(words["protocols_about"]), page.list_protocols(protocols)]),
        ]

    def _tabulate(self, figures: Sequence[ReportFigure], *, grouped: bool = False) -> page.Table:
        """Build a table of figures, by dimension or by metric; the reason for unscored items appears once per
        metric.
        """
        compare, people = self.texts["compare"], self.chapter.people
        first = "metric" if grouped else "dimension"
        names = f"{first} #value {f'#{self.chapter.others} to_median' if self.chapter.others else ''}"
        names += f"{' #people #difference to_people' if people else ''} #scored"
        rows: list[Any] = []
        before, explained = "", set()
        for figure in figures:
            dimension, header = self.name(figure.column)
            if grouped and dimension != before:
                rows.append(page.make_row(dimension, span="group"))
                before = dimension
            places = figure.column.choose_decimals([figure.value, figure.median, figure.person])
            cells: list[Any] = [header] if grouped else [page.TableCell(dimension, header)]
            cells.append(build_cell(figure.row, places).translate(self.texts["board"]))
            if self.chapter.others:
                cells += [format_value(figure.median, None, None, places), figure.to_median.describe(compare)]
            if people:
                difference = format_difference(figure.beside.difference, places) if figure.beside else ""
                cells += [format_value(figure.person, None, None, places), difference]
                cells.append(figure.to_person.describe(compare))
            scored, unscored = to_number(figure.row["scored"]), count_unscored(figure.row)
            rows.append([*cells, None if scored is None else f"{scored:.0f}/{scored + unscored:.0f}"])
            reasons = describe_reasons([figure.row], self.texts["board"]["causes"])
            if grouped and reasons and figure.column.metric not in explained:
                rows.append(page.make_row(reasons, span="why"))
            explained.add(figure.column.metric)
        return page.tabulate(self.texts["report"][first], self.texts["report"], names, rows, "figures")

    def _split(self, title: str, columns: Sequence[Column], rows: list[list[Any]], most: int) -> list[page.Part]:
        """Build tables with a limited number of value columns, so that no table is wider than the page."""
        tables: list[page.Part] = []
        for first in range(0, len(columns), most):
            names = [self.name(column)[1] for column in columns[first : first + most]]
            heads = [page.TableCell(title), *(page.TableCell(name, css="number") for name in names)]
            some = [page.make_row(row[0], *row[1 + first : 1 + first + most]) for row in rows]
            tables.append(page.Table(f"{title}: {', '.join(names)}", heads, some, "items"))
        return tables

    def _tabulate_groups(self) -> list[tuple[str, list[page.Part]]]:
        """Build tables for each breakdown, with a row for each group and a column for each headline figure."""
        record, board, by = self.chapter.benchmark, self.texts["board"], self.texts["report"]["by"]
        titles = {part.name: part.title for part in record.breakdowns} if record else {}
        titles |= board["breakdowns"]
        groups = {tuple(name.split("=", 1)): of for name, of in self.chapter.slices.items() if "=" in name}
        valued = {figure.column for of in groups.values() for figure in of if figure.value is not None}
        columns = [figure.column for figure in self.chapter.headlines if figure.column in valued]
        by_breakdown: dict[str, list[list[Any]]] = {}
        for (breakdown, group), figures in groups.items():
            cells = {figure.column: self._describe_group(figure) for figure in figures}
            row = [name_group(group, board), *map(cells.get, columns)]
            by_breakdown.setdefault(titles.get(breakdown, breakdown), []).append(row)
        return [(by.format(title), self._split(title, columns, rows, GROUPS)) for title, rows in by_breakdown.items()]

    def _describe_group(self, figure: ReportFigure) -> str:
        places = figure.column.choose_decimals([figure.value, figure.median])
        low, high = to_number(figure.row["low"]), to_number(figure.row["high"])
        is_clear = figure.to_median.word in ("better", "worse")
        phrase = f" ({figure.to_median.describe(self.texts['compare'])})" if is_clear else ""
        return format_value(figure.value, low, high, places) + phrase

    def _tabulate_items(self) -> list[page.Part]:
        """Build tables of all items and their headline values, with a few columns in each table."""
        places, items, readings = {}, self.chapter.items, self.chapter.readings
        for of in (figure.column for figure in self.chapter.headlines):
            values = [reading.values.get(of.key) for reading in readings.get(of.metric, {}).values()]
            if any(value is not None for value in values):
                places[of] = of.choose_decimals(values)
        rows = []
        for item in items:
            category = name_group(item.category, self.texts["board"]) if item.category else ""
            read = [(readings[of.metric].get(item.id), of.key, decimals) for of, decimals in places.items()]
            cells = (format_reading(*reading, self.texts["report"]["unscored"]) for reading in read)
            rows.append([page.TableCell(item.title, category, self.link(item.id)), *cells])
        return self._split(self.texts["report"]["item"], list(places), rows, WIDE)

    def _tabulate_latencies(self) -> list[page.Part]:
        """Build a table of the speed of the system's server, with a row for each number of concurrent requests."""
        names = "#at_once #answers #errors #first_audio #late_first_audio #rtf #undisturbed #continuous"
        rows = []
        for one in self.chapter.latencies:
            seconds = (one.first_audio, one.late_first_audio, one.rtf)
            cells = [*(each if each is None else f"{each:.2f}" for each in seconds), f"{one.undisturbed:.1%}"]
            rows.append([one.at_once, one.answers, one.errors, *cells, f"{one.continuous:.1%}"])
        table = page.tabulate(self.texts["report"]["latency"], self.texts["report"]["latencies"], names, rows)
        return [page.Text(self.texts["report"]["latency_about"]), table] if rows else []

    def _tabulate_missing(self) -> list[page.Part]:
        """List the unscored metrics with their reasons and numbers of items."""
        words, rows = self.texts["report"], []
        for (metric, why, cause), items in self.chapter.missing.items():
            titles = ", ".join(item.title for item in items[:6])
            titles += words["more"].format(len(items) - 6) if len(items) > 6 else ""
            reason = page.TableCell(translate_reason(why, self.texts["board"]["causes"]), titles)
            rows.append([get_title(metric), len(items), words["causes"][cause], reason])
        if rows:
            table = page.tabulate(words["missing"], words, "metric #count cause reason", rows)
            return [page.Text(words["missing_about"]), table]
        # Papers do not report which items they left out.
        return [] if self.chapter.where.endswith("/paper") else [page.Text(words["nothing_missing"])]

    # Pictures.

    def draw_radar(self) -> list[page.Part]:
        """Draw the system's radar, together with the radar of people and that of the other systems' median; empty if
        there are too few axes.
        """
        words, chapter = self.texts["report"], self.chapter
        axes = [(figure, axis) for figure in chapter.headlines if (axis := find_axis(figure.column))]
        axes = [(figure, axis) for figure, axis in axes if figure.value is not None]
        if len(axes) < FEWEST_AXES:
            return []
        names = [self.name(figure.column)[0] for figure, _ in axes]
        spans = tuple(axis.span(to_number(figure.row["low"]), to_number(figure.row["high"])) for figure, axis in axes)
        series = []
        for kind, of_figure in (("median", "median"), ("people", "person"), ("own", "value")):
            values = [(getattr(figure, of_figure), axis) for figure, axis in axes]
            points = tuple(None if value is None else axis.at(value) for value, axis in values)
            looks = (SHAPES[kind], kind, f"line {kind}", f"mark {kind}")
            series.append(Series("", points, *looks, spans if kind == "own" else ()))
        caption = words["radar_title"].format(system=self.system)
        # On phones, only the second drawing is shown.
        sizes = ((ON_PAPER, "drawn radar"), (ON_PHONE, "drawn small-radar"))
        drawn = Markup("".join(draw_radar(names, series, caption, layout, css) for layout, css in sizes))
        others = chapter.others and words[chapter.others]
        labels = (("own", self.system), ("people", chapter.people), ("median", others))
        legend = [(kind, name) for kind, name in labels if name]
        return [page.Pictures([(words["radar"], drawn)], "glance", "", legend)]

    def _draw_distributions(self) -> list[page.Part]:
        """Draw the per-item values of the system and, if available, of people, and the other systems' means."""
        words, pictures = self.texts["report"], []
        for figure in self.chapter.headlines:
            of, protocols = figure.column, self.chapter.protocols
            values, people = (
                list(scores.values((of.metric, protocols[of.metric]), of.key).values()) if scores else []
                for scores in (self.chapter.scores, self.chapter.people_scores)
            )
            kinds = [(self.system, "own", values), (self.chapter.people, "people", people)]
            rows = [
                BoxRow(name, of_kind, f"n = {len(of_kind)}", f"mark {kind}", SHAPES[kind])
                for name, kind, of_kind in (*kinds, (words["others"], "median", figure.others))
                if of_kind
            ]
            if values:
                caption = words["distribution_title"].format(metric=of.title_in(words["language"]), items=len(values))
                picture = Markup(draw_boxes(rows, Frame(caption, 480, 13, "drawn spread", percent=of.percent)))
                pictures.append((": ".join(self.name(of)), picture))
        return [page.Text(words["distributions_about"]), page.Pictures(pictures)] if pictures else []

    def _describe_drift(self) -> list[page.Part]:
        """Describe those trends over the course of recordings that an interval supports, and draw how the values
        change.
        """
        words, rows, pictures = self.texts["report"], [], []
        along = Axis(0.0, 1.0, LEFT, 480 - RIGHT, ((0.04, words["begin"]), (0.96, words["end"])))
        # An interval that contains zero is no evidence of a trend.
        for drift in (one for one in self.chapter.drifts if (one.slope.low or 0) > 0 or (one.slope.high or 0) < 0):
            slope, header = drift.slope, self.name(drift.column)[1]
            text = format_difference(slope, drift.column.choose_decimals([slope.mean]))
            rows.append([header, text, words["per"].get(drift.per, drift.per), slope.n, drift.rising, drift.falling])
            if sum(part is not None for part in drift.course) >= 3:
                people = self.chapter.people_drifts.get(drift.column.id)
                title = drift.column.title_in(words["language"])
                caption = words["course_title"].format(metric=title, system=self.system)
                lines = [_build_line("people", people.course if people else ()), _build_line("own", drift.course)]
                frame = Frame(caption, 480, 13, "drawn course", percent=drift.column.percent)
                pictures.append((header, Markup(draw_lines(lines, along, frame, 216, title=drift.column.unit))))
        if not rows:
            return [page.Text(words["steady"])] if self.chapter.drifts else []
        table = page.tabulate(words["drift"], words, "metric #slope unit #count #rising #falling", rows)
        return [page.Text(words["drift_about"]), table, page.Pictures(pictures)]


def _build_line(kind: str, course: Sequence[Interval | None]) -> Line:
    """Build a line from the values of a recording's parts, with each point in the middle of its part."""
    points = [((number + 0.5) / len(course), part.mean if part else None) for number, part in enumerate(course)]
    spans = [
        (part.low, part.high) if part and part.low is not None and part.high is not None else None for part in course
    ]
    return Line(points, spans, kind, SHAPES[kind])
