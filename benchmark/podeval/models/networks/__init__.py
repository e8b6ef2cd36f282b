"""Networks that are rebuilt here, as their authors describe them, because their packages cannot be installed beside ours."""
