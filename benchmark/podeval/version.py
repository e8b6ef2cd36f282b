"""Which version of podeval this is; by itself, so that any room can say it."""

__version__ = "0.1.0"
