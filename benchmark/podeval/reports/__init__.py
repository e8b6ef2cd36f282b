"""One report for all sources of data: parts such as tables, pictures and players, and the page that shows them.

A report of recordings, of a system or of a judge is a `Report` with its parts; one template makes a page of it,
self-contained to be sent, read and printed, or within the site.
"""

__all__ = ["page"]
