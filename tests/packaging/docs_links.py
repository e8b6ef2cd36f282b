"""What mkdocs is told besides mkdocs.yml: pages made of other files, and where links of theirs lead.

Tutorials are scripts (Jupytext's percent format), each also a page; the cards of the metrics are pages too.
A link out of docs/ goes to the repository, and decisions are listed by themselves.
"""

import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
ADDRESS = "https://huggingface.co/spaces/podeval/leaderboard/blob/main/"
_GENERATED = {"metrics.md", "judge-prompts.md"}
"""Pages made of declarations: they are searched and linked to, and are not in the list."""
_LINK = re.compile(r"\]\(((?:\.\./)*[^)#\s:]+)(#[^)\s]*)?\)")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def on_config(config: Any) -> Any:
    """Every decision, and every page that the list leaves out, has a place in the list; generated pages do not."""
    docs = Path(config["docs_dir"])
    listed = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    pages = sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md"))
    rest = [page for page in pages if page not in listed | _GENERATED and not page.startswith("tutorials/")]
    decisions = [page for page in rest if page.startswith("decisions/")]
    for group in config["nav"]:
        for page in next(iter(group.values())):
            if isinstance(page, dict) and "Decisions" in page:
                page["Decisions"] = decisions
    if others := [page for page in rest if page not in decisions]:
        config["nav"].append({"More": others})
    return config


def on_post_build(config: Any) -> None:
    """Beside each page lies the Markdown that it is made of, for programs; `llms.txt` lists them."""
    docs = Path(config["docs_dir"])
    for path in docs.rglob("*.md"):
        twin = Path(config["site_dir"]) / path.relative_to(docs)
        twin.parent.mkdir(parents=True, exist_ok=True)
        twin.write_bytes(path.read_bytes())


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of tutorials and cards."""
    from mkdocs.structure.files import File

    for path in _tutorials():
        files.append(File.generated(config, f"tutorials/{path.stem}.md", content=tutorial_page(path)))
    for path in _cards():
        text = _FRONT_MATTER.sub("", path.read_text(encoding="utf-8"))
        text = text.replace("](bias.svg)", f"](../studies/bias-{path.parent.name}.svg)")
        files.append(File.generated(config, f"cards/{path.parent.name}.md", content=text))
    return files


def tutorial_page(path: Path) -> str:
    """A tutorial as Markdown: its words as they stand, its code in fences."""
    import jupytext

    cells = jupytext.read(path).cells
    parts = [
        cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```"
        for cell in cells
        if cell.source.strip()
    ]
    name = path.relative_to(REPOSITORY).as_posix()
    notebook = f"*A script that is a page and a notebook: `jupytext --to notebook {name}` makes the notebook.*"
    return "\n\n".join([parts[0], notebook, *parts[1:]]) + "\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file outside docs/ leads to it in the repository, one to a script or a card to its page."""
    source = page.file.src_uri
    if source.startswith("cards/"):
        here = REPOSITORY / "hf_metrics" / Path(source).stem
    else:
        here = (REPOSITORY / "docs" / source).parent
    up = "../" * source.count("/")

    def led(found: re.Match[str]) -> str:
        target = (here / found[1]).resolve()
        if target in _cards():
            return f"]({up}cards/{target.parent.name}.md{found[2] or ''})"
        if target in _tutorials():
            return f"]({up}tutorials/{target.stem}.md)"
        if not target.exists() or not target.is_relative_to(REPOSITORY):
            return found[0]
        if target.is_relative_to(REPOSITORY / "docs"):
            return f"]({up}{target.relative_to(REPOSITORY / 'docs').as_posix()}{found[2] or ''})"
        return f"]({ADDRESS}{target.relative_to(REPOSITORY).as_posix()}{found[2] or ''})"

    return _LINK.sub(led, markdown)


def _tutorials() -> list[Path]:
    return sorted((REPOSITORY / "docs" / "tutorials").glob("*.py"))


def _cards() -> list[Path]:
    return sorted((REPOSITORY / "hf_metrics").glob("*/README.md"))
