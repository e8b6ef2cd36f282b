"""What the board shows, as plain data: views, tables, plots, system pages. No face is imported here."""
