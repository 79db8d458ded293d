"""What a card says, section by section, from the directory of a run alone: no record is looked at."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from tacit import toml
from tacit.card import audited, data_section, markdown, page, quality
from tacit.card.blocks import Blank, Block, Bullets, Card, Code, Facts, Notice, Section, Signatures, Table, Text
from tacit.card.python_call import is_given, python_call
from tacit.errors import IncompatibleError, RunDirectoryError
from tacit.measures import judge
from tacit.privacy.budget import upward
from tacit.privacy.risk import IF_EXACT
from tacit.report import headline, source
from tacit.report.audience import Audience, Placeholders
from tacit.report.runs import Recorded, text
from tacit.report.tested import agent_records
from tacit.run.build import unread
from tacit.run.model import Model

LISTED = 50  # agents at most that a card lists by name
UNIT = {
    "zero_out": "one record, present or absent", "replace_one": "one record, replaced by another",
    "client": "one agent with all of its records",
}  # fmt: skip
LIMITS = (
    "Effects of columns are what the model has learnt. They are no causes, and noise for privacy has moved them.",
    "The model was tested on records like those that it was trained on. Elsewhere, or later, it may be worse.",
    "What holds for all test records together need not hold for a group of people that this card does not name.",
)
SIMULATED = f"The noise was simulated. All that this section says would hold {IF_EXACT}."
COMMAND = "tacit train --config spec.toml --out again"
ROLES = ("Prepared by", "Reviewed by (data protection)", "Approved by (review board)")


@dataclass(frozen=True)
class Filled:
    """What a person tells for the card; what is empty becomes a line to write on."""

    purpose: str = ""
    contact: str = ""
    audit: audited.Audit | None = None


NOTHING = Filled()


def card(directory: Path, filled: Filled, audience: Audience = Audience.OWNERS) -> Card:
    """Return the card of a finished run."""
    if audience.public and filled.audit is not None:
        raise IncompatibleError(
            "a shared card has no audit, because some attacks run on records: drop --audit, or --share."
        )
    found = source.read(directory)
    if audience.public:
        Model.read(directory)  # an error of it names the directory: it is for the owner, and not for the card
        found = found.shared(audience, 1, Placeholders())
    run = found.single
    if run is None or not (directory / "model.npz").is_file():
        raise RunDirectoryError(f"{directory} is no finished run: a card is of one run, the --out of `tacit train`.")
    sections = [
        Section("In short", _short(run, audience.public)),
        Section("What the model is for", _purpose(filled)),
        Section("Data", data_section.blocks(directory, run)),
        Section("Agents", _agents(run)),
        Section("Privacy", _privacy(run)),
        *([] if audience.public else [Section("Audit", audited.blocks(filled.audit, run))]),
        *([Section("How good the model is", quality.measured(run))] if judge(run.summary) else []),
        Section("What the model has learnt", quality.effects(found.learnt)),
        Section("Limits", [Text("Not covered by the guarantee:") if run.privacy.not_covered else Text(
            "There is no guarantee that could cover anything."), Bullets(run.privacy.not_covered),
            Text("Beyond privacy:"), Bullets(LIMITS if judge(run.summary) else LIMITS[:1])]),
        Section("Signatures", [Text("Whoever signs has read this card and its limits."), Signatures(ROLES)]),
        Section("Appendix: how to reproduce", _reproduce(directory, run)),
    ]  # fmt: skip
    notice = Notice(audience.notice("card", "tacit card"), audience.public)
    return Card(f"Model card: {found.title[0].lower()}{found.title[1:]}", notice, headline.about(run), sections)


def _short(run: Recorded, page_is_public: bool) -> list[Block]:
    told = run.privacy
    found = told.status(page_is_public)
    budget = f"{told.budget}. " if told.private else ""
    name = f"privacy {IF_EXACT}" if told.simulated else "privacy"
    measured = [("quality (exact)", quality.sentence(run))] if judge(run.summary) else []
    pairs = [*measured, (name, budget + told.promise)]
    if told.private:
        pairs.append(("would be trusted" if told.simulated else "trusted", ". ".join(told.trusted)))
    return [Text(f"{found.words}. {found.reason}", "good" if found.kind == "private" else "bad"), Facts(pairs)]


def _purpose(filled: Filled) -> list[Block]:
    told: list[Block] = []
    for label, given, lines in (("Purpose", filled.purpose, 3), ("Contact", filled.contact, 1)):
        told.append(Facts([(label, given)]) if given.strip() else Blank(label, lines))
    return [*told, Blank("Not to be used for", 2)]


def _agents(run: Recorded) -> list[Block]:
    told = run.summary
    counts = agent_records(told)
    total = f"{told.get('agents', '?')} agents hold {told.get('records', '?')} training records"
    total += "." if counts else "; the result does not list them."
    if len(counts) > LISTED:
        least, *_, most = sizes = sorted(n for _, n in counts)
        middle = sizes[len(sizes) // 2]
        return [Text(f"{total} The smallest has {least:,}, the one in the middle {middle:,}, the largest {most:,}.")]
    took = told.get("took_part") if isinstance(told.get("took_part"), dict) else {}
    columns = ["agent", "training records", *(["site", "rounds answered", "epsilon spent", "at most"] if took else [])]
    rows = [[name, f"{n:,}", *(_took(took.get(name)) if took else [])] for name, n in counts]
    return [Text(total), *([Table("Training records of each agent", columns, rows)] if rows else [])]


def _took(one: object) -> list[str]:
    """Return what a federation tells of an agent."""
    if not isinstance(one, dict):
        return ["-"] * 4
    spent = ["-" if not isinstance(one.get(key), int | float) else upward(float(one[key]))
             for key in ("epsilon", "epsilon_at_most")]  # fmt: skip
    return [str(one.get("site", "-")), str(one.get("released", "-")), *spent]


def _privacy(run: Recorded) -> list[Block]:
    told, said = run.summary, run.privacy
    if not run.private:
        return [Text(said.promise, "bad"), Text(f"In full: {said.sentence}")]
    pairs = [
        ("in full", said.sentence),
        ("budget", said.budget),
        ("protects", UNIT.get(str(told.get("adjacency")), str(told.get("adjacency")))),
        *said.facts,
        ("noise", text(told.get("noise"))),
        ("accountant", text(told.get("accountant"))),
        ("releases", text(told.get("releases"))),
    ]
    blocks: list[Block] = [Text(SIMULATED, "bad")] if said.simulated else []
    blocks += [Text(said.promise, "lead"), Facts([pair for pair in pairs if pair[1] != "none"])]
    return [*blocks, *_ledgers(told)]


def _ledgers(told: Mapping[str, Any]) -> list[Block]:
    """Return what each agent's ledger holds at the end of the run."""
    heads = told.get("ledger_heads")
    if not isinstance(heads, dict) or not heads:
        return [Text("No ledger was kept.")]
    totals = told.get("ledger_totals") if isinstance(told.get("ledger_totals"), dict) else {}
    rows = [[str(name), *([_spent(totals.get(name))] if totals else []), str(head)]
            for name, head in list(heads.items())[:LISTED]]  # fmt: skip
    more = f", the first {LISTED} of {len(heads)}" if len(heads) > LISTED else ""
    columns = ["agent", *(["spent on these data over all runs"] if totals else []), "head"]
    return [Text("Each agent keeps a ledger of what it has released. Its head is a hash of the whole ledger: whoever "
                 "holds the ledger can show that it is the one of this run (tacit ledger)."),
            Table(f"Ledgers at the end of this run{more}", columns, rows)]  # fmt: skip


def _spent(one: object) -> str:
    """Write the total of a ledger, and its limit if it has one."""
    if not isinstance(one, dict) or not isinstance(one.get("epsilon"), int | float):
        return "-"
    limit = f" of {one['limit']:g} allowed" if isinstance(one.get("limit"), int | float) else ""
    delta = f" (delta {one['dp_delta']:g})" if isinstance(one.get("dp_delta"), int | float) else ""
    return f"epsilon {upward(float(one['epsilon']))}{limit}{delta}"


def _reproduce(directory: Path, run: Recorded) -> list[Block]:
    told = run.summary
    hashes = [(name, str(told[key])) for name, key in (
        ("version of tacit", "version"), ("hash of spec.toml", "spec_hash"), ("hash of model.npz", "model_hash"),
        ("hash of rounds.jsonl", "rounds_hash"), ("seal of result.json", "seal")) if told.get(key)]  # fmt: skip
    about, way, by = "Save the specification below as spec.toml, with your own paths.", "command", COMMAND
    if is_given(run):
        way, (about, by) = "call", python_call(directory, run)
    exact = run.private and not run.privacy.simulated
    again = f"Exact noise is new every time: the same {way} gives another model, of the same law." if exact else (
        f"The seed decides the noise: the same {way} gives the same model.")  # fmt: skip
    idle = unread(run.values)
    spec = toml.text({key: value for key, value in run.values.items() if key not in idle})
    return [
        Facts(hashes), *([Text(f"{about} {again}"), Code(by)] if by else [Text(about)]),
        Text("The specification, without the keys that the run does not read:"), Code(_without_paths(spec)),
    ]  # fmt: skip


def _without_paths(spec: str) -> str:
    """Return a spec whose ledger, and whose absolute paths, are their last part: a card leaves the owner's machine."""
    lines = spec.splitlines()
    for i, line in enumerate(lines):
        key, found, value = line.partition(" = ")
        try:
            path = json.loads(value) if found else None
        except ValueError:  # no text
            continue
        if not isinstance(path, str) or not (name := PureWindowsPath(path).name):  # which knows both kinds of slashes
            continue
        if key == "ledger" or PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute():
            lines[i] = f"{key} = {json.dumps(name, ensure_ascii=False)}"
    return "\n".join(lines)

def write(
    directory: Path, out: Path | None = None, filled: Filled = NOTHING, audience: Audience = Audience.OWNERS
) -> dict[str, Path]:
    """Write the card as Markdown and as HTML into `out`, or beside the run; return the two files by kind.

    Each is written whole or not at all.
    """
    found = card(directory, filled, audience)
    place, name = directory if out is None else out, "card-shared" if audience.public else "card"
    texts = {
        "markdown": (place / f"{name}.md", markdown.write(found)), "html": (place / f"{name}.html", page.write(found)),
    }  # fmt: skip
    try:
        place.mkdir(parents=True, exist_ok=True)
        for path, text in texts.values():
            draft = path.with_name(f".{path.name}.draft")
            draft.write_text(text, encoding="utf-8")
            draft.replace(path)
    except OSError as error:
        raise RunDirectoryError(f"cannot write into {place}: {error.strerror}. Give another --out.") from None
    return {kind: path for kind, (path, _) in texts.items()}
