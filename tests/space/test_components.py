"""Components of ours in Gradio's page: nothing of what strangers wrote goes through a template that it evaluates."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from podeval.errors import BadInput

pytest.importorskip("fastapi", reason="fastapi is not installed; pip install 'podeval[space]'")
from fastapi.testclient import TestClient

gr = pytest.importorskip("gradio", reason="gradio is not installed; pip install 'podeval[space]'")


def apps_of(site: Any) -> Iterator[Any]:
    """The Gradio app of each language."""
    for language in ("en", "zh"):
        yield site.state.gate.apps[language].get_blocks()


NAMED = {"leaderboard", "metrics", "submit_check", "queue", "ratings", "score"}
"""The interface for programs."""


def test_every_event_is_private_but_the_named_interface_of_the_first_language(
    board_app: ModuleType, tmp_path: Path
) -> None:
    english, chinese = (list(app.fns.values()) for app in apps_of(board_app.build(tmp_path)))
    assert {each.api_name for each in english if each.api_visibility != "private"} == NAMED
    assert {each.api_name for each in chinese if each.api_visibility != "private"} == set()
    assert len(english) - len(NAMED) == len(chinese) > 10


@pytest.mark.parametrize(
    ("contact", "link"),
    [
        (" security@board.example ", '<a href="mailto:security@board.example">security@board.example</a>'),
        (
            "https://board.example/report?to=us",
            '<a href="https://board.example/report?to=us">https://board.example/report?to=us</a>',
        ),
        ("", ""),
    ],
)
def test_about_names_the_operators_private_contact(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contact: str, link: str
) -> None:
    monkeypatch.setenv("PODEVAL_CONTACT", contact)
    client = TestClient(board_app.build(tmp_path))
    for language in ("en", "zh"):
        about = client.get("/about", params={"lang": language}).text
        assert link in about
        assert bool(link) == ("mailto:" in about or "/report" in about)
        assert "blob/main/SECURITY.md" in about


@pytest.mark.parametrize(
    "contact", ["our office", "javascript:alert(1)", "https://a b", "a@b.c) [x](https://evil", "@", "https://"]
)
def test_a_contact_that_is_no_address_is_refused_at_the_start(
    board_app: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, contact: str
) -> None:
    monkeypatch.setenv("PODEVAL_CONTACT", contact)
    with pytest.raises(BadInput, match="PODEVAL_CONTACT"):
        board_app.build(tmp_path)


@pytest.mark.long
def test_no_template_holds_a_place_for_a_value(board_app: ModuleType, tmp_path: Path) -> None:
    blocks = [block for app in apps_of(board_app.build(tmp_path)) for block in app.blocks.values()]
    custom = [block for block in blocks if isinstance(block, gr.HTML)]
    assert len(custom) > 10
    for block in custom:
        for template in (block.html_template, block.css_template):
            for mark in ("${", "{{", "`", "\\", "<script"):
                assert mark not in template, block.elem_id


@pytest.mark.parametrize("mark", ["${value}", "{{value}}", "`", "\\u0024{1}", "<script>1</script>"])
def test_a_template_with_a_place_for_a_value_is_refused(board_app: ModuleType, mark: str) -> None:
    from tab_parts import make_part

    with pytest.raises(ValueError, match="a component's template may not contain"):
        make_part("x", content=f"<p>{mark}</p>")


def test_numbers_keep_their_units_signs_and_ranks_on_one_line_in_texts_alone() -> None:
    from podeval.reports.page import keep_together

    together, space = '<span class="together">#1–2</span>', "\N{NO-BREAK SPACE}"
    assert keep_together("<td>3.2 dB #1–2</td>") == f"<td>3.2{space}dB {together}</td>"
    assert keep_together("<td>[-0.5, -3 pp] e-5</td>") == f"<td>[−0.5, −3{space}pp] e-5</td>"
    for same in (
        '<p title="#1–2 -3">a</p>',
        "<svg><text>#1–2 -3</text></svg>",
        "<code>x -3</code>",
        "<script>a = -3</script>",
    ):
        assert keep_together(same) == same
