"""Attacks on tacit by tacit: each puts a measured lower bound on epsilon beside the claimed one.

    mechanism        a round or a few, worst-case neighbours, many draws of the noise; two agents and two rounds at once
    training         one whole run with canaries in it, each included by a coin
    methods          a short run of any method, by what the untrusted saw
    controls         mechanisms broken on purpose, which the attacks must catch
    reconstruction   a server that knows all but one image tries to see it

Attacks see what a server sees, released z_p, and go through the code that trains: `answering` is where they reach it.
"""
