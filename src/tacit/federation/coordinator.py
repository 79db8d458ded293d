"""The coordinator of a federation: it reads its folder, gathers the sites, and starts or resumes the run.

The run is an ordinary one (tacit.run): its directory, records, checkpoint and result are those of `tacit train`. What
differs is the engine (tacit.federation.remote_engine), and that a checkpoint is on disk before any question leaves.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tacit import toml
from tacit.errors import InputError, Interrupted, RunDirectoryError, SpecError, TacitError
from tacit.federation import asked, facts, receipts, sum_files
from tacit.federation.closing import FILE as CLOSING
from tacit.federation.closing import ClosingState, close, close_finished, read_meet, withdraw
from tacit.federation.join_phase import FILE, JoinPhase, Participants
from tacit.federation.log import Log, silent
from tacit.federation.messages import Join, Meet, Receipt, Transport
from tacit.federation.plan import RUN, FederationConfig, read_plan
from tacit.federation.remote_engine import RemoteEngine
from tacit.federation.status import StatusWriter
from tacit.jsontext import Values
from tacit.lock import locked
from tacit.run import build
from tacit.run.deployment import Deployment
from tacit.run.directory import RunDirectory
from tacit.run.result import Result
from tacit.run.run import Run
from tacit.run.setup import Setup
from tacit.run.spec import Spec
from tacit.run.train import Listener, nobody, together
from tacit.types import Federation, Shard

RUNS = "runs"


def train(
    folder: Path, transport: Transport, listener: Listener = nobody, log: Log = silent,
    clock: Callable[[], float] = time.monotonic,
) -> Result:  # fmt: skip
    """Train the run of a coordinator's folder; a run that was started and has no result is continued.

    Suspended where too many agents are missing: call it again, and the run goes on.
    """
    plan, values = read_plan(folder), asked.read_run(folder)
    with locked(folder, wait=False) as ours:
        if not ours:
            raise RunDirectoryError(f"{folder} is in use: another coordinator runs there. Wait, or stop it.")
        status = StatusWriter(folder, plan)
        joining = JoinPhase(transport, plan.faults, log, status.waiting, clock)
        try:
            result = _trained(folder, plan, values, joining, listener, status)
        except Interrupted as stop:
            status.ended(str(stop))
            raise Interrupted(f"{stop}; give the same command again to continue") from None
        except TacitError as error:
            status.ended(str(error))
            raise
        status.ended()
        return result


def _trained(
    folder: Path, plan: FederationConfig, values: Values, joining: JoinPhase, listener: Listener, status: StatusWriter
) -> Result:
    """Gather the sites for a new run, or find those of the one that was started; train, and close the run."""
    log, known = joining.log, receipts.read(folder)
    test = asked.test_records(folder, values)
    going = unfinished(folder)
    if going is not None and not (going.path / FILE).exists():  # killed before anybody was asked to join
        going.discard()  # unless a round was done
        going = unfinished(folder)
    if going is None:
        check_unused(folder, values)
        participants = joining.gathered(plan, asked.declared(folder, values))
        plan.check_records(participants.sites)
        close_finished(joining, folder / RUNS, participants.sites, log)
        joint = _joint(plan, values, participants, test)
        directory = RunDirectory.create(next_run(folder, plan.name), joint.spec)
        participants.write(directory)
    else:
        directory, participants = going, Participants.read(going.path)
        participants.check(plan)
        plan.check_records(participants.sites)
        joint = _joint(plan, values, participants, test, directory.spec())
    log(f"the run is in {directory.path}", directory=str(directory.path))
    if told := sum_files.counts_on_fewer(joint.spec, {site: len(agents) for site, agents in joint.sites.items()}):
        log(f"warning: {told}")
    try:
        run = Run(joint.spec, joint.federation, joint.setup, directory)
        host = partial(_host, joint, joining, status, known)
        try:
            result = together([run], status.heard(listener), host=host, save_every_round=True)[0]
        finally:
            _keep(known, folder, log)
        assert status.remote is not None  # the host of the run
        close(joining, directory.path, status.remote.strategy.present, status.remote.strategy.over)
    except InputError:
        directory.discard()  # unless a round was done
        raise
    return result


def _keep(known: Mapping[str, Receipt], folder: Path, log: Log) -> None:
    """Keep the receipts for the next run; those of a run that goes on are in its checkpoint too."""
    try:
        receipts.write(folder, known)
    except OSError as error:
        log(f"warning: {folder / receipts.FILE} cannot be written ({error}): the next run shows earlier receipts")


def close_all(
    folder: Path, transport: Transport, log: Log = silent, clock: Callable[[], float] = time.monotonic
) -> None:
    """Tell the sites of a folder which runs have ended, where a coordinator was killed before it could."""
    plan = read_plan(folder)
    joining = JoinPhase(transport, plan.faults, log, lambda _: None, clock)
    close_finished(joining, folder / RUNS, [site.name for site in plan.sites], log)


def unfinished(folder: Path) -> RunDirectory | None:
    """Return the run of a folder that was started and has no result; None where the next run is a new one."""
    # drafts of directories, which a process that was killed has left, begin with a dot
    found = sorted(path for path in (folder / RUNS).glob("[!.]*") if (path / "spec.toml").is_file())
    left = [path for path in found if not RunDirectory(path).finished]
    if len(left) > 1:
        names = " and ".join(str(path) for path in left)
        raise RunDirectoryError(f"{names} are not finished: move all but one away, and that one is continued.")
    return RunDirectory.open(left[0]) if left else None


def check_unused(folder: Path, values: Values) -> None:
    """Refuse the name of a finished run for a new one: ledgers of the sites know rounds by the name of their run."""
    name = values.get("run.name")
    for path in sorted((folder / RUNS).glob("[!.]*/spec.toml")) if name else ():
        with suppress(SpecError):  # a damaged run is another command's to report
            if toml.read(path).get("run.name") == name:
                raise RunDirectoryError(
                    f"{RUN}: run.name = {name!r} is the name of the run in {path.parent}, which is finished. A name "
                    "is used once, because ledgers know rounds by it: choose another, and ask each site to list it in "
                    "agree.runs of its site.toml."
                )


def next_run(folder: Path, name: str) -> Path:
    """Return the path of a new run, such as runs/hearts-1, with the first number that is not taken."""
    number = next(n for n in range(1, 10**9) if not (folder / RUNS / f"{name}-{n}").exists())
    return folder / RUNS / f"{name}-{number}"


@dataclass(frozen=True, eq=False)
class CoordinatedRun:
    """A run as its coordinator has it: without records, except those of a test set."""

    plan: FederationConfig
    participants: Participants
    spec: Spec
    federation: Federation
    setup: Setup

    @property
    def join(self) -> Join:
        """Return what every site is asked to join."""
        agents, spec = self.participants.agents, self.spec
        agreed = facts.agreed(spec, self.participants.public, agents, self.federation, self.deployment)
        assert spec.run.name is not None  # tacit.federation.asked names every run
        return Join(spec.run.name, spec.toml(), agreed, agents)

    @property
    def sites(self) -> dict[str, list[str]]:
        """Return the agents of each site, by name."""
        return {name: [who for who, _ in agents] for name, agents in self.participants.sites.items()}

    @property
    def deployment(self) -> Deployment:
        """Return what the agents are asked."""
        return self.setup.deployment


def _joint(
    plan: FederationConfig, values: Values, participants: Participants, test: Federation | None,
    started: Spec | None = None,
) -> CoordinatedRun:  # fmt: skip
    """Build the run from public facts; refuse a run.toml that is not that of a run which was started."""
    shard: Shard | None = asked.shard_of(test, participants.public)
    hollow = facts.hollow(plan.name, participants.public, participants.agents, shard)
    sites = {name: [who for who, _ in agents] for name, agents in participants.sites.items()}
    named = started.run.name if started and "run.name" not in values else None
    spec = asked.spec_of(sum_files.completed(values, sites), plan.name, hollow, named)
    if started is not None and spec != started:
        raise RunDirectoryError(
            f"a run is not finished, and {RUN} asks for another: restore {RUN} to finish it, or move the folder of "
            "that run away to start a new one."
        )
    federation = build.transformed(spec, hollow)
    setup = build.setup(spec, federation)
    for name, agents in sites.items():
        facts.check_size(name, len(agents), setup.deployment)
    plan = dataclasses.replace(plan, faults=asked.resolved(plan.faults, setup.deployment))
    return CoordinatedRun(plan, participants, spec, federation, setup)


def _host(
    joint: CoordinatedRun, joining: JoinPhase, status: StatusWriter, known: dict[str, Receipt], runs: Sequence[Run],
    _files: ExitStack,
) -> RemoteEngine:  # fmt: skip
    """Let all sites join, and return the engine. A run that has begun lets sites join again when they ask for it."""
    (run,) = runs
    run.check_data()
    try:
        meet = _joined(joint, joining, run, known)
    except InputError:  # a site refuses
        withdraw(joining, joint.join, joint.sites)
        raise
    remote = RemoteEngine(
        joint.join, joint.sites, joint.deployment, joining.transport, joint.plan.faults, joining.log, status.asking,
        lambda remote: run.checkpoint(remote.save(0)), joining.clock, meet, known,
    )  # fmt: skip
    status.begin(run, remote)
    run.told_by_host = partial(status.told, remote)
    return remote


def _joined(joint: CoordinatedRun, joining: JoinPhase, run: Run, known: Mapping[str, Receipt]) -> Meet | None:
    """Let all sites join a run that has not begun; in a secure sum, return the keys of all agents."""
    assert run.directory is not None
    join, begun = joint.join, bool(run.directory.saved())
    if joint.deployment.in_sum is None:
        if not begun:
            joining.joined(join, joint.sites, known)
        if not (run.directory.path / CLOSING).exists():  # version 0.2 wrote none
            ClosingState(Meet(join.run, join.agreed, ())).write(run.directory.path)
        return None
    if begun:
        return read_meet(join, run.directory.path)
    meet = joining.met(join, joint.sites, known)
    ClosingState(meet).write(run.directory.path)
    return meet
