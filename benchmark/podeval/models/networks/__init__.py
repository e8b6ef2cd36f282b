"""Networks that are rebuilt here as their authors describe them, because their packages do not install beside ours."""
