"""Audio containers recognised by their own bytes: allowed formats, stated lengths, descriptions of refused files."""
