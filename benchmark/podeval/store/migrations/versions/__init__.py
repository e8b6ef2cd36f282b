"""One file per version of the tables, oldest first."""
