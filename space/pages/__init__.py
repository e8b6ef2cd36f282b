"""Pages next to the board: each module gives its routes by `router(site)`."""
