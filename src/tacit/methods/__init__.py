"""Every method of the registry beside the paper's own: an agents' half and a server's half, or a curator's.

`registry` has the methods by name; `method` says what a method is, `promise` what it guarantees, `task` what it sees.
"""
