"""How Parquet files of Hub repos are written: chunks that follow the content, and an index of pages."""

from typing import Any, Final

HUB_PARQUET: Final[dict[str, Any]] = {
    "compression": "zstd",
    "use_content_defined_chunking": True,
    "write_page_index": True,
}
"""Options of `pyarrow.parquet`: a row more or less changes few chunks, so that a push sends only those, and the viewer
reads the pages that it shows (huggingface.co/docs/hub/datasets-libraries)."""
