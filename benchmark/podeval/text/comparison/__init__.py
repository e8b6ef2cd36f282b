"""What is said laid beside what was written: words made alike, aligned, and counted where they differ."""
