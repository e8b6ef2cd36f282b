"""Where a test runs that asks for `database_place`: on each kind of database, unless one of these says otherwise."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]
"""A maker of small arenas, as the fixture `small_arena` gives it."""

ON_SQLITE = pytest.mark.parametrize("database_place", ["sqlite"], indirect=True)
"""What does not depend on the database, or is about SQLite's files."""

SERVER_LONG = pytest.mark.parametrize(
    "database_place", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
"""What a database has little part in; that it works on a server, tests of what it keeps show."""
