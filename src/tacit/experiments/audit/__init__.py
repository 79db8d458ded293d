"""Attacks on tacit by tacit: each puts a measured lower bound on epsilon beside the claimed one.

    mechanism        one round, worst-case neighbours, many draws of the noise
    training         one whole run with canaries in it, each included by a coin
    controls         mechanisms broken on purpose, which the attacks must catch
    reconstruction   a server that knows all but one image tries to see it

Attacks see what a server sees, released z_p, and go through the code that trains: Agent.respond and the engines.
"""
