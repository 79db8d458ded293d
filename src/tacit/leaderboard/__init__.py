"""The leaderboard of a comparison: one row per method, only from the records of its trials and runs."""
