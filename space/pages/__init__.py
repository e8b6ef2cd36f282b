"""Pages next to the board; each module has its routes in `routes`."""
