"""The version of podeval, and of an installed library; in a separate module, so that any package can use it."""

__version__ = "0.2.0"


def find_version(library: str) -> str | None:
    """Return the version of an installed library; None if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(library)
    except PackageNotFoundError:
        return None
