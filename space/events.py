"""How the board's events run: at once, without a spinner, and not as a public API."""

from __future__ import annotations

from typing import Any

QUIET: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}
