"""One report format for all data sources: parts such as tables, pictures and players, and the page that shows them.

A report of recordings, of a system or of a judge is a `Report` with its parts; one template renders it, either as a
self-contained page to send, read or print, or as part of the site.
"""

__all__ = ["page"]
