"""Pages beside the board: each module gives its routes by `router(site)`."""
