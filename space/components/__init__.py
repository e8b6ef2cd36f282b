"""Custom components of the tabs: constant templates, filled by scripts of our own from the site's own routes."""
