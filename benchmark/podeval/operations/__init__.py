"""What the operator of a board does: backup and restore, retention, moderation of votes, listeners and submissions."""
