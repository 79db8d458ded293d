"""The deployed agent: it answers queries about its records with noise. It knows no method and no transport.

    gate        checks a server's question; no record is read
    agreement   the queries that a run may ask, their noise and how often: what both sides fix before the first answer
    cover       how an answer leaves: alone with all of its noise, or masked in a secure sum with a share of the noise
    agent       gate, ledger check, value, cover, ledger entry, answer
    masks       the masks of a secure sum over a set of agents
"""
