"""Networks that are reimplemented from their authors' descriptions, because their packages conflict with podeval's."""
