"""The version of podeval, in a separate module so that any package can use it."""

__version__ = "0.2.0"
