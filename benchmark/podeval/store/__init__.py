"""The world at rest: results of runs as validated, versioned files."""
