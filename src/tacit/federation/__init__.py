"""Agents elsewhere: each institution runs its own agents, and a coordinator runs the loop.

wire          a message as bytes, in the standard library alone
messages      the types of all messages, and the one way from bytes to a checked value
site          the site file: what an institution holds, limits and agrees to
agreement     what a run may ask of a site, key by key
service       the institution's process: it owns records, gate, noise and ledger, and answers messages
mapped        the records of a site after a feature map
listen        the Unix socket of that process
courier       the Flower ClientApp: it carries messages to that socket, and has access to nothing
remote        the engine of the coordinator: questions out, answers in, and what becomes of those that are missing
flower        the Flower ServerApp, and messages over Flower's grid
"""
