"""What a reader can do with the board, in a real browser."""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pytest
from fixture_runs import write_runs

pytestmark = [pytest.mark.browser, pytest.mark.space]


def choose(page: Any, label: str, option: str) -> None:
    """Choose in one of Gradio's dropdowns by keyboard, as a reader without a mouse would."""
    box = (
        page.get_by_role("listbox", name=label).or_(page.get_by_label(label, exact=True)).locator("visible=true").first
    )
    box.focus()
    page.get_by_role("option", name=option).first.click()


def test_board_is_there_with_intervals_rank_ranges_and_controls(visit: Any, address: str) -> None:
    visit.open(address)
    rows = visit.rows()
    assert "#1–2" in rows[0]
    assert "±" in rows[0]
    assert "incomplete" in next(row for row in rows if row.startswith("Piper"))
    assert "unscored (6)" in next(row for row in rows if row.startswith("Silence (control)"))
    assert not any("#" in row for row in rows if "(control)" in row)
    assert visit.errors == []
    assert visit.abroad == []
    assert visit.refused == []


def test_search_keeps_the_rows_that_match(visit: Any, address: str) -> None:
    page = visit.open(address)
    page.get_by_placeholder("Search").first.fill("Hibari")
    page.wait_for_function("document.querySelectorAll('.board .virtual-row').length === 1")
    assert visit.rows()[0].startswith("Hibari")


def test_columns_sort_by_number_in_the_table_and_best_first_by_choice(visit: Any, address: str) -> None:
    page = visit.open(f"{address}?dimension=speech.accuracy")
    header = page.get_by_role("columnheader").nth(1)
    header.hover()
    header.get_by_role("button").click()
    page.get_by_text("Sort descending").click()
    page.wait_for_timeout(300)
    assert visit.rows()[0].startswith("One sentence repeated"), "1.02 is the largest WER"
    page.goto(f"{address}?sort=dnsmos.ovrl")
    page.wait_for_selector(".board [role=gridcell]")
    assert visit.rows()[0].startswith("Hibari")


def test_profile_paper_shows_printed_figures_without_interval_or_rank(visit: Any, address: str) -> None:
    page = visit.open(address)
    choose(page, "Profile", "paper")
    page.wait_for_selector("[role=gridcell]:has-text('PodAgent')")
    assert not any("±" in row or "#" in row for row in visit.rows())
    assert "Hibari" not in " ".join(visit.rows())


def test_link_restores_the_view(visit: Any, address: str) -> None:
    page = visit.open(f"{address}?dimension=speech.quality&controls=0&slice={quote('category=Arts')}")
    page.wait_for_function("document.querySelectorAll('.board .virtual-row').length === 3")
    link = page.get_by_label("Link to this view").first.input_value()
    assert link.startswith("http://127.0.0.1")
    before = visit.rows()
    page.goto(link)
    page.wait_for_function("document.querySelectorAll('.board .virtual-row').length === 3")
    assert visit.rows() == before
    assert "2/2" in before[0], "two items of the category Arts"


def test_downloads_hold_the_numbers_shown(visit: Any, address: str, tmp_path: Path) -> None:
    page = visit.open(f"{address}?dimension=speech.accuracy&columns=wer.wer")
    page.wait_for_selector("a[download$='.parquet'], button:has-text('Download Parquet')")
    page.wait_for_timeout(1500)
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download Parquet").or_(page.get_by_text("Download Parquet")).first.click()
    waiting.value.save_as(tmp_path / "shown.parquet")
    shown = pd.read_parquet(tmp_path / "shown.parquet")
    assert set(shown["key"]) == {"wer"}
    assert len(shown) == 6
    assert {"low", "high", "rank_best", "protocol", "reasons"} <= set(shown.columns)


def test_a_row_leads_to_its_system_with_audio_transcript_scores_and_timeline(visit: Any, address: str) -> None:
    page = visit.open(address)
    page.get_by_role("gridcell", name="Piper, two voices").or_(
        page.locator("[role=gridcell]:has-text('Piper')")
    ).first.click()
    page.get_by_role("button", name="Open the page of Piper, two voices").click()
    page.wait_for_selector("[role=gridcell]:has-text('Whoever hums it last')")
    page.wait_for_selector(".vega-embed svg:visible")
    text = page.inner_text("body")
    assert "no clear difference" in text
    assert "the model clap is not installed" in text
    assert "start of the window (s)" in (page.text_content("body") or "")
    source = page.locator("a[download][href*='/gradio_api/file=']:visible, audio[src]").first
    url = source.get_attribute("href") or source.get_attribute("src")
    with urllib.request.urlopen(url) as response:
        assert response.status == 200
        assert response.read(4) == b"fLaC"
    assert visit.errors == []


def test_system_address_opens_that_system_and_item(visit: Any, address: str) -> None:
    page = visit.open(f"{address}?tab=system&system=silence&where={quote('real_pod/voice/embedded')}&item=news-2")
    page.wait_for_selector("h2:has-text('Silence')")
    assert "the recording is silent" in page.inner_text("body")


@pytest.mark.parametrize("query", ["", "?tab=system"])
def test_phone_scrolls_inside_tables_never_the_page(phone_visit: Any, address: str, query: str) -> None:
    page = phone_visit.open(address + query)
    page.wait_for_selector(".vega-embed svg:visible")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.body.scrollWidth") <= 390
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in background.removeprefix("rgb(").rstrip(")").split(",")[:3]) < 60, "dark as asked"


def test_every_control_is_reached_by_keyboard_and_has_a_name(visit: Any, address: str) -> None:
    page = visit.open(address)
    reached = []
    for _ in range(25):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("""() => {
            const e = document.activeElement;
            const label = e.labels && e.labels[0] ? e.labels[0].innerText : '';
            return e.getAttribute('aria-label') || label || e.title || e.innerText || '';
        }""").strip())  # fmt: skip
    for name in ("Benchmark", "View", "Best first by", "Profile", "Filters, columns, protocols"):
        assert any(name in found for found in reached), f"{name} is not among {reached}"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


HOSTILE = {
    "title": """<img src=x onerror="window.hacked=1">[x](javascript:window.hacked=1)""",
    "topic": "<script>window.hacked=1</script>![a](http://203.0.113.1/x.png)",
    "text": """<iframe src="javascript:parent.hacked=1"></iframe> http://203.0.113.1 **bold**""",
    "reason": "<svg onload=window.hacked=1> [y](http://203.0.113.1)",
}


def test_what_others_wrote_is_shown_literally_and_never_run(
    visit: Any, serving: Callable[[Path], str], tmp_path: Path
) -> None:
    url = serving(write_runs(tmp_path / "runs", HOSTILE))
    page = visit.open(url)
    page.wait_for_selector(".vega-embed svg")
    assert HOSTILE["title"] in visit.rows()[0]
    page.locator("[role=gridcell]:has-text('onerror')").first.click()
    page.get_by_role("button", name="Open the page of").click()
    page.wait_for_selector("h2:has-text('onerror')")
    page.wait_for_selector("[role=gridcell]:has-text('<iframe src=')")
    page.wait_for_selector(".vega-embed svg:visible")
    assert page.inner_text("h2") == HOSTILE["title"]
    assert HOSTILE["text"] in page.inner_text("body")
    assert HOSTILE["topic"] in page.get_by_label("Item", exact=True).locator("visible=true").first.input_value()
    page.goto(f"{url}?tab=system&system=silence&where={quote('real_pod/voice/embedded')}")
    page.wait_for_selector("[role=gridcell]:visible:has-text('<svg onload=')")
    assert page.evaluate("window.hacked") is None
    assert page.locator("a[href*='203.0.113.1'], a[href^='javascript'], img[src='x']").count() == 0
    assert visit.abroad == []


def test_empty_folder_says_what_to_run(visit: Any, serving: Callable[[Path], str], tmp_path: Path) -> None:
    visit.page.goto(serving(tmp_path / "none"))
    visit.page.wait_for_selector("text=Nothing has been measured here yet")
    assert "podeval run" in visit.page.inner_text("body")
    assert visit.page.locator(".board:visible").count() == 0


def test_files_outside_the_runs_are_refused(address: str, runs: Path, tmp_path: Path) -> None:
    secret = Path(__file__).resolve()
    for path in ("/etc/passwd", str(secret), f"{runs}/../../../../../etc/passwd", str(Path.cwd() / "pyproject.toml")):
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"{address}gradio_api/file={quote(path)}")
        assert refusal.value.code in (403, 404), path
