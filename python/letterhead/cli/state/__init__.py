"""`letterhead state`: look at the directories of stores, and bring them up to date."""
