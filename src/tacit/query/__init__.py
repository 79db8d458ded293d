"""Queries of an agent's records: frozen descriptions, each with a proof of how far one record moves its value.

    query      the protocol: parameters, view, shape, sensitivity; an evaluator; both over the records of one agent
    records    what a query reads: raw cells, encoded columns or mapped rows, with absent records blank
    registry   the queries by name: a query is one file and one line
    gradient   sum_i x_i a_i^T at a public model, for any loss, and its evaluator in NumPy
    moments    X'X, X'Y and y'y, each with a public weight
    counts     histograms of raw cells or of scores over public edges

Only the evaluator of a query touches records. It knows no noise, no ledger and no transport.
"""
