"""Train between institutions, over Flower: each keeps its records, and its own account of what it gives away.

examples:
  tacit federate try                                     a real federation on this machine, in two minutes
  tacit federate try demo --trust sum                    the same behind a secure sum
  tacit federate init study --sites north,south --address fl.example.org --config run.toml
  tacit federate link study/coordinator                  the coordinator: SuperLink, door, each in its terminal
  tacit federate door study/coordinator
  tacit federate register study/coordinator              then the keys of the sites
  tacit federate doctor study/north/node                 each site: whether its node would work, and what to do if not
  tacit federate node study/north/node                   its SuperNode, after tacit agent serve
  tacit federate run study/coordinator                   the coordinator again
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from tacit import jsontext
from tacit.cli import federate_init
from tacit.cli.folding import say
from tacit.cli.options import add_actions, finish
from tacit.errors import SpecError

DEMONSTRATION = Path("federation-demo")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `tacit federate`."""
    actions = add_actions(parser, __doc__ or "")

    federate_init.add_action(actions)
    link = actions.add_parser("link", help="become Flower's SuperLink, on this machine alone")
    node = actions.add_parser("node", help="become the SuperNode of a site")
    for action, run, what in ((link, run_link, "the coordinator's folder"), (node, run_node, "the folder of a node")):
        action.add_argument("folder", type=Path, metavar="DIR", help=what)
        action.add_argument("--print", action="store_true", help="print Flower's command, and do not run it")
        finish(action, run.__doc__, run)
    node.add_argument("--check", action="store_true", help="only say whether the agent service answers this account")

    doctor = actions.add_parser("doctor", help="check what the node of a site needs, and say what to do")
    doctor.add_argument("folder", type=Path, metavar="DIR", help="the folder of a node, or of its site")
    finish(doctor, run_doctor.__doc__, run_doctor)

    door = actions.add_parser("door", help="open the one port that sites reach")
    door.add_argument("--host", default="0.0.0.0", metavar="HOST", help="the address to listen on (default: all)")
    door.add_argument("--port", type=int, metavar="PORT", help="another port than that of flower.toml")
    door.add_argument("--control", type=int, metavar="PORT", help="another port of the SuperLink than flower.toml has")
    register = actions.add_parser("register", help="tell the SuperLink the keys of nodes")
    register.add_argument("--site", metavar="SITE", help="this site alone, whose node may have another key now")
    register.add_argument("--key", type=Path, metavar="FILE", help="its public key (default: nodes/SITE.pub)")
    revoke = actions.add_parser("revoke", help="let the node of a site in no more")
    revoke.add_argument("--site", required=True, metavar="SITE", help="the site")
    renew = actions.add_parser("renew", help="make a new key and certificate of the server, by the same CA")
    run_one = actions.add_parser("run", help="train: start a run or go on with it, and follow it")
    status = actions.add_parser("status", help="say how far a run is, who is there and who is late")
    for action, run in ((door, run_door), (register, run_register), (revoke, run_revoke), (renew, run_renew),
                        (run_one, run_run), (status, run_status)):  # fmt: skip
        action.add_argument("folder", type=Path, metavar="DIR", help="the coordinator's folder")
        finish(action, run.__doc__, run)

    rehearse = actions.add_parser("try", help="start everything on this machine, train, and stop everything")
    rehearse.add_argument("folder", type=Path, nargs="?", default=DEMONSTRATION, metavar="DIR",
                          help="of `init`; where it is new or empty, a demonstration is made there")  # fmt: skip
    rehearse.add_argument("--rounds", type=int, metavar="T", help="rounds of a demonstration that is made (default 10)")
    rehearse.add_argument("--algorithm", metavar="NAME", help="method of a demonstration that is made (default objt)")
    federate_init.add_trust(rehearse)
    finish(rehearse, run_try.__doc__, run_try)


def run_link(options: argparse.Namespace) -> int:
    """Become Flower's SuperLink: stock, TLS, node keys, state on disk, no telemetry, on this machine alone."""
    from tacit.federation import commands

    folder = _coordinator(options.folder, "link")
    if not options.print:
        at = f"{commands.LOOPBACK}:{commands.ports(folder).control}"
        then = f"in other terminals: tacit federate door {folder}, tacit federate register {folder}"
        _tell(f'SuperLink: on {at}, once Flower says "Uvicorn running". Next, {then}', options)
    return _become(commands.superlink(folder), options)


def run_node(options: argparse.Namespace) -> int:
    """Become Flower's SuperNode of a site, stock, once all is well that tacit federate doctor checks.

    A coordinator or an agent service that is not there yet is waited for; where waiting does not help, the reason is
    said, and the exit code is 1. With --check, ask the socket of the agent service, and end.
    """
    from tacit.federation import commands, doctor
    from tacit.federation.accounts import check_owner

    folder = doctor.node_folder(options.folder)
    command = commands.supernode(folder)
    check_owner(folder, "node")
    if options.check:
        return _check_socket(commands.node(folder).socket, options)
    if not options.print:
        doctor.await_ready(folder, lambda line: say(f"tacit: {line}", file=sys.stderr))
        _tell('SuperNode: connected once Flower says "SuperNode ID". With all sites, the coordinator can run', options)
    return _become(command, options)


def _check_socket(path: Path, options: argparse.Namespace) -> int:
    """Say whether the agent service behind a socket answers this account; exit code 1 if it does not."""
    from tacit.federation import doctor

    problem = doctor.socket_problem(path)
    if options.json:
        print(jsontext.dumps({"socket": str(path), "problem": problem}))
    elif problem is None:
        say(f"{path} answers this account")
    else:
        raise doctor.NotReady(problem)
    return 0 if problem is None else 1


def run_doctor(options: argparse.Namespace) -> int:
    """Check all that the node of a site needs, a line each, and say what to do.

    Its key, the socket of the agent service, its port; of the coordinator address, TCP, TLS, certificate, clock,
    whether it knows the key, version. The exit code is 1 where anything is wrong or could not be checked.
    """
    from dataclasses import asdict

    from tacit.federation import doctor, reach

    found = []
    for one in doctor.examine(doctor.node_folder(options.folder)):
        found.append(one)
        if not options.json:
            say(f"{one.name:<12}  {one.state:<11}  {one.text}")
    well = all(one.state in (reach.OK, reach.NOTE) for one in found)
    if options.json:
        checks = [{key: value for key, value in asdict(one).items() if key != "waits"} for one in found]
        print(jsontext.dumps({"well": well, "checks": checks}))
    return 0 if well else 1


def run_door(options: argparse.Namespace) -> int:
    """Open the one port that sites reach. It passes on what nodes may ask of Flower, and nothing else: Flower's own
    port starts runs for whoever reaches it."""
    from tacit.federation import commands, door, nodes

    folder = _coordinator(options.folder)
    ports = commands.ports(folder)
    control = federate_init.port("--control", options.control, ports.control)
    port = federate_init.port("--port", options.port, ports.port)
    behind = f"https://{commands.LOOPBACK}:{control}"
    if not options.quiet and not options.json:  # on stdout: stderr is for its log
        say(f"door: on port {port}, before the SuperLink at {behind}. Next: tacit federate register {folder}")
    door.serve(options.host, port, behind, folder, ports.per_address, lambda: nodes.listens(control))
    return 0


def run_register(options: argparse.Namespace) -> int:
    """Tell the SuperLink the keys of nodes that it does not know, and write their ids into federation.toml."""
    from tacit.federation import nodes

    folder = _coordinator(options.folder, "register")
    names = nodes.register(folder, options.site, options.key)
    if options.json:
        print(jsontext.dumps({"registered": names}))
    else:
        say(f"registered: {', '.join(names) or 'none (every site already has a node id)'}")
        say(f"Next: each site starts its agent service and its node; then tacit federate run {folder}")
    return 0


def run_revoke(options: argparse.Namespace) -> int:
    """Unregister the node of a site: its key opens nothing from now on."""
    from tacit.federation import nodes

    nodes.revoke(_coordinator(options.folder, "revoke"), options.site)
    print(jsontext.dumps({"revoked": options.site}) if options.json else f"revoked: {options.site}")
    return 0


def run_renew(options: argparse.Namespace) -> int:
    """Make a new key and certificate of the server, signed by the same CA: sites need nothing new."""
    from tacit.federation import certificates, commands

    folder = _coordinator(options.folder, "renew")
    certificates.server(folder, [commands.ports(folder).address])
    print(jsontext.dumps({"renewed": str(folder)}) if options.json else "renewed: restart link and door")
    return 0


def run_run(options: argparse.Namespace) -> int:
    """Register nodes that have no id, start a run or go on with one, and follow it to its end. Where the SuperLink or
    the process of the run was killed, the run is started again and goes on from its last round."""
    from tacit.federation import control

    _result(control.run(_coordinator(options.folder, "run"), _shown(options)), options.json)
    return 0


def run_status(options: argparse.Namespace) -> int:
    """Say how far the run is, why it stopped if it did, which agents are there and late, and what each has spent as the
    coordinator knows it."""
    from tacit.federation import control, status

    found = control.standing(_coordinator(options.folder))
    if options.json:
        print(jsontext.dumps(found))
        return 0
    say("\n".join([*status.lines(found), f"the coordinator's process is {found['process']}"]))
    return 0


def run_try(options: argparse.Namespace) -> int:
    """Start SuperLink, door, agent services and SuperNodes here, over TLS with node keys; train; stop all of it.

    Without DIR, or with an empty one, the hospitals of the bundled heart data are the sites of a demonstration.
    """
    from tacit.federation import local_demo
    from tacit.federation.local_demo import LOGS, LocalFederation

    folder, show = options.folder, _shown(options)
    was = local_demo.is_one(folder)
    if not was:
        local_demo.make(folder, options.rounds, options.trust, options.algorithm or "objt")
        show({"text": f"made a demonstration in {folder}: {len(local_demo.sites_of(options.trust))} sites"})
    elif options.rounds:
        raise SpecError(f"{folder} holds a federation: set run.rounds in its coordinator/run.toml, and drop --rounds.")
    elif options.trust and (found := local_demo.trust_of(folder)) != options.trust:
        raise SpecError(f"{folder} holds a federation that trusts {found}: name a new folder, or drop --trust.")
    elif options.algorithm and (found := local_demo.algorithm_of(folder)) != options.algorithm:
        raise SpecError(f"{folder} holds a federation that runs {found}: name a new folder, or drop --algorithm.")
    with LocalFederation(folder) as local:
        local.begin(show)
        out = local.train(show)
    _result(out, options.json)
    if not options.json:
        say(f"ledgers     {folder}/SITE/agent/ledger: they keep what this run cost; logs in {folder / LOGS}")
    return 0


def _become(command: Any, options: argparse.Namespace) -> int:
    if options.print:
        print(jsontext.dumps(vars(command)) if options.json else command.shell())
        return 0
    command.run_here()
    return 0


def _coordinator(folder: Path, action: str | None = None) -> Path:
    """Return the coordinator's folder, given itself or the one of `init`; only its owner may do an `action` there."""
    from tacit.federation.accounts import check_owner
    from tacit.federation.folders import COORDINATOR
    from tacit.federation.plan import FEDERATION

    for one in (folder, folder / COORDINATOR):
        if (one / FEDERATION).is_file():
            if action is not None:
                check_owner(one, action)
            return one
    raise SpecError(f"{folder} is no coordinator's folder (no {FEDERATION}): make one with tacit federate init.")


def _tell(text: str, options: argparse.Namespace) -> None:
    """Say what is expected, beside the log of Flower that follows."""
    if not options.quiet:
        say(text, file=sys.stderr)


def _shown(options: argparse.Namespace) -> Any:
    """What shows a line of a log: as it is, as JSON, or not at all."""

    def show(line: dict[str, Any]) -> None:
        if not options.quiet:
            if options.json:
                print(jsontext.dumps(line), file=sys.stderr, flush=True)
            else:
                say(f"{line.get('at', ''):>25}  {line.get('text', '')}", file=sys.stderr)

    return show


def _result(out: Path, as_json: bool) -> None:
    from tacit.cli.train import show_result
    from tacit.report import output
    from tacit.run.directory import RunDirectory

    output.write([out], out / "report.html")
    show_result(RunDirectory.open(out).result(), out, as_json)
