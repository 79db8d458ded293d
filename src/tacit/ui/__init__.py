"""The live page over a directory of runs: `tacit ui`. It reads records, and writes nothing but a request to stop."""
