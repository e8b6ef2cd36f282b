"""The pages of the site; each module lists its routes in `routes`."""
