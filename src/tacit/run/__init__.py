"""Runs: the spec of a run, its directory on disk, the loop around its rounds, and sweeps of many runs over a grid."""
