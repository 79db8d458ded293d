"""The leaderboard of a comparison: one row per method, from the records of its trials and runs alone."""
