"""One run and many: the spec of a run, its directory on disk, the loop around its rounds, and sweeps over a grid."""
