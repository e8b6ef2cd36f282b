"""What mkdocs is told besides: links out of docs/ go to the repository, decisions are listed by themselves."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
ADDRESS = "https://huggingface.co/spaces/podeval/leaderboard/blob/main/"
_LINK = re.compile(r"\]\(((?:\.\./)+[^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Every decision, and every page that the list leaves out, has a place in the list."""
    docs = Path(config["docs_dir"])
    listed = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    rest = [page for page in pages if page not in listed]
    for part in config["nav"]:
        if "Decisions" in part:
            part["Decisions"] = [page for page in rest if page.startswith("decisions/")]
    if others := [page for page in rest if not page.startswith("decisions/")]:
        config["nav"].append({"More": others})
    return config


def on_post_build(config: Any) -> None:
    """Beside each page lies the Markdown that it is made of, for programs; `llms.txt` lists them."""
    docs = Path(config["docs_dir"])
    for path in docs.rglob("*.md"):
        twin = Path(config["site_dir"]) / path.relative_to(docs)
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_bytes(path.read_bytes())


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file outside docs/ leads to it in the repository; one to a page stays."""
    here = (REPOSITORY / "docs" / page.file.src_uri).parent

    def led(found: re.Match[str]) -> str:
        target = (here / found[1]).resolve()
        if target.is_relative_to(REPOSITORY / "docs") or not target.exists():
            return found[0]
        return f"]({ADDRESS}{target.relative_to(REPOSITORY).as_posix()}{found[2] or ''})"

    return _LINK.sub(led, markdown)
