"""Masks of a secure sum: the sum over a set of agents becomes known, and no part of it. It knows no transport.

    primitives   signatures, key agreement, derivation and streams; the one module that imports cryptography
    keys         who is who in a run: signed statements of fresh keys, checked against pinned ones
    graph        which pairs of agents share a mask, and how likely a coalition cuts the honest agents apart
    masker       the masks of one agent, and what it refuses; the sum

Agent i sends y_i = x_i + sum_(j > i) m_ij - sum_(j < i) m_ij modulo 2^k, over the set S that the question names, in the
order of names. m_ij is a ChaCha20 stream that i and j alone can make. Over all of S each m_ij comes twice, with both
signs.

What is seen, for at most c colluding agents among those pinned and n >= c + 2 agents in each set:

* *The server, with c agents or without*, learns of one question (round, attempt, set S) the sum of x_i over the honest
  agents of S, or nothing.
* *An outsider* who reads all messages sees no more than the server, and the transport (TLS) shows him lengths alone.
* An agent learns of the others what the server tells it.

Why. Write H for the honest agents of S.

1. A statement carries the run, the name and the X25519 key under an Ed25519 signature that peers check against a pinned
   key. So two honest agents hold each other's own keys, whatever the server delivers, or they refuse; only an old key
   that the same agent signed for the same run can come in the place of the new one, and nobody else knows its secret.
2. The pair secret is HKDF-SHA256 of the shared point, with both names and keys and the run. Under the usual assumption
   on X25519 with a hash (oracle Diffie-Hellman), it is a fresh random key to all but the two. Without names and keys in
   it, an agent that announced a peer's point as its own would make two masks of a third agent equal, and with opposite
   signs these would cancel.
3. The stream's key is HKDF of the pair secret over a digest of everything: run, round, attempt, the fingerprint of the
   question, S with all its keys, length, k, c. Streams of different digests are independent (HKDF and ChaCha20 as
   pseudorandom functions), and a stream is uniform on words modulo 2^k, because k bits of 64 uniform bits are uniform.
4. Let the graph of masks, restricted to H, be connected. Fix all m_ij outside a spanning tree of H. The masks on the
   edges of the tree reach every list of offsets (o_i) over H with sum zero exactly once: start at the leaves, where
   each edge is determined. So the offsets are uniform among those with sum zero, and (y_i) over H is uniform given its
   sum.
5. If some agents of H were told other sets, those that answered to S are a proper part of H. A proper part of offsets
   that are uniform given their sum is uniform without condition: the server holds random words.

With all pairs (up to `graph.ALL_PAIRS` agents) point 4 always holds. Beyond, tacit.agent.masks.graph bounds the
probability that it fails.

What masks do not do:

* Two sums over different sets differ by what left: S less one agent gives that agent away, if it adds the same numbers
  twice. Every attempt needs fresh noise and is paid for. Each (round, attempt) is claimed once, before anything
  leaves: a deployed agent's claim is the entry of its ledger (tacit.agent.agent).
* The sum has the noise that the honest agents put in; how much is the caller's account.
* One agent that sends garbage spoils the sum, and everybody can see no more than that it is spoilt.
* Whoever reads an agent's run key, then or later, strips its masks: keep it with mode 0600, delete it with the run.
  X25519 does not hold against a quantum computer, also not for messages that somebody keeps until there is one.
"""
