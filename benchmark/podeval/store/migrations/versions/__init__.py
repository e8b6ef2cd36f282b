"""One file a version of the tables, oldest first."""
