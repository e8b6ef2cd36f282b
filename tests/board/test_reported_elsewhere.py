"""Figures of other benchmarks: each has its source, its measure and its printed characters."""

import re
from collections import Counter
from decimal import Decimal, InvalidOperation

import pytest

from podeval import benchmarks
from podeval.board.reported_elsewhere import (
    FIGURES,
    list_rows,
    list_tables_beside,
    read_figures,
    read_sources,
)
from podeval.metrics import catalogue
from podeval.runs import reliability

SOURCES = {source.id: source for source in read_sources()}


def test_every_figure_has_a_source_with_version_table_and_address() -> None:
    assert {figure.source for figure in read_figures()} == set(SOURCES)
    for row in list_rows():
        assert all(row[name] for name in ("source", "by", "date", "table", "address", "protocol", "system", "printed"))
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"])
    for source in SOURCES.values():
        # What can change is pinned: a commit of a repository, a version of a paper.
        pinned = re.compile(
            r"https://(github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/.+|arxiv\.org/abs/\d{4}\.\d{5}v\d)"
        )
        assert pinned.fullmatch(source.address), source.id
        assert not source.read_at or pinned.fullmatch(source.read_at), source.id
        assert set(source.protocol) == {"en", "zh"}
        assert all(benchmarks.get(name) for name in source.beside)


def test_every_figure_names_a_metric_of_ours_with_its_direction_or_none() -> None:
    for figure in read_figures():
        assert bool(figure.module) or not figure.key, figure
        if figure.module == reliability.NAME:
            key = reliability.declare(figure.key)
            assert key.better == figure.better, figure
        elif figure.key:
            (key,) = (key for key in catalogue.get(figure.module).keys if key.name == figure.key)
            assert key.better == figure.better, figure
        elif figure.module:
            # A rate of which the source does not say whether it counts words or characters.
            assert (figure.module, figure.better) == ("wer", "lower"), figure


def test_a_figure_is_a_printed_number_and_stands_once() -> None:
    places = Counter((f.source, f.system, f.group, f.printed) for f in read_figures())
    assert not [place for place, count in places.items() if count > 1]
    assert [f.value for f in read_figures() if not _is_number(f.value)] == ["< 1"]


def _is_number(text: str) -> bool:
    try:
        return Decimal(text).is_finite()
    except InvalidOperation:
        return False


# Read off the tables by row and column.
@pytest.mark.parametrize(
    ("source", "system", "header", "value"),
    [
        ("ttsd_eval", "MOSS-TTSD", "ZH · ACC ↑", "0.9587"),
        ("ttsd_eval", "Vibevoice 7B", "EN · WER ↓", "0.0946"),
        ("ttsd_eval", "Eleven V3", "ZH · SIM ↑", "0.6970"),
        ("ttsd_eval", "Higgs Audio V2", "ZH · ACC ↑", ""),
        ("ttsd_eval", "MOSS-TTSD (doubao_voice)", "ZH · WER ↓", "0.0571"),
        ("zipvoice_dialog", "MoonCast", "test-en (short) · cpWER ↓", "16.53"),
        ("zipvoice_dialog", "Dia", "test-zh · UTMOS ↑", ""),
        ("zipvoice_dialog_listeners", "MoonCast", "test-zh · CMOS ↑", "-1.17 ± 0.12"),
        ("firered_tts_2", "MOSS-TTSD", "dialogue-en · SIM ↑", "0.550"),
        ("soulx_podcast", "SoulX-Podcast", "Henanese · cpSIM ↑", "0.647"),
        ("swanvoice_monologue", "SparkTTS", "Content Error ↓", "0.314"),
        ("swanvoice_dialogue", "SwanVoice", "Hierarchy ↑", "3.71"),
        ("taming_long_form", "Qwen3-TTS-0.6B", "≥1500 words · worst-of-10 WER ↓", "35.2"),
        ("taming_long_form", "VoxCPM2, ACI", "≥1300 words · worst-of-10 WER ↓", "36.6"),
        ("taming_voice_cloning", "Qwen3-TTS-0.6B, LACI", "120 s of reference · WER above 30 %, share in % ↓", "< 1"),
        ("higgs_multi_speaker", "MoonCast", "small talk (ref) · WER ↓", "8.33"),
        ("long_tts_eval", "MGM-Omni-TTS", "hard_en · WER, official ↓", "26.26"),
        ("qwen3_tts_long", "VibeVoice (Peng et al., 2025)", "long-zh · WER ↓", "22.619"),
    ],
)
def test_figures_stand_where_the_print_has_them(source: str, system: str, header: str, value: str) -> None:
    (table,) = (table for table in list_tables_beside("lfs_bench") if table.source.id == source)
    headers = [column.header for column in table.columns]
    assert dict(table.rows)[system][headers.index(header)] == value


def test_the_tables_have_the_printed_systems_and_every_stored_figure() -> None:
    tables = {table.source.id: table for table in list_tables_beside("lfs_bench")}
    assert set(tables) == set(SOURCES)
    # MOSS-TTSD's table: 10 systems, and its own with the voices of three of them.
    assert [len(tables[name].rows) for name in ("ttsd_eval", "zipvoice_dialog", "swanvoice_monologue")] == [13, 3, 11]
    shown = sum(bool(cell) for table in tables.values() for _, cells in table.rows for cell in cells)
    assert shown == len(read_figures()) == len(FIGURES.read_text(encoding="utf-8").splitlines()) - 1
    assert not list_tables_beside("podbench")
