"""Files and pages made from the board's data: reports, the static site, badges, and formats of other programs."""
