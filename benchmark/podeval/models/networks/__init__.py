"""Networks reimplemented from their authors' descriptions, because their packages do not install next to podeval's."""
