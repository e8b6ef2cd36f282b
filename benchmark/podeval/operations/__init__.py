"""Operating a board: backup, restore and retention."""

__all__ = ["backup", "restore", "retention"]
