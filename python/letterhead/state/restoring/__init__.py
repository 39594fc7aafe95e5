"""Restore stores from changelogs, and compare stores with them."""
