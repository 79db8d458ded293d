"""The methods of the registry. Beside the ADMM family they are made of queries, or of two halves, or a curator's.

`registry` has the methods by name and the keys of their constants; `method` says what a method is, `queried` what
follows if it is made of queries, `promise` what it guarantees, `task` what it sees.
"""
