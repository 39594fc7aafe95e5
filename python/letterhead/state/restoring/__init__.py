"""Restore stores from changelogs, and compare stores with other stores or with changelogs."""
