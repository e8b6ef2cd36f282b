"""Audio containers recognised from their own bytes: an allow-list, their stated lengths, and what a refused file looks like."""
