"""The agent as it is deployed: a gate, exact noise, and a record of every answer. It knows no transport.

    gate    a message becomes a value of a checked type, or is refused; no record is looked at
    half    what a method does at an agent, cut in two where noise goes in
    agent   gate -> records -> noise -> ledger -> answer; beside its server, or at home with its ledger alone
    masks   what hides an agent's numbers in a sum over a set of agents
"""
