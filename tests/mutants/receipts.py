"""Faults in receipts: what a site tags, what it compares with its ledgers, and what a coordinator keeps."""

from __future__ import annotations

from tests.mutants.fault import Mutant

LEDGER = "tests/privacy/test_receipt.py::"
SITE = "tests/federation/test_receipts.py::"
PUT_BACK = LEDGER + "test_a_ledger_that_was_put_back_with_its_witness_answers_nobody_once_it_is_contradicted"
INVENTED = SITE + "test_a_coordinator_that_invents_a_receipt_is_refused_and_changes_nothing"

MUTANTS = (
    Mutant("a tag says nothing of the agent", "privacy/witness.py",
           "canonical([_LABEL, position.agent, position.first,", "canonical([_LABEL, position.first,",
           LEDGER + "test_a_receipt_of_which_a_field_was_changed_is_not_recognised"),
    Mutant("a tag says nothing of the head", "privacy/witness.py",
           "position.entries, position.head])", "position.entries])",
           LEDGER + "test_a_receipt_of_which_a_field_was_changed_is_not_recognised"),
    Mutant("a site takes any tag", "federation/run_service.py",
           "if one.agent not in self.ledgers or not self.receipts.made(one):", "if one.agent not in self.ledgers:",
           INVENTED),
    Mutant("a site compares ledgers before it has checked all tags", "federation/run_service.py",
           "        for one in shown:\n            if one.agent",
           "        for one in shown:\n            self.ledgers[one.agent].confront(one.position)\n"
           "            if one.agent",
           SITE + "test_one_invented_receipt_among_valid_ones_changes_nothing"),
    Mutant("a site looks at no receipt", "federation/service.py",
           "        self._context.confront(join.receipts)\n", "",
           SITE + "test_an_agent_that_a_receipt_contradicts_answers_nobody_while_the_service_runs"),
    Mutant("a ledger takes any head for its own", "privacy/ledger_file.py",
           "if self._current().had(shown.head):", "if True:", PUT_BACK),
    Mutant("a contradicted ledger goes on in this process", "privacy/ledger_file.py",
           "                self._seen, self._version = (shown.entries, shown.head), -1\n", "", PUT_BACK),
    Mutant("a contradicted ledger goes on after a restart", "privacy/ledger_file.py",
           "                self._witness.write(replace(shown, answered=shown.head))\n", "                pass\n",
           PUT_BACK),
    Mutant("a restore mark lists no head", "federation/restore.py",
           "return sorted({position.head, position.answered} - {\"\"})", "return []",
           SITE + "test_a_site_that_was_put_back_with_its_witnesses_answers_no_coordinator_until_it_is_restored"),
    Mutant("a restore mark lists the last head only", "federation/restore.py",
           "{position.head, position.answered}", "{position.head}",
           SITE + "test_a_restored_site_joins_the_next_run_of_a_coordinator_that_had_heard_its_last_answer"),
    Mutant("a service makes do without its key of receipts", "federation/ledger_files.py",
           "    except FileNotFoundError:\n        raise LedgerMissing(\n            f\"the key of receipts",
           "    except FileNotFoundError:\n        return ReceiptKey(b\"\")\n"
           "        raise LedgerMissing(\n            f\"the key of receipts",
           SITE + "test_a_service_without_its_key_of_receipts_does_not_start"),
    Mutant("a backup leaves out the key of receipts", "federation/ledger_files.py",
           "            copy_secret(key, draft / key.name)\n", "            pass\n",
           SITE + "test_a_service_without_its_key_of_receipts_does_not_start"),
    Mutant("a coordinator shows every site all receipts", "federation/kinds.py",
           "tuple(receipts[name] for name in agents if name in receipts)", "tuple(receipts.values())",
           SITE + "test_a_site_is_shown_the_receipts_of_its_own_agents_only"),
    Mutant("a coordinator forgets receipts between runs", "federation/coordinator.py",
           "        receipts.write(folder, known)\n", "        pass\n",
           SITE + "test_a_coordinator_keeps_the_last_receipt_of_each_agent_and_the_result_holds_its_head"),
    Mutant("a checkpoint holds no receipts", "federation/remote_engine.py",
           "        self.receipts |= kept_receipts.later(", "        _ = dict() | kept_receipts.later(",
           SITE + "test_a_coordinator_that_is_killed_in_a_run_shows_what_it_had_heard"),
    Mutant("a checkpoint replaces later receipts", "federation/receipts.py",
           "or one.entries > known[name].entries", "or True",
           SITE + "test_a_checkpoint_replaces_no_later_receipt_of_the_same_ledger"),
    Mutant("receipts are part of what is joined", "federation/kinds.py",
           "field(default=(), compare=False)", "field(default=())",
           SITE + "test_receipts_are_no_part_of_what_is_joined"),
    Mutant("an agent takes an evaluator that rounds more than its noise covers", "agent/agent.py",
           "if one.sensitivity(asked.noise.norm, agreement.adjacency) > asked.sensitivity(",
           "if 0 * asked.sensitivity(",
           "tests/agent/test_agent.py::test_an_evaluator_that_rounds_more_than_the_noise_covers_is_refused"),
)  # fmt: skip
