"""What an agent agrees to when it joins a run: fixed once, written down, and the most that the run can ever cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from tacit.errors import SpecError
from tacit.jsontext import Values
from tacit.privacy.release import Release, describe, restored


@dataclass(frozen=True)
class Terms:
    """The terms of one run at one agent. Every number here is public."""

    run: str  # its name, which no other run has
    spec: str  # the hash of what was agreed: the spec of the run, the shape of its model and its penalties
    rounds: int  # T: rounds 1 .. T may be asked, each once
    release: Release  # what a round releases about one record
    adjacency: str
    scale: float  # of the noise, as the agent draws it
    dp_delta: float
    epsilon: float = field(compare=False)  # the cap: all its rounds together, at dp_delta, by today's accountant

    def __post_init__(self) -> None:
        if not self.run or not self.spec:
            raise SpecError("the terms of a run need its name and the hash of its spec: one of them is empty.")
        if self.rounds < 1:
            raise SpecError(f"a run has at least one round, got {self.rounds}.")

    def described(self) -> Values:
        """The terms as JSON."""
        return asdict(self) | {"release": describe(self.release)}

    @classmethod
    def restored(cls, description: Values) -> Terms:
        """The terms that `described` described."""
        return cls(**{**description, "release": restored(description["release"])})
