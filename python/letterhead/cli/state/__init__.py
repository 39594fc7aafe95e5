"""`letterhead state`: read the directories of state stores, and upgrade them."""
