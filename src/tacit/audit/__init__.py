"""Tacit attacks tacit: each attack measures a lower bound on epsilon, which must not exceed the claimed epsilon.

    mechanism        one or a few rounds, worst-case neighbours, many draws of the noise; two agents and two rounds too
    secure_sum       attempts of a secure sum: a server with a colluding agent sees masked words, and the sum
    training         one whole run with canaries in it; a coin decides whether a canary is included
    methods          a short run of any method, judged by everything that parties who are not trusted saw
    controls         mechanisms that are broken on purpose, which the attacks must catch
    reconstruction   a server that knows all images but one tries to see that image

Attacks see what a server sees: the released z_p, or masked words. The code that trains answers the attacks, by way of
`answering` and, for a secure sum, `sum_views`.
"""
