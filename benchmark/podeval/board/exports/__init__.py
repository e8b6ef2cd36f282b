"""Files and pages made of the board's data: reports, the static site, badges, and the forms of other programs."""
