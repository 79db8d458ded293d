"""What a guarantee does not cover, by the names that result.json gives."""

from __future__ import annotations

from enum import Enum


class Exclusion(Enum):
    """One thing that a guarantee does not cover: what it is, and the rest of the sentence, which says why."""

    SEED = (
        "whoever knows the seed",
        ": simulated noise can be drawn again and subtracted, so train without a seed, with exact noise, before you "
        "release a model",
    )
    SEED_OF_SIMULATION = (  # of a run whose agents cannot be deployed
        "whoever knows the seed",
        ": simulated noise can be drawn again and subtracted, so release nothing of this run; "
        "docs/methods/README.md lists the methods whose agents can be deployed, with exact noise",
    )
    OWN_MAP = (
        "what {map} does beyond one record at a time",
        ": it was probed on synthetic rows, and nothing proves that it keeps no state and looks at no other record",
    )
    TEST_RESULTS = (
        "the test results in result.json and rounds.jsonl",
        " (test error, also by class and by agent), which are exact",
    )
    TRAINING_OBJECTIVE = (
        "the training objective in result.json and rounds.jsonl",
        ", which is exact: with the model, it tells whether a given record was used",
    )
    HYPER_PARAMETERS = ("hyper-parameters chosen by looking at private results", "")
    OTHER_RUNS = (
        "other runs on the same records",
        ", whose costs compose with this one's (a ledger keeps their sum)",
    )
    UNREADABLE_FILES = (
        "whether the files can be read",
        ": without a schema, a malformed cell ends the command",
    )
    UNREADABLE_AT_SITES = (
        "whether a site can read its files",
        ": if it names no schema, a malformed cell keeps its service down",
    )
    COUNTS_AND_NAMES = (
        "the number of records and the names of agents, features and classes",
        ", which are taken to be public",
    )
    PLACE_OF_A_RECORD = (
        "how records were dealt to agents and to the test set",
        ": a record is present or absent after that, in its place",
    )
    WHO_TOOK_PART = (  # where the guarantee is for a whole agent
        "the numbers of agents and of records and the names of agents in this file and in spec.toml",
        ", which tell who took part: keep these files with the server that is trusted",
    )
    NAMES = ("the names of features and classes", ", which are taken to be public")

    def __init__(self, what: str, why: str) -> None:
        self.what, self.why = what, why


OF_A_SEED = (Exclusion.SEED, Exclusion.SEED_OF_SIMULATION)
OF_A_RECORD = (Exclusion.COUNTS_AND_NAMES, Exclusion.PLACE_OF_A_RECORD)
OF_A_CLIENT = (Exclusion.WHO_TOOK_PART, Exclusion.NAMES)
ALWAYS = (Exclusion.HYPER_PARAMETERS, Exclusion.OTHER_RUNS)
