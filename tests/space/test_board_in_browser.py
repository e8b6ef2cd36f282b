"""What a reader can do with the board, in a real browser."""

import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.space.accessibility import SHIFTS
from tests.space.fixture_runs import write_runs

pytestmark = pytest.mark.browser


ROWS, HEADS = "#table tbody:not(.group) tr", "#table thead th.number"


def unfold(page: Any) -> None:
    """Open what can be chosen, and the controls."""
    page.locator("#fold-choices > summary").click()
    page.locator("#fold-controls").click()


def becomes(page: Any, selector: str, number: int) -> None:
    """Wait until there are so many; the page's policy forbids the waiting that evaluates code."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_count(number, timeout=60_000)


@pytest.fixture
def page(visit: Any, address: str) -> Any:
    return visit.open(address)


def test_board_is_there_with_intervals_rank_ranges_and_controls(page: Any, visit: Any) -> None:
    assert not any("(control)" in row for row in visit.rows()), "controls are folded away"
    page.locator("#fold-controls").click()
    rows = visit.rows()
    assert rows[0].startswith("1–2"), "the rank range comes first"
    assert "Hibari dialogue" in rows[0]
    assert "±" in rows[0]
    assert "incomplete" in next(row for row in rows if "Piper" in row)
    assert "unscored (6)" in next(row for row in rows if "Silence control" in row)
    assert all(row.startswith("–") for row in rows if " control " in row), "controls have no rank"
    groups = page.locator("#table tbody.group").all_inner_texts()
    assert [text.strip().partition(" ")[0] for text in groups] == ["Measured", "3", "Reported"]
    reported = page.locator("#reported tr")
    assert reported.count() == 3
    assert "±" not in "".join(reported.all_inner_texts())
    assert page.locator("#reported [data-sound], #reported .place b").count() == 0
    assert page.locator("figure.plot svg").count() == 1
    assert page.locator("figure.plot svg a[href^='/system?system=hibari']").count() == 1
    assert page.locator("#early, h1").count() == 1, "what the page came with has moved into the tab"
    assert "Rank range by MATTR" in page.inner_text("#board-status"), "a reader need not guess what the rank is by"
    assert visit.errors == []
    assert visit.abroad == []
    assert visit.refused == []


def test_search_filters_and_columns_change_the_address_and_back_undoes_them(page: Any, visit: Any) -> None:
    unfold(page)
    page.get_by_label("Search", exact=True).press_sequentially("hibari")
    becomes(page, ROWS, 1)
    assert "Hibari" in visit.rows()[0]
    assert page.evaluate("document.activeElement.id") == "q", "typing goes on where it was"
    page.get_by_role("link", name="Remove all filters").click()
    becomes(page, ROWS, 9)
    page.get_by_label("Hide controls").check()
    becomes(page, ROWS, 6)
    assert page.get_by_label("Hide controls").is_visible(), "what was open stays open"
    page.locator("#f-columns > summary").click()
    page.get_by_role("checkbox", name="WER", exact=True).check()
    becomes(page, HEADS, 1)
    assert "columns=wer.wer" in page.url
    page.go_back()
    becomes(page, HEADS, 8)
    assert "controls=0" in page.url
    page.get_by_role("link", name="Speech", exact=True).click()
    becomes(page, "#table thead th:has-text('DNSMOS')", 3)
    assert "dimension=speech" in page.url


@pytest.mark.long
def test_a_click_on_a_head_sorts_at_once_and_marks_that_column_alone(page: Any, visit: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("[id='s-wer.wer']").click()
    assert page.locator("thead .sorted").count() == 1
    assert page.locator("th[aria-sort=ascending] .sorted").inner_text() == "▲"
    assert [row.split()[1] for row in visit.rows()[:3]] == ["Hibari", "Piper,", "Real-Pod"]
    page.locator("[id='s-wer.wer']").click()
    assert page.locator("th[aria-sort=descending] .sorted").inner_text() == "▼"
    assert [row.split()[1] for row in visit.rows()[:3]] == ["Real-Pod", "Piper,", "Hibari"]
    assert "sort=-wer.wer" in page.url
    page.locator("[id='s-sptd.sptd']").click()
    assert page.locator("#measured .place small").first.inner_text() == "not separable"
    assert not [url for url in asked if "board.json" in url and "part=picture" not in url], (
        "no other numbers are needed"
    )


@pytest.mark.long
def test_a_head_explains_its_column_a_row_plays_its_sample_and_a_cell_says_why(page: Any, visit: Any) -> None:
    page.get_by_role("button", name="What SPTD").click()
    page.locator(":popover-open", has_text="How different the voices").get_by_text("34 clips of real").wait_for()
    page.keyboard.press("Escape")
    assert page.locator("[popover]:popover-open").count() == 0
    page.get_by_role("button", name="Play a sample of Hibari dialogue").click()
    page.wait_for_function("() => document.querySelector('[popover]:popover-open audio')?.paused === false")
    page.evaluate("window.sample = document.querySelector('#told audio')")
    page.keyboard.press("Escape")
    page.wait_for_function("() => window.sample.paused")
    page.get_by_role("button", name="incomplete").click()
    assert "needs at least two speakers" in page.inner_text("[popover]:popover-open")
    assert visit.errors == []


def test_link_restores_the_view_exactly(visit: Any, address: str) -> None:
    query = f"dimension=speech.quality&controls=0&slice={quote('category=Arts')}&pins=piper&sort=dnsmos.bak"
    page = visit.open(f"{address}?{query}&plot=distribution&columns=dnsmos.bak,dnsmos.ovrl")
    link = page.evaluate("document.getElementById('whole-link').href")
    assert "dnsmos@1.0-bbbbbbbbbbbb" in link, "the protocol stays when another becomes the default"
    before = (visit.rows(), page.inner_html("figure.plot"), page.inner_text("thead"))
    visit.open(link)
    assert (visit.rows(), page.inner_html("figure.plot"), page.inner_text("thead")) == before
    assert "Piper" in before[0][0], "pinned"


def test_a_row_leads_to_its_system_with_audio_transcript_scores_and_timeline(page: Any, visit: Any) -> None:
    page.locator("#table").get_by_role("link", name="Piper, two voices", exact=True).click()
    page.wait_for_selector("#deck[data-state=ready]")
    assert page.inner_text("h1") == "Piper, two voices"
    text = page.inner_text("body")
    for said in ("Whoever hums it last", "no clear difference", "Not scored, and why (2)", "Over time"):
        assert said in text
    page.get_by_text("Not scored, and why").click()
    assert "the model clap is not installed" in page.inner_text("body")
    assert page.locator("svg.timeline").count() == 2, "DNSMOS by two protocols"
    with urllib.request.urlopen(page.evaluate("document.querySelector('audio').src")) as response:
        assert response.status == 200
        assert response.read(4) == b"fLaC"
    assert visit.errors == []


@pytest.mark.parametrize("query", ["", pytest.param("?lang=zh&plot=radar", marks=pytest.mark.long)])
def test_on_a_phone_a_system_is_a_card_and_nothing_scrolls_sideways(chromium: Any, address: str, query: str) -> None:
    page = chromium.new_context(
        viewport={"width": 360, "height": 780}, color_scheme="dark", has_touch=True
    ).new_page()  # fmt: skip
    page.goto(address + query)
    page.wait_for_selector("#board-part #table td")
    page.wait_for_selector("figure.plot svg[viewBox^='0 0 360']")
    for summary in page.locator("summary:visible").all():
        summary.click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("document.getElementById('table').scrollWidth") <= 360
    card = page.locator("#table tbody tr").first.bounding_box()
    assert 300 < card["width"] <= 360
    values = page.locator("#table tbody tr").first.locator("td.n")
    assert all(values.nth(at).get_attribute("data-label") for at in range(values.count())), "each says of what it is"
    sizes = page.evaluate("""() => [...document.querySelectorAll('figure.plot text')].map(
        (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)""")
    assert min(sizes) >= 11, "letters of plots are read on a phone"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in re.findall(r"\d+", background)[:3]) < 60, "dark as asked"
    page.context.close()


def test_every_control_is_reached_by_keyboard_and_has_a_name(page: Any, visit: Any) -> None:
    unfold(page)
    page.locator(".skip").focus()
    reached = []
    for _ in range(130):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("""() => {
            const e = document.activeElement;
            const label = e.labels && e.labels[0] ? e.labels[0].innerText : '';
            return e.getAttribute('aria-label') || label || e.title || e.innerText || '';
        }""").strip())  # fmt: skip
    assert "" not in reached, "each has a name"
    names = ("Real-Pod", "Profile", "Items", "Search", "Columns", "Listen and vote", "Overview", "MATTR", "Compare")
    for name in (*names, "What MATTR", "Play a sample of Hibari", "3 controls and baselines"):
        assert any(name in found for found in reached), f"{name} is not among {reached}"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"


@pytest.mark.long
def test_a_second_tick_before_the_first_is_answered_counts_too(page: Any, visit: Any) -> None:
    unfold(page)
    page.locator("#f-columns > summary").click()
    page.route(re.compile(r"/board\.json"), lambda route: None)
    ticks = [page.get_by_role("checkbox", name=name, exact=True) for name in ("WER", "MATTR")]
    for tick in ticks:
        tick.check()
    becomes(page, HEADS, 2)
    assert [tick.is_checked() for tick in ticks] == [True, True]
    assert visit.errors == []


def test_a_board_that_does_not_answer_says_so_and_keeps_what_it_showed(page: Any, visit: Any) -> None:
    of_a_view = re.compile(r"/board\.json")
    page.route(of_a_view, lambda route: route.abort())
    page.get_by_role("link", name="LFS-Bench · mono").click()
    page.wait_for_selector("#board-problem:visible")
    assert "cannot be reached" in page.inner_text("#board-problem")
    assert len(visit.rows()) == 6
    page.unroute(of_a_view)
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector("#board-status:has-text('LFS-Bench')")
    assert not page.locator("#board-problem").is_visible()


COVERED = """window.covered = false; new MutationObserver(() => {
    const loading = [...document.querySelectorAll("p.loading")];
    const seen = loading.some((sign) => sign.checkVisibility({ visibilityProperty: true }));
    window.covered ||= seen && Boolean(document.querySelector("#table td"));
}).observe(document, { childList: true, subtree: true });"""
"""A script that watches whether anything says that it loads while the leaderboard is there."""


@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.long), 1280])
@pytest.mark.parametrize("tab", ["", *(pytest.param(tab, marks=pytest.mark.long) for tab in ("score", "submit"))])
def test_nothing_moves_while_a_tab_comes_up_cold(chromium: Any, address: str, tab: str, width: int) -> None:
    context = chromium.new_context(viewport={"width": width, "height": 844})
    page = context.new_page()
    page.add_init_script(SHIFTS + COVERED)
    page.goto(f"{address}{tab}")
    page.wait_for_selector(f"#tab-{tab or 'leaderboard'} h1 >> visible=true")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.moved") <= 0.05
    assert page.evaluate("window.covered") is False, "Gradio's sign of loading stands over nothing that can be read"
    context.close()


HOSTILE = {
    "title": """<img src=x onerror="window.hacked=1">[x](javascript:window.hacked=1)${window.hacked=1}{{7*7}}`""",
    "topic": "<script>window.hacked=1</script>![a](http://203.0.113.1/x.png)${window.hacked=1}{{7*7}}`",
    "text": """<iframe src="javascript:parent.hacked=1"></iframe> http://203.0.113.1 **bold** {{7*7}}`""",
    "reason": "<svg onload=window.hacked=1> [y](http://203.0.113.1) ${window.hacked=1}{{7*7}}`",
}
"""`${…}` runs where a value goes through a template of Gradio's; `{{…}}` would be filled in."""


def test_what_others_wrote_is_shown_literally_and_never_run(
    visit: Any, serving: Callable[[Path], str], tmp_path: Path
) -> None:
    url = serving(write_runs(tmp_path / "runs", HOSTILE))
    page = visit.open(url)
    assert HOSTILE["title"] in visit.rows()[0]
    page.locator("#fold-controls").click()
    assert any(
        HOSTILE["reason"] in why for why in page.eval_on_selector_all(".why", "all => all.map((e) => e.dataset.why)")
    )
    assert HOSTILE["title"][:20] in (page.text_content("figure.plot") or "")
    for plot in ("radar", "distribution"):
        visit.open(f"{url}?plot={plot}&pins=hibari")
        assert HOSTILE["title"][:20] in (page.text_content("figure.plot") or "")
    page.locator("tbody a:has-text('onerror')").first.click()
    page.wait_for_selector("#deck[data-state=ready]")
    assert page.inner_text("h1") == HOSTILE["title"]
    assert HOSTILE["text"] in page.inner_text("body")
    assert HOSTILE["topic"] in page.inner_text("body")
    page.goto(f"{url}system?system=silence&where={quote('real_pod/voice/embedded')}")
    page.get_by_text("Not scored, and why").click()
    assert HOSTILE["reason"] in page.inner_text("body")
    assert page.evaluate("window.hacked") is None
    assert page.locator("a[href*='203.0.113.1'], a[href^='javascript'], img[src='x']").count() == 0
    assert visit.abroad == visit.errors == []


@pytest.mark.long
def test_no_page_has_a_script_error_where_nothing_was_measured_or_voted(
    visit: Any, serving: Callable[[Path], str], tmp_path: Path
) -> None:
    url = serving(tmp_path / "none")
    pages = ("", "system", "compare", "docs", "method", "judges", "about", "api/docs", "arena", "arena/ratings")
    for page in (*pages, "submit", "queue", "score", "listening", "admin"):
        visit.page.goto(f"{url}{page}")
        visit.page.wait_for_load_state("load")
        visit.page.wait_for_selector("h1")
    assert visit.errors == []
