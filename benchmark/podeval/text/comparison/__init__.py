"""Compare spoken with written words: normalise and align them, and count the differences."""
