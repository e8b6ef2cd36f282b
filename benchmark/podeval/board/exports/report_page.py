"""A system's report as parts to read and print: its data as text, tables and pictures; the site uses the same parts."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from podeval.board.columns import (
    MISSING,
    Column,
    build_cell,
    describe_reasons,
    format_difference,
    format_value,
    to_number,
    write_dimension_title,
)
from podeval.board.exports.report_pictures import describe_drift, draw_distributions, draw_system_radar
from podeval.board.item_results import format_reading
from podeval.board.report import Chapter, SystemReport
from podeval.board.report_figures import ReportFigure
from podeval.board.words import write_board_name
from podeval.metrics.catalogue import get_title
from podeval.metrics.description import name_source
from podeval.reports.page import (
    Entry,
    FactList,
    Listing,
    Part,
    Protocols,
    Report,
    RowOfCells,
    Section,
    Table,
    TableCell,
    Text,
    describe_protocol,
    make_heads,
    read_report_texts,
    render_document,
)
from podeval.texts import translate_reason

WIDE, GROUPS = 7, 5
"""Maximum number of value columns in printed tables of items and of groups; further columns go into another table."""
KEY_FIGURES = 4
"""Maximum number of values in the line at the top, so that a phone shows the line without scrolling."""

Texts = Mapping[str, Any]


def render_reports(reports: Sequence[SystemReport], language: str = "en") -> str:
    """Render the reports of some systems as one self-contained HTML file.

    Raises:
        BadInput: the language does not exist.
    """
    texts = read_report_texts(language)
    return render_document([build_report(report, texts) for report in reports], language)


def build_report(report: SystemReport, texts: Texts) -> Report:
    """Build the report of one system.

    Args:
        report: the data of the report.
        texts: texts of the pages `compare`, `report` and `board`, in one language.
    """
    about, words = report.about, texts["report"]
    chapters = [build_chapter(about.title, chapter, texts) for chapter in report.chapters]
    head: list[Part] = [Text(about.stated["description"], "words")] if about.stated.get("description") else []
    for first in chapters[:1]:
        head += [first["key_figures"]] if first["key_figures"].rows else []
        head += [*first["radar"], *first["counts"]]
    head += [build_facts(report, words)] if chapters else [build_facts(report, words), Text(words["no_figures"])]
    kind = words["kinds"].get(about.kind, about.kind)
    sections = []
    for number, (chapter, parts) in enumerate(zip(report.chapters, chapters, strict=True)):
        opening = list(parts["counts"]) if number else []
        record = chapter.benchmark
        if record:
            opening.append(Text(texts["board"]["benchmarks"].get(record.name, {}).get("about", record.description)))
        sections += [
            Section(parts["title"], opening, 2),
            Section(words["summary"], [*(parts["radar"] if number else ()), *parts["summary"]], folded=number > 1),
            Section(words["verdicts"], parts["verdicts"], folded=number > 1),
            Section(parts["spread"], parts["distributions"], folded=True),
            Section(words["drift"], parts["drift"], folded=True),
            Section(words["latency"], parts["latency"], folded=True),
            Section(words["figures"], parts["figures"], folded=True),
            *(Section(f"{words['by']} {title}", tables, folded=True) for title, tables in parts["breakdowns"]),
            Section(words["by_item"], parts["items"], folded=True),
            Section(words["missing"], parts["missing"], folded=True),
            Section(words["protocols"], parts["protocols"], folded=True),
        ]
    return Report(
        id=about.system,
        title=about.title,
        about=f"{kind} · {about.system} · {words['made']} {datetime.now(UTC):%Y-%m-%d}",
        sections=[*sections, Section(words["method"], explain_method(report, words), 2)],
        head=head,
        kicker=words["title"],
    )


def build_facts(report: SystemReport, texts: Texts) -> FactList:
    """List the facts in the system's document as named lines, and its links."""
    about, names = report.about, texts["facts"]
    stated = dict(about.stated)
    if "open" in stated:
        stated["open"] = texts["open"]["yes" if stated["open"] else "no"]
    if "size_parameters" in stated:
        stated["size_parameters"] = f"{float(stated['size_parameters']):,.0f}"
    for name, group in (("source", "sources"), ("spot_check", "spot_checks")):
        if name in stated:
            stated[name] = texts[group].get(stated[name], stated[name])
    lines = [(names[name], str(stated[name])) for name in names if name in stated]
    lines.append((texts["provenance"], ", ".join(texts["provenances"].get(name, name) for name in about.provenances)))
    lines += [(texts["from"], ", ".join(map(name_source, about.sources)))] if about.sources else []
    lines += [(texts["updated"], about.updated[:10])] if about.updated else []
    links = [(texts["links"].get(name, name), link, True) for name, link in about.links.items()]
    return FactList([*((name, value, False) for name, value in lines), *links])


def build_chapter(
    title: str, chapter: Chapter, texts: Texts, link: Callable[[str], str] | None = None
) -> dict[str, Any]:
    """Build the parts of a chapter, by topic; topics without data are empty.

    Args:
        title: the title of the system.
        chapter: the data of the chapter.
        texts: texts of the pages `compare`, `report` and `board`, in one language.
        link: function that returns the address of an item's page; without it, items are not linked.
    """
    words = texts["report"]
    headlines = chapter.standing.headlines
    language = words["language"]
    key_figures = [
        (
            write_dimension_title(figure.column.dimension, language),
            f"{figure.column.header_in(language)} "
            f"{build_cell(figure.row, figure.column.choose_decimals([figure.value])).translate(texts['board'])}",
            False,
        )
        for figure in headlines
        if figure.value is not None
    ]
    return {
        "title": write_board_name(chapter.where),
        "counts": _count(chapter, words),
        "verdicts": _name_verdicts(chapter, words),
        "key_figures": FactList(key_figures[:KEY_FIGURES], "key-figures screen"),
        "summary": [_tabulate_figures(chapter, headlines, texts)] if headlines else [Text(words["no_figures"])],
        "radar": draw_system_radar(title, chapter, words),
        "spread": words["distributions" if chapter.reference else "distributions_alone"],
        "distributions": draw_distributions(title, chapter, words),
        "drift": describe_drift(title, chapter, words),
        "latency": _tabulate_latencies(chapter, words),
        "figures": [_tabulate_figures(chapter, chapter.by_dimension, texts, grouped=True)],
        "breakdowns": _tabulate_groups(chapter, texts),
        "items": _tabulate_items(chapter, texts, link),
        "missing": _tabulate_missing(chapter, texts),
        "protocols": [
            Text(words["protocols_about"]),
            Protocols([describe_protocol(get_title(metric), content) for metric, content in chapter.protocols.items()]),
        ],
    }


def explain_method(report: SystemReport, words: Texts) -> list[Part]:
    """Describe the rules of comparison, list the metrics' papers, and say how to cite the report.

    Args:
        report: the data of the report.
        words: texts of the page `report`, in one language.
    """
    papers = dict.fromkeys(paper for chapter in report.chapters for paper in chapter.papers)
    records = [chapter.benchmark for chapter in report.chapters if chapter.benchmark]
    citations = dict.fromkeys((record.paper, record.citation) for record in records)
    return [
        Listing([Entry(rule) for rule in words["rules"]]),
        *([Text(f"{words['metrics_of']} {'; '.join(papers)}.", "")] if papers else []),
        Text(words["cite_about"], "", words["cite"]),
        FactList([("", paper, True) for paper, _ in citations]),
        *(Text(citation, "citation") for _, citation in citations),
    ]


def _count(chapter: Chapter, texts: Texts) -> list[Part]:
    """Count the dimensions in which the system differs from the median and from people."""
    figures = chapter.standing.headlines
    sentences: list[Part] = []
    for name, verdicts_ in (("median", [f.to_median for f in figures]), ("people", [f.to_person for f in figures])):
        verdicts = [against.word for against in verdicts_ if against.sure and against.word]
        if verdicts:
            numbers = {word: verdicts.count(word) for word in ("better", "worse", "unclear")}
            numbers["unclear"] += verdicts.count("equal") + verdicts.count("in range")
            reference = chapter.reference if name == "people" else ""
            name = "other" if name == "median" and chapter.others == 1 else name
            sentence = texts["counts"][name].format(**numbers, all=len(verdicts), reference=reference)
            sentences.append(Text(sentence, ""))
    return sentences


def _name_verdicts(chapter: Chapter, texts: Texts) -> list[Part]:
    """Name the dimensions in which the system is clearly better or worse than the others and than people."""
    lines = []
    for reference, name in (("to_median", "other" if chapter.others == 1 else "median"), ("to_person", "people")):
        for word in ("better", "worse"):
            figures = [
                figure
                for figure in chapter.standing.headlines
                if getattr(figure, reference).sure and getattr(figure, reference).word == word
            ]
            dimensions = [write_dimension_title(figure.column.dimension, texts["language"]) for figure in figures]
            if dimensions:
                lines.append((texts["than"][f"{name}_{word}"], ", ".join(dimensions), False))
    return [FactList(lines, "keys")] if lines else []


def _tabulate_figures(
    chapter: Chapter, figures: Sequence[ReportFigure], texts: Texts, *, grouped: bool = False
) -> Table:
    """Build a table of figures grouped by dimension; the reason for missing items appears once per metric."""
    words, compare, language = texts["report"], texts["compare"], texts["report"]["language"]
    causes = texts["board"]["causes"]
    names = ["metric" if grouped else "dimension", "value"]
    if chapter.others:
        names += ["other" if chapter.others == 1 else "median", "to_median"]
    if chapter.reference:
        names += ["people", "difference", "to_people"]
    heads = make_heads(words, [*names, "scored"], ("value", "other", "median", "people", "difference", "scored"))
    rows, dimension, explained = [], "", set()
    for figure in figures:
        title = write_dimension_title(figure.column.dimension, language)
        if grouped and title != dimension:
            rows.append(RowOfCells([title], "group"))
            dimension = title
        metric = figure.column.header_in(language)
        places = figure.column.choose_decimals([figure.value, figure.median, figure.person])
        cells: list[str | TableCell] = [
            metric if grouped else TableCell(title, metric),
            str(build_cell(figure.row, places).translate(texts["board"])),
        ]
        if chapter.others:
            cells.append(format_value(figure.median, None, None, places))
            cells.append(figure.to_median.describe(compare))
        if chapter.reference:
            cells.append(format_value(figure.person, None, None, places))
            cells.append(format_difference(figure.beside.difference, places) if figure.beside else "")
            cells.append(figure.to_person.describe(compare))
        cells.append("/".join(map(str, figure.scored)) if figure.scored else MISSING)
        rows.append(RowOfCells(cells))
        reasons = describe_reasons([figure.row], causes)
        if grouped and reasons and figure.column.metric not in explained:
            rows.append(RowOfCells([reasons], "why"))
        explained.add(figure.column.metric)
    return Table(heads[0].text, heads, rows, "figures")


def _tabulate_groups(chapter: Chapter, texts: Texts) -> list[tuple[str, list[Part]]]:
    """Build tables for each breakdown, with a row for each group and a column for each headline."""
    record, board = chapter.benchmark, texts["board"]
    titles = {part.name: part.title for part in record.breakdowns} if record else {}
    titles |= board["breakdowns"]
    valued = {f.column.id for group in chapter.standing.groups for f in group.figures if f.value is not None}
    columns = [figure.column for figure in chapter.standing.headlines if figure.column.id in valued]
    by_breakdown: dict[str, list[tuple[str, list[str]]]] = {}
    for group in chapter.standing.groups:
        by_id = {figure.column.id: figure for figure in group.figures}
        cells = [_describe_group(by_id.get(column.id), texts["compare"]) for column in columns]
        by_breakdown.setdefault(group.breakdown, []).append((name_group(group.name, board), cells))
    return [
        (titles.get(name, name), _split(titles.get(name, name), columns, rows, texts, GROUPS))
        for name, rows in by_breakdown.items()
    ]


def name_group(name: str, board: Texts) -> str:
    """Return the name of a group of items."""
    return str(board["groups"].get(name, name.replace("_", " ")))


def _split(
    title: str, columns: Sequence[Column], rows: Sequence[tuple[str | TableCell, list[str]]], texts: Texts, most: int
) -> list[Part]:
    """Build tables with at most this many value columns, so that no table is wider than the page."""
    tables: list[Part] = []
    for first in range(0, len(columns), most):
        heads = [column.header_in(texts["report"]["language"]) for column in columns[first : first + most]]
        some = [RowOfCells([name, *cells[first : first + most]]) for name, cells in rows]
        label = f"{title}: {', '.join(heads)}"
        tables.append(
            Table(label, [TableCell(title), *(TableCell(head, css="number") for head in heads)], some, "items")
        )
    return tables


def _describe_group(figure: ReportFigure | None, words: Texts) -> str:
    if figure is None:
        return MISSING
    places = figure.column.choose_decimals([figure.value, figure.median])
    low, high = to_number(figure.row["low"]), to_number(figure.row["high"])
    phrase = figure.to_median.describe(words) if figure.to_median.word in ("better", "worse") else ""
    return format_value(figure.value, low, high, places) + (f" ({phrase})" if phrase else "")


def _tabulate_items(chapter: Chapter, texts: Texts, link: Callable[[str], str] | None) -> list[Part]:
    """Build tables of all items and their headline values, with a few columns in each table."""
    columns, places = [], {}
    for of in (figure.column for figure in chapter.standing.headlines):
        values = [line.readings[of.metric].values.get(of.key) for line in chapter.items if of.metric in line.readings]
        if any(value is not None for value in values):
            columns.append(of)
            places[of.id] = of.choose_decimals(values)
    rows: list[tuple[str | TableCell, list[str]]] = []
    unscored = texts["report"]["unscored"]
    for line in chapter.items:
        category = name_group(line.item.category, texts["board"]) if line.item.category else ""
        cells = [format_reading(line.readings.get(of.metric), of.key, places[of.id], unscored) for of in columns]
        rows.append((TableCell(line.item.title, category, link(line.item.id) if link else ""), cells))
    return _split(texts["report"]["item"], columns, rows, texts, WIDE)


def _tabulate_latencies(chapter: Chapter, words: Texts) -> list[Part]:
    """Build a table of the speed of the system's server, with a row for each number of requests in flight."""
    names = ("at_once", "answers", "errors", "first_audio", "late_first_audio", "rtf", "undisturbed", "continuous")
    rows = []
    for one in chapter.latencies:
        seconds = [
            MISSING if each is None else f"{each:.2f}" for each in (one.first_audio, one.late_first_audio, one.rtf)
        ]
        counts = [str(each) for each in (one.at_once, one.answers, one.errors)]
        rows.append(RowOfCells([*counts, *seconds, f"{one.undisturbed:.1%}", f"{one.continuous:.1%}"]))
    heads = make_heads(words["latencies"], names, names)
    return [Text(words["latency_about"]), Table(words["latency"], heads, rows)] if rows else []


def _tabulate_missing(chapter: Chapter, texts: Texts) -> list[Part]:
    """List the unscored metrics with their reasons and numbers of items."""
    words = texts["report"]
    if not chapter.missing:
        # Papers do not report which items they left out.
        return [] if chapter.where.endswith("/paper") else [Text(words["nothing_missing"])]
    heads = make_heads(words, ("metric", "count", "cause", "reason"), ("count",))
    rows = []
    for missing in chapter.missing:
        items = ", ".join(item.title for item in missing.items[:6])
        items += words["more"].format(len(missing.items) - 6) if len(missing.items) > 6 else ""
        reason = TableCell(translate_reason(missing.reason, texts["board"]["causes"]), items)
        title, count = get_title(missing.metric), str(len(missing.items))
        rows.append(RowOfCells([title, count, words["causes"][missing.cause], reason]))
    return [Text(words["missing_about"]), Table(words["missing"], heads, rows)]
