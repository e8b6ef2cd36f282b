"""Compare spoken words with written ones: normalise and align them, and count the differences."""
