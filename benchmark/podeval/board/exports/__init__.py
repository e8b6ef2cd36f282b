"""Files and pages made from the board's data: reports, the static site, badges, and other programs' formats."""
