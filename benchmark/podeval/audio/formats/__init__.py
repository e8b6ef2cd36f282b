"""Audio containers recognised from their own bytes: an allow-list, stated lengths, and how a refused file looks."""
