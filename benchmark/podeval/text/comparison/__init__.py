"""What is said laid next to what was written: words made alike, aligned, and counted where they differ."""
