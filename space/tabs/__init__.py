"""One file per tab of the board."""
