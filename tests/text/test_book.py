"""Books in the forms in which their makers keep them; the EPUBs are laid out as EbookLib and pandoc write them."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from podeval.errors import BadInput
from podeval.text import book as books
from podeval.text.book import read_book

GUTENBERG = """The Project Gutenberg eBook of The Ferry

This eBook is for the use of anyone anywhere.

*** START OF THE PROJECT GUTENBERG EBOOK THE FERRY ***

THE FERRY

by Nobody

CONTENTS

CHAPTER I.   The Harbour

CHAPTER II.  The Lamp

CHAPTER III. The End

CHAPTER IV.  After the End


CHAPTER I.

The morning was _grey_ when the ferry
left the harbour.[1] Nobody slept.

[1] A harbour of the north.

    * * *

Part of the deck was wet.

CHAPTER II.

The keeper climbed the steps.

[Illustration: The lamp]

THE END

*** END OF THE PROJECT GUTENBERG EBOOK THE FERRY ***

Updated editions will replace the previous one.
"""
CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0">'
    '<rootfiles><rootfile media-type="application/oebps-package+xml" full-path="EPUB/content.opf"/></rootfiles>'
    "</container>"
)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def passages(path: Path) -> list[tuple[str, str]]:
    return [(passage.kind, passage.text) for passage in read_book(path).passages]


def write_epub(
    path: Path, pages: Mapping[str, str | bytes], more: Mapping[str, str] | None = None, spine: str = ""
) -> Path:
    """An EPUB whose pages have these bodies, in this order."""
    items = "".join(f'<item id="{n}" href="{n}.xhtml" media-type="application/xhtml+xml"/>' for n in pages)
    order = spine or "".join(f'<itemref idref="{name}"/>' for name in pages)
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf" version="3.0"><manifest>{items}</manifest>'
        f"<spine>{order}</spine></package>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("EPUB/content.opf", package)
        for name, body in pages.items():
            page = f"<html><head><title>x</title></head><body>{body}</body></html>" if isinstance(body, str) else body
            archive.writestr(f"EPUB/{name}.xhtml", page)
        for name, content in ({"META-INF/container.xml": CONTAINER} | dict(more or {})).items():
            archive.writestr(name, content)
    return path


def test_a_text_as_project_gutenberg_lays_it_out(tmp_path: Path) -> None:
    found = passages(write(tmp_path / "ferry.txt", GUTENBERG))
    assert [text for kind, text in found if kind == "body"] == [
        "The morning was grey when the ferry left the harbour. Nobody slept.",
        "Part of the deck was wet.",
        "The keeper climbed the steps.",
        "[Illustration: The lamp]",
        "THE END",
    ]
    assert [text for kind, text in found if kind == "heading"] == ["CHAPTER I.", "CHAPTER II."]
    assert [text for kind, text in found if kind == "note"] == ["A harbour of the north."]
    front = [text for kind, text in found if kind == "front_matter"]
    assert {"THE FERRY", "CONTENTS", "CHAPTER III. The End", "The Project Gutenberg eBook of The Ferry"} <= set(front)
    assert found[-1] == ("back_matter", "Updated editions will replace the previous one.")


def test_markdown_with_front_matter_notes_links_and_both_kinds_of_headings(tmp_path: Path) -> None:
    text = (
        "---\ntitle: The Ferry\n---\n\nThe Harbour\n===========\n\n"
        "The [ferry](https://a.b/c) *left*.[^1] ![a map](m.png)\n\n"
        "[^1]: It was late.\n\n## The Lamp\nIt burned (all night).\n\n# Index\n\nFerry, 1\n"
    )
    assert passages(write(tmp_path / "ferry.md", text)) == [
        ("heading", "The Harbour"),
        ("body", "The ferry left."),
        ("note", "It was late."),
        ("heading", "The Lamp"),
        ("body", "It burned (all night)."),
        ("back_matter", "Index"),
        ("back_matter", "Ferry, 1"),
    ]


def test_a_heading_that_no_one_else_could_be_needs_no_empty_lines(tmp_path: Path) -> None:
    one, two = "第一章 港口\n\u3000\u3000清晨渡船离开。\n\u3000\u3000没有人睡着。\n", "第二章 灯\n夜里他上楼。\n"
    novel = f"{one}{two}CHAPTER 3. The End\nHe slept.\n"
    assert passages(write(tmp_path / "a.txt", novel)) == [
        ("heading", "第一章 港口"),
        ("body", "清晨渡船离开。 没有人睡着。"),
        ("heading", "第二章 灯"),
        ("body", "夜里他上楼。"),
        ("heading", "CHAPTER 3. The End"),
        ("body", "He slept."),
    ]


def test_chapters_in_json_and_a_script_in_json(tmp_path: Path) -> None:
    chapters = '{"chapters": [{"title": "One", "text": "It began.\\n\\nIt rained."}, {"paragraphs": ["It ended."]}]}'
    assert passages(write(tmp_path / "a.json", chapters)) == [
        ("heading", "One"), ("body", "It began."), ("body", "It rained."), ("body", "It ended."),
    ]  # fmt: skip
    script = '[{"speaker": "Ann", "text": "Hello there."}, {"speaker": "Ben", "text": "Good morning."}]'
    assert passages(write(tmp_path / "b.json", script)) == [("body", "Hello there."), ("body", "Good morning.")]
    with pytest.raises(BadInput, match="chapter 1 needs `text`"):
        read_book(write(tmp_path / "c.json", '{"chapters": [{"title": "One"}]}'))


def test_subtitles_are_their_words(tmp_path: Path) -> None:
    cues = (
        "1\n00:00:00,000 --> 00:00:02,000\nIt began in\n\n2\n00:00:02,000 --> 00:00:04,000\n<i>the rain</i>. He left.\n"
    )
    assert passages(write(tmp_path / "a.srt", cues)) == [("body", "It began in the rain. He left.")]


def test_an_epub_says_by_its_types_what_is_not_read_aloud(tmp_path: Path) -> None:
    pages = {
        "cover": '<section epub:type="cover"><p>The Ferry</p></section>',
        "nav": '<nav epub:type="toc"><h2>Contents</h2><ol><li>The Harbour</li></ol></nav>',
        "one": (
            "<h1>The Harbour</h1><p>The ferry&nbsp;left<sup>1</sup> at 5&#8239;am."
            "<a epub:type='noteref' href='#n'>2</a></p>"
            "<p>Ann said:<br/>go.</p><aside epub:type='footnote' id='n'><p>It was late.</p></aside>"
            "<script>alert(1)</script><p>Nobody slept</p>"
        ),
        "two": "<p>It went on.</p>",
        "notes": '<section role="doc-endnotes"><h2>Notes</h2><ol><li>A harbour of the north.</li></ol></section>',
        "copy": "<h1>Copyright</h1><p>All rights reserved.</p>",
    }
    book = read_book(write_epub(tmp_path / "a.epub", pages))
    assert [(passage.kind, passage.text) for passage in book.passages] == [
        ("front_matter", "The Ferry"),
        ("front_matter", "Contents"),
        ("front_matter", "The Harbour"),
        ("heading", "The Harbour"),
        ("body", "The ferry left at 5 am."),
        ("body", "Ann said: go."),
        ("note", "It was late."),
        ("body", "Nobody slept"),
        ("body", "It went on."),
        ("note", "Notes"),
        ("note", "A harbour of the north."),
        ("back_matter", "Copyright"),
        ("back_matter", "All rights reserved."),
    ]
    titles = [book.titles[passage.section] for passage in book.passages if passage.kind == "body"]
    assert set(titles) == {"The Harbour"}, "a page without a heading continues the chapter"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8", "utf-8-sig", "iso-8859-1", "windows-1252"])
def test_a_page_of_an_epub_is_in_the_encoding_that_it_states(tmp_path: Path, encoding: str) -> None:
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><html><body><p>Née à Zürich <![CDATA[& Bern]]></p></body></html>'
    )
    book = write_epub(tmp_path / "a.epub", {"a": text.encode(encoding)})
    assert passages(book) == [("body", "Née à Zürich & Bern")]
    for stated in (text.replace(encoding, "windows-0"), text.replace(encoding, "utf-8")):
        if not encoding.startswith("utf"):
            with pytest.raises(BadInput, match="damaged or locked EPUB"):
                read_book(write_epub(tmp_path / "b.epub", {"a": stated.encode(encoding)}))


def test_hidden_words_of_an_epub_are_not_read_aloud(tmp_path: Path) -> None:
    assert passages(write_epub(tmp_path / "a.epub", {"a": "<p>It <i hidden>not</i> rains.</p>"})) == [
        ("body", "It rains.")
    ]


def test_a_hostile_or_damaged_epub_is_refused_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"one": "<p>It began.</p>"}
    bomb = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><package>&c;</package>'
    cases = {
        "declares|Entities": write_epub(tmp_path / "entities.epub", one, {"META-INF/container.xml": bomb}),
        "damaged or locked EPUB .*not a zip": write(tmp_path / "text.epub", "no zip"),
        "damaged or locked EPUB .*two": write_epub(tmp_path / "spine.epub", one, spine='<itemref idref="two"/>'),
        r"protected against copying \(DRM\)": write_epub(
            tmp_path / "drm.epub", one, {"META-INF/encryption.xml": '<CipherReference URI="EPUB/one.xhtml"/>'}
        ),
        "elements nested more than 256 deep": write_epub(tmp_path / "deep.epub", {"one": "<div>" * 300}),
        "contains no words to read aloud": write_epub(tmp_path / "empty.epub", {"one": "<h1>One</h1>"}),
        "No such file": tmp_path / "absent.epub",
        "export the book as EPUB": write(tmp_path / "a.mobi", "x"),
    }
    for sentence, path in cases.items():
        with pytest.raises(BadInput, match=sentence):
            read_book(path)
    monkeypatch.setattr(books, "UNPACKED_BYTES", 2**20)
    with pytest.raises(BadInput, match="larger than 1 MiB"):
        read_book(write_epub(tmp_path / "bomb.epub", {"one": f"<p>{' ' * 2**21}</p>"}))
    monkeypatch.setattr(books, "LONGEST_BOOK", 100)
    with pytest.raises(BadInput, match="more than 100 characters"):
        read_book(write(tmp_path / "long.txt", "It began. " * 50))
