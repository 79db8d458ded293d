"""Faults put into deployed agents, runs and pages on purpose, one at a time: each must be found by the test beside it.

    make mutants                       every fault, about a second or two each
    python -m tests.mutants gate ...   those whose name holds one of these words

A fault is a piece of text in one file and what stands there instead. The tree is copied, the fault put in, the test run
in the copy: it must fail there, and pass without the fault. A fault whose text is no longer in its file is an error, so
that this list follows the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COPIED = ("src", "tests", "pyproject.toml", "records", "docs", "README.md")
AGENT, RUNS = "tests/guarded/test_agent.py::", "tests/guarded/test_runs.py::"
MOVED = "tests/conformance/test_deployed_sensitivity.py::"
LEDGER, EXACT = "tests/privacy/test_ledger.py::", "tests/privacy/test_exact.py::"
BESIDE = "tests/engine/test_side_by_side.py::"
AUDIT = "tests/audit/test_audits.py::"
METHODS = "tests/run/test_methods.py::"
NOISE = "tests/run/test_noise.py::"
MAPS, MAPPED = "tests/features/test_maps.py::", "tests/features/test_federations.py::"
MESSAGE, PROMISES = "tests/methods/test_onemessage.py::", "tests/conformance/test_promises.py::"


@dataclass(frozen=True)
class Mutant:
    """A fault: its name, the file below src/tacit, what stands there, what it becomes, and the test that finds it."""

    name: str
    file: str
    old: str
    new: str
    test: str


MUTANTS = (
    Mutant("a map sees blocks of any size", "features/map.py",
           "if len(rows) < n:", "if False:",
           MAPS + "test_a_product_in_float32_has_the_same_bits_for_a_record_alone_and_among_others"),
    Mutant("an absent record gets features", "data/transform.py",
           "own[~one.present] = 0", "pass",
           MAPPED + "test_an_absent_record_has_no_features_after_the_map"),
    Mutant("waves keep their length", "features/columns.py",
           " / np.linalg.norm(waves, axis=1, keepdims=True)", "",
           MAPS + "test_columns_that_a_map_keeps_apart_are_functions_of_one_column_each"),
    Mutant("a recipe imports what it names", "features/registry.py",
           'if name == "own" and constants.get("where") != trusted:', "if False:",
           MAPS + "test_a_recipe_runs_no_code_that_its_reader_did_not_name"),
    Mutant("a function of one's own is not asked among other rows", "features/own.py",
           "if again is None or not np.array_equal(again[rows], expected[rows]):", "if again is None:",
           MAPS + "test_a_function_that_is_no_map_of_one_record_is_refused"),
    Mutant("a record for which one's own function fails ends the run", "features/own.py",
           "    except (Exception, SystemExit):\n        return None",
           "    except ZeroDivisionError:\n        return None",
           MAPS + "test_what_ones_own_function_does_with_a_record_decides_nothing_for_others"),
    Mutant("the step forgets the curvature", "run/rules.py",
           "return STABLE * 2 * (1 + momentum)", "return 9 * 2 * (1 + momentum)",
           MAPPED + "test_the_clip_rises_as_noise_falls_and_steps_stay_stable"),
    Mutant("clipping removed on the exact path", "guarded/sums.py",
           "residual = bound.shrink(loss.residual(score, shard.y), x_norm)", "residual = loss.residual(score, shard.y)",
           MOVED + "test_one_record_moves_a_deployed_agent_no_further_than_its_noise_is_scaled_for"),
    Mutant("sensitivity of replace_one halved on the exact path", "guarded/half.py",
           "self.agent.problem.weight * self.agent.variant.adjacency.value * self.agent.constant_bound",
           "self.agent.problem.weight * self.agent.constant_bound",
           MOVED + "test_the_worst_record_comes_near_the_sensitivity_and_so_no_half_of_it_would_do"),
    Mutant("exact noise from a seed", "privacy/exact.py",
           "return os.urandom(n)", "import random\n    return random.Random(1234).randbytes(n)",
           AGENT + "test_noise_is_a_function_of_what_the_operating_system_drew_and_of_nothing_else"),
    Mutant("a Laplace spec draws Gaussian noise", "guarded/half.py",
           "return Law.LAPLACE if isinstance(self.agent.variant.mechanism, Laplace) else Law.GAUSSIAN",
           "return Law.GAUSSIAN",
           AGENT + "test_the_noise_has_the_law_and_the_scale_that_were_agreed"),
    Mutant("the model at the agent's own z not checked", "guarded/half.py",
           'Numbers(self.shape).checked("the model that the agent linearises at", self._point(own, t, body), t)',
           "pass",
           AGENT + "test_where_the_gradient_is_taken_at_the_agents_own_z_that_is_checked_too"),
    Mutant("the state of the agent not checked", "guarded/half.py",
           'self.state.checked({"z": own.z, "dual": own.dual}, t)', "pass",
           AGENT + "test_an_agent_whose_own_state_left_the_range_does_not_answer"),
    Mutant("rounding of the sum not counted", "guarded/half.py",
           "return bound * (1 + 4 * (n + 4) ** 2 * UNIT_ROUNDOFF)", "return bound",
           AGENT + "test_the_scale_counts_the_bound_the_adjacency_the_grid_and_the_rounding_of_the_sum"),
    Mutant("the gate does not look at the shape", "message.py",
           " or value.shape != self.shape:", ":",
           AGENT + "test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused"),
    Mutant("the gate looks at the size in place of the shape", "message.py",
           "value.shape != self.shape:", "value.shape[-2:] != self.shape:",
           AGENT + "test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused"),
    Mutant("the gate does not look at the type of numbers", "message.py",
           " or value.dtype != np.float64", "",
           AGENT + "test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused"),
    Mutant("the gate takes subclasses of arrays", "message.py",
           "type(value) is not np.ndarray", "not isinstance(value, np.ndarray)",
           AGENT + "test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused"),
    Mutant("the gate takes any size of entries", "message.py",
           "if not np.abs(own).max(initial=0.0) <= self.largest:", "if False:",
           AGENT + "test_a_model_is_a_finite_float64_array_of_the_agreed_shape_or_it_is_refused"),
    Mutant("the gate keeps the sender's own array", "message.py",
           'own = np.array(value, dtype=np.float64, order="C")', "own = value",
           AGENT + "test_a_model_that_is_changed_after_the_gate_changes_nothing"),
    Mutant("the gate takes any penalty", "message.py",
           "if type(value) not in (float, np.float64) or value != agreed:", "if False:",
           AGENT + "test_a_penalty_is_the_agreed_one_or_it_is_refused"),
    Mutant("the gate takes further parts", "message.py",
           "set(body) != set(self.parts)", "not set(body) >= set(self.parts)",
           AGENT + "test_a_question_of_another_run_or_with_other_parts_is_refused"),
    Mutant("the gate takes another run's questions", "guarded/gate.py",
           '            ("run", question.run, self.terms.run),\n', "",
           AGENT + "test_a_question_of_another_run_or_with_other_parts_is_refused"),
    Mutant("the gate takes another spec's questions", "guarded/gate.py",
           '            ("spec", question.spec, self.terms.spec),\n', "",
           AGENT + "test_a_question_of_another_run_or_with_other_parts_is_refused"),
    Mutant("the gate takes any round", "guarded/gate.py",
           "if type(t) is not int or not 1 <= t <= self.terms.rounds:", "if type(t) is not int:",
           AGENT + "test_a_round_is_one_of_those_agreed_or_it_is_refused"),
    Mutant("a missed round is answered later", "privacy/terms.py",
           "if not self.last < key.round <= terms.rounds:", "if not 0 < key.round <= terms.rounds:",
           AGENT + "test_rounds_may_be_missed_and_are_then_gone"),
    Mutant("terms may change under the same name", "privacy/terms.py",
           "if self.terms is not None and self.terms != terms:", "if False:",
           AGENT + "test_the_terms_of_a_run_are_agreed_once"),
    Mutant("an agent does not join", "guarded/agent.py",
           "self.store.join(self.data_id, self.terms)", "pass",
           AGENT + "test_rounds_may_be_missed_and_are_then_gone"),
    Mutant("a round is drawn again without a ledger", "privacy/terms.py",
           "if key in self._answered:", "if False:",
           AGENT + "test_a_round_answered_before_gets_the_same_answer_again_and_is_never_drawn_again"),
    Mutant("a ledger does not ask whether the whole run fits", "privacy/ledger.py",
           "self._check_limit(data_id, terms.release, max(terms.rounds - place.releases, 0))", "pass",
           LEDGER + "test_a_run_that_does_not_fit_under_the_limit_is_not_joined"),
    Mutant("a ledger does not count what was released", "privacy/history.py",
           "self.spent.setdefault(key.data_id, Counter())[release] += 1",
           "self.spent.setdefault(key.data_id, Counter())[release] = 1",
           LEDGER + "test_the_limit_is_over_all_runs_on_the_same_data_and_only_those"),
    Mutant("agents join before all ledgers were asked", "run/deploy.py",
           "        ledger.check_terms(data_id, ours)\n", "        pass\n",
           RUNS + "test_no_agent_joins_a_run_that_another_one_refuses"),
    Mutant("a run begins that the limit it brings will end", "run/deploy.py",
           "if p.limit and cap > p.limit:", "if False:",
           RUNS + "test_a_run_that_its_ledgers_could_not_pay_to_the_end_is_refused_before_anything_is_written"),
    Mutant("a run whose agents joined and did nothing cannot go on", "run/deploy.py",
           "if released and not started:", "if (data_id, ours.run) in book.places and not started:",
           RUNS + "test_a_run_killed_after_its_agents_joined_and_before_its_first_round_goes_on"),
    Mutant("half of the noise is agreed on", "run/deploy.py",
           "half.adjacency, scale_of(half), dp_delta, cap", "half.adjacency, scale_of(half) / 2, dp_delta, cap",
           AGENT + "test_the_noise_has_the_law_and_the_scale_that_were_agreed"),
    Mutant("half of the noise is drawn", "guarded/agent.py",
           "release(value, self.terms.scale, half.law)", "release(value, self.terms.scale / 2, half.law)",
           AGENT + "test_the_noise_has_the_law_and_the_scale_that_were_agreed"),
    Mutant("an agent takes terms with less noise", "guarded/agent.py",
           " or not terms.scale >= scale_of(half):", ":",
           AGENT + "test_no_agent_is_made_on_terms_that_are_not_those_of_its_noise"),
    Mutant("an agent takes terms of another release", "guarded/agent.py",
           "if theirs != (half.rounds, half.release, half.adjacency) or", "if",
           AGENT + "test_no_agent_is_made_on_terms_that_are_not_those_of_its_noise"),
    Mutant("rows are not held to the l2 norm that is charged", "problem/sensitivity.py",
           "longest = ((self.norm, self.row_norm), (Norm.L2, self.euclidean_row))",
           "longest = ((self.norm, self.row_norm),)",
           AGENT + "test_a_declared_bound_is_made_true_and_a_record_beyond_it_is_no_reason_to_refuse"),
    Mutant("half of the l2 norm is charged", "admm/compatible.py",
           "return LaplaceRelease(1 / mechanism.multiplier, min(ratio, 1.0) / mechanism.multiplier)",
           "return LaplaceRelease(1 / mechanism.multiplier, min(ratio, 1.0) / mechanism.multiplier / 2)",
           MOVED + "test_one_record_moves_a_deployed_agent_no_further_than_its_noise_is_scaled_for"),
    Mutant("constants of a run are not looked at", "guarded/half.py",
           "        self._check_constants()\n", "",
           AGENT + "test_a_run_whose_constants_could_overflow_is_refused"),
    Mutant("constants are looked at in the first round alone", "guarded/half.py",
           "for t in (1, self.rounds)]", "for t in (1,)]",
           AGENT + "test_a_run_whose_constants_could_overflow_is_refused"),
    Mutant("the dual is not carried on", "guarded/half.py",
           "return Local(answer, dual, rho)", "return Local(answer, own.dual, rho)",
           AGENT + "test_a_deployed_agent_computes_what_its_method_computes"),
    Mutant("the dual is not brought up to date", "guarded/half.py",
           "own = self.agent.caught_up(own, self._message(t, body))", "pass",
           AGENT + "test_a_deployed_agent_computes_what_its_method_computes"),
    Mutant("an answered round is sent to another question", "privacy/terms.py",
           "    if not same:\n", "    if False:\n",
           AGENT + "test_another_question_for_an_answered_round_is_refused"),
    Mutant("an answer that memory lost is drawn again", "privacy/terms.py",
           "lambda: self._kept.get(key)", "lambda: self._kept.get(key, make())",
           AGENT + "test_answers_that_no_longer_fit_into_memory_are_not_drawn_again"),
    Mutant("memory takes other terms", "privacy/terms.py",
           "if not place.agreed(terms):", "if True:",
           AGENT + "test_terms_are_agreed_once_in_memory_too"),
    Mutant("memory gives away its own array", "privacy/terms.py",
           "            return answer.copy()", "            return answer",
           AGENT + "test_an_answer_that_was_sent_cannot_be_changed_by_whoever_got_it"),
    Mutant("a ledger joins runs of another adjacency", "privacy/ledger.py",
           "        history.check_adjacency(data_id, terms.adjacency)\n", "",
           LEDGER + "test_a_run_of_another_adjacency_is_not_joined"),
    Mutant("what leaves is not looked at", "guarded/agent.py",
           "half.answered.checked({part: answer}, t)", "{part: answer}",
           AGENT + "test_what_is_not_finite_does_not_leave"),
    Mutant("flags of floats are heeded after the gate", "guarded/agent.py",
           'with np.errstate(all="ignore"):', "if True:",
           AGENT + "test_the_largest_model_is_answered_whatever_the_records_are"),
    Mutant("some errors go to the server", "guarded/agent.py",
           "except Exception as error:", "except Refused as error:",
           AGENT + "test_any_error_on_the_way_is_told_to_the_owner_alone"),
    Mutant("the owner's reason goes to the server where warnings are errors", "guarded/agent.py",
           "with suppress(RefusalWarning):", "if True:",
           AGENT + "test_any_error_on_the_way_is_told_to_the_owner_alone"),
    Mutant("a declared bound is believed", "guarded/half.py",
           "x=self.agent.variant.bound.hold(shard.x)", "x=shard.x",
           AGENT + "test_a_declared_bound_is_made_true_and_a_record_beyond_it_is_no_reason_to_refuse"),
    Mutant("the regulariser goes in before the noise", "guarded/half.py",
           "return np.asarray(self.agent.problem.weight * self.sums(self._point(own, t, body)))",
           'return self.held.gradient(self._point(own, t, body), body["w"])[0]',
           AGENT + "test_the_regulariser_goes_in_after_the_noise"),
    Mutant("sums are over records that keep no bound", "guarded/half.py",
           "return self.summing(self.held)", "return self.summing(self.agent)",
           AGENT + "test_sums_may_be_another_s_and_are_over_the_records_for_which_the_bound_is_true"),
    Mutant("records decide the order of the features", "engine/passes.py",
           "    order = patches(features)\n    rows =",
           "    order = np.argsort(-(shard.x != 0).sum(0), kind='stable')\n    rows =",
           "tests/conformance/test_deployed_sensitivity.py::test_no_record_decides_how_the_scores_of_the_others_are_rounded"),
    Mutant("a ledger without its log goes on", "privacy/chain.py",
           "if self._log is not None and self._log_identity() != self._log:", "if False:",
           "tests/privacy/test_ledger.py::test_nothing_leaves_once_the_file_at_its_path_is_not_the_one_that_is_open"),
    Mutant("the noise scale is rounded down", "privacy/lattice.py",
           "return -(-math.ceil(scale / grid(scale)) // FINE) * FINE",
           "return math.ceil(scale / grid(scale)) // FINE * FINE",
           "tests/privacy/test_lattice.py"),
    Mutant("a word on the edge of the compiled table is rounded", "privacy/exact.py",
           "    direct[begins] = module.TIED\n", "",
           EXACT + "test_every_word_of_the_level_is_told_by_the_table_or_drawn_further"),
    Mutant("the finer table is that of another part", "privacy/exact.py",
           "direct, tail = _tables(law, parts)", "direct, tail = _tables(law, 1)",
           EXACT + "test_counts_agree_with_the_exact_probabilities"),
    Mutant("a ledger forgets the answers of other runs", "privacy/ledger.py",
           "if its_run == run and its_round < before else 0", "if its_round < before else 0",
           RUNS + "test_a_run_forgets_its_own_answers_alone"),
    Mutant("ledgers forget every round, checkpoint or not", "run/train.py",
           "        tick = now\n",
           "        tick = now\n        deploy.forget(first.spec, first.guarded, first.state.t)\n",
           RUNS + "test_a_run_killed_at_any_moment_is_resumed_to_its_end_and_pays_for_each_round_once"),
    Mutant("a ledger forgets before the checkpoint is on disk", "run/train.py",
           "run.checkpoint(engine.save(r))\n",
           "deploy.forget(run.spec, run.guarded, run.state.t)\n            run.checkpoint(engine.save(r))\n",
           RUNS + "test_a_checkpoint_is_on_disk_with_its_name_before_a_ledger_is_told_to_forget"),
    Mutant("a checkpoint may lose its name", "run/directory.py",
           "            os.fsync(folder)\n", "            pass\n",
           RUNS + "test_a_checkpoint_is_on_disk_with_its_name_before_a_ledger_is_told_to_forget"),
    Mutant("ledgers keep every answer", "run/train.py",
           "        full = first.ledgers and first.state.t % KEPT_ROUNDS == 0\n", "        full = False\n",
           RUNS + "test_ledgers_keep_the_answers_since_the_last_checkpoint_and_none_of_a_run_that_has_ended"),
    Mutant("a release that failed has forgotten for good", "privacy/ledger.py",
           "            due = dict(self._due)\n", "            due, self._due = self._due, {}\n",
           LEDGER + "test_a_release_that_fails_forgets_nothing_and_the_next_one_does"),
    Mutant("a refusal leaves answers on their way", "engine/side_by_side.py",
           "            wait(answers)\n        except", "            pass\n        except",
           BESIDE + "test_the_first_agent_that_refuses_is_named_whichever_refuses_first_and_all_others_have_answered"),
    Mutant("agents are asked after the run was stopped", "engine/side_by_side.py",
           "                answer.cancel()\n", "                pass\n",
           BESIDE + "test_a_run_that_is_stopped_waits_for_agents_that_answer_and_asks_no_more"),
    Mutant("no noise on the grid", "privacy/lattice.py",
           "noisy = whole + sample(law, t, exact.shape, bits)", "noisy = whole",
           AGENT + "test_the_noise_has_the_law_and_the_scale_that_were_agreed"),
    Mutant("noise of half the scale on the grid", "privacy/lattice.py",
           "sample(law, t, exact.shape, bits)", "sample(law, t // 2, exact.shape, bits)",
           AGENT + "test_the_noise_has_the_law_and_the_scale_that_were_agreed"),
    Mutant("the grid's own cost not counted", "privacy/lattice.py",
           "return (sensitivity + step * entries) * (1 + 2**-50)", "return sensitivity * (1 + 2**-50)",
           "tests/privacy/test_lattice.py"),
    Mutant("the audit attacks a simulation in place of the deployed agent", "audit/answering.py",
           "if deploy.wanted(spec):", "if False:",
           AUDIT + "test_a_lattice_that_adds_no_noise_is_caught_though_everything_else_is_right"),
    Mutant("memory answers two threads at once", "privacy/terms.py",
           "        with self._lock:\n            if key in", "        if True:\n            if key in",
           AGENT + "test_threads_that_ask_one_agent_without_a_ledger_get_one_answer"),
    Mutant("memory answers after a fork", "privacy/terms.py",
           "if os.getpid() != self._process:", "if False:",
           AGENT + "test_an_agent_without_a_ledger_does_not_answer_after_a_fork"),
    Mutant("a ledger answers runs of two adjacencies", "privacy/ledger.py",
           "            history.check_adjacency(key.data_id, adjacency)\n", "",
           LEDGER + "test_an_answer_priced_for_another_adjacency_is_refused_though_both_runs_were_joined_before"),
    Mutant("the grid's share of delta is spent twice", "run/deploy.py",
           "total(events, dp_delta * (1 - DELTA_FOR_THE_GRID)).epsilon", "total(events, dp_delta).epsilon",
           AGENT + "test_ledgers_price_what_is_left_of_delta_when_the_grid_has_its_share"),
    Mutant("what is agreed leaves the penalties out", "run/deploy.py",
           '{spec.toml()}\\n{shape} {numbers}', '{spec.toml()}',
           AGENT + "test_what_is_agreed_names_the_shape_of_the_model_the_penalties_and_the_bound_of_a_gradient"),
    Mutant("a ledger whose file is gone answers", "privacy/chain.py",
           "if which != self._identity or size < self._size:", "if False:",
           LEDGER + "test_nothing_leaves_once_the_file_at_its_path_is_not_the_one_that_is_open"),
    Mutant("a number that is not finite ends the run", "run/run.py",
           'with np.errstate(all="ignore"):', "if True:",
           "tests/guarded/test_outcome.py"),
    Mutant("the audit does not test the scale of the noise", "audit/finding.py",
           "if noise is not None and claim.events and not noise.hidden:", "if False:",
           AUDIT + "test_a_lattice_with_too_little_noise_is_caught_at_the_default_epsilon_too"),
    Mutant("the audit measures noise by what is drawn and not by what is claimed", "audit/mechanism.py",
           "claimed_scale(pair.present, question)", "claimed_scale(broken.present, question)",
           AUDIT + "test_the_scale_of_the_noise_shows_what_attacks_on_a_deployed_agent_need_many_draws_for"),
    Mutant("the audit detects a share of the noise as it is", "audit/finding.py",
           "(1.0 if noise is None else noise.scale)", "1.0",
           "tests/audit/test_noise.py::test_what_is_detected_is_a_share_of_the_claim_and_not_of_the_noise_as_it_is"),
    Mutant("constants of a method are not looked at", "run/spec.py",
           "        check_constant(entry, name, number)\n", "",
           METHODS + "test_what_a_method_does_not_read_is_refused"),
    Mutant("a secure sum forgets that an agent knows its own noise", "methods/secure_sum.py",
           "    elif colluding < 1:", "    elif colluding < 0:",
           METHODS + "test_what_a_method_cannot_do_is_refused_before_anything_is_written"),
    Mutant("one message forgets the label's part of the sensitivity", "methods/onemessage.py",
           "math.sqrt(1 + balance**2 * label_square(facts))", "1.0",
           MESSAGE + "test_no_record_moves_a_message_further_than_the_noise_is_scaled_for"),
    Mutant("one message counts the entries off the diagonal twice", "methods/onemessage.py",
           "np.where(at[0] == at[1], 1.0, math.sqrt(2))", "np.where(at[0] == at[1], 1.0, 2.0)",
           MESSAGE + "test_no_record_moves_a_message_further_than_the_noise_is_scaled_for"),
    Mutant("one message believes the declared norm of a row", "methods/onemessage.py",
           "        x *= (row_norm / np.maximum(Norm.L2.of_rows(x), row_norm))[:, None]\n", "",
           MESSAGE + "test_a_row_that_is_longer_than_declared_is_shrunk_by_its_agent"),
    Mutant("one message has half of its noise", "methods/onemessage.py",
           "return self.multiplier * sensitivity", "return 0.5 * self.multiplier * sensitivity",
           PROMISES + "test_the_noise_that_is_drawn_is_the_noise_that_is_promised"),
    Mutant("one message promises half of its noise", "methods/onemessage.py",
           "gaussian_releases(self.multiplier, ", "gaussian_releases(self.multiplier / 2, ",
           PROMISES + "test_a_method_promises_what_is_pinned"),
    Mutant("one message that everybody sees has a share of the noise", "methods/onemessage.py",
           "share = 1.0 if self.colluding is None else noise_share(facts, self.colluding)",
           "share = noise_share(facts, self.colluding or 0)",
           MESSAGE + "test_behind_a_sum_the_agents_that_do_not_collude_have_the_noise_of_one_release_together"),
    Mutant("one message has one noise for all agents", "methods/onemessage.py",
           "row += std * _normals(agents, p, msg.t)", "row += std * _normals(agents, 0, msg.t)",
           MESSAGE + "test_every_agent_has_noise_of_its_own_and_new_noise_for_every_seed"),
    Mutant("one message loses its noise to float32", "methods/onemessage.py",
           "(message_size(facts.shape),)).astype(np.float64)", "(message_size(facts.shape),))",
           MESSAGE + "test_a_unit_of_the_features_changes_nothing"),
    Mutant("the penalty of one message is scored by the half it was fitted to", "methods/onemessage.py",
           "(total, total + more, total - more)", "(total, total + more, total + more)",
           MESSAGE + "test_the_halves_that_choose_the_penalty_have_independent_noise"),
    Mutant("one message takes directions of noise for records", "methods/noisy_ridge.py",
           "    d = np.maximum(d, 0.0)\n", "",
           MESSAGE + "test_where_noise_outweighs_the_records_the_penalty_alone_holds_a_direction"),
    Mutant("other methods take exact noise and do not draw it", "run/build.py",
           'if spec.privacy.noise == "exact":', "if False:",
           METHODS + "test_what_a_method_does_not_read_is_refused"),
    Mutant("the server of a run holds the records", "run/build.py",
           "Coordinator(self.method, self.task.facts)", "Coordinator(self.method, self.task)",
           METHODS + "test_the_server_of_a_run_holds_no_record"),
    Mutant("a sweep writes before all of its runs were looked at", "run/sweep.py",
           "return Run(spec, federation, build.setup(spec, federation), directory)",
           "made = directory or RunDirectory.create(out / member.name, spec)\n"
           "    return Run(spec, federation, build.setup(spec, federation), made)",
           METHODS + "test_a_sweep_with_a_run_that_is_refused_leaves_nothing"),
    Mutant("a name on the page can end its script", "report/markup.py",
           '.replace("<", "\\\\u003c")', "",
           "tests/report/test_numbers.py"),
    Mutant("the result notes no heads", "run/deploy.py",
           "return {agent.name: agent.store.head for agent in agents if isinstance(agent.store, Ledger)} or None",
           "return None",
           RUNS + "test_the_result_keeps_the_heads_of_the_ledgers_and_a_rewritten_chain_does_not_go_through_them"),
    Mutant("a run without a seed is simulated", "run/noise.py",
           'return spec.with_values({"privacy.noise": "exact"})', "return simulated(spec)",
           NOISE + "test_a_run_without_a_seed_draws_exact_noise_and_may_be_released"),
    Mutant("a seed beside exact noise does nothing", "run/noise.py",
           "if spec.run.seed is not None:", "if False:",
           NOISE + "test_a_seed_beside_exact_noise_is_refused"),
    Mutant("noise is simulated without a seed", "run/compose.py",
           "key=None if spec.run.seed is None else (spec.run.seed, p)", "key=(spec.run.seed or 0, p)",
           NOISE + "test_noise_cannot_be_simulated_without_a_seed"),
    Mutant("a run that lost its ledgers begins new ones", "run/ledgers.py",
           "return place if (place.is_dir() if started else n_agents <= OWN_LEDGERS) else None", "return place",
           NOISE + "test_a_run_that_lost_its_own_ledgers_is_not_resumed"),
    Mutant("a table deals one record to two agents", "data/tables.py",
           "if not np.array_equal(place[order], np.arange(len(order))):", "if False:",
           "tests/data/test_load.py::test_a_record_is_not_dealt_to_two_agents"),
    Mutant("a table of many runs is dealt from its first record at every run", "data/tables.py",
           "        end -= len(run)\n", "",
           "tests/data/test_load.py::test_a_federation_does_not_depend_on_how_long_the_runs_are"),
    Mutant("a table names the fault that a thread found first", "data/threads.py",
           "yield partial(_fail, error)", "raise",
           "tests/data/test_csv.py::test_the_first_of_two_faults_is_told_though_threads_run_ahead"),
    Mutant("a table takes bytes that are not UTF-8", "data/formats/csv.py",
           "if not is_utf8(chunk.text):", "if False:",
           "tests/data/test_csv.py::test_a_bad_byte_far_from_the_header_is_refused_as_one_near_it"),
    Mutant("a table loses a number that needs Python", "data/formats/chunk.py",
           "x[i, j] = [number(cell) for cell", "x[i, j] = [0.0 for cell",
           "tests/data/test_csv.py::test_both_readers_agree_on_every_file"),
    Mutant("a table takes powers of ten in fewer bits", "data/formats/chunk.py",
           "(1 << -e) // large, e", "(1 << -e) // large & ~15, e",
           "tests/data/test_csv.py::test_a_compiled_number_is_that_of_python_or_left_to_python"),
    Mutant("a record with bad bytes keeps its cells", "data/formats/lines.py",
           "spans[i], bad[i] = 0, 1", "bad[i] = 1",
           "tests/data/test_lines.py::test_a_line_of_any_bytes_leaves_every_other_record_as_it_is"),
    Mutant("a record without agent decides the order of agents", "data/tables.py",
           'names = distinct({*agents.names} - {""})', 'names = [n for n in distinct(agents.names) if n]',
           "tests/data/test_lines.py::test_a_record_whose_agent_cannot_be_read_is_nobodys_in_a_file_of_several_agents"),
)  # fmt: skip


def copied(place: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, place / name)


def run(place: Path, test: str) -> tuple[bool, str]:
    """(whether the test passes in the copy, the last line that it printed)."""
    environment = {**os.environ, "PYTHONPATH": str(place / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines() or [done.stderr.strip()]
    if done.returncode not in (0, 1):  # no test of that name, or none that could be run
        raise SystemExit(f"{test}: {lines[-1]}")
    return done.returncode == 0, lines[-1]


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    lived = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        copied(place)
        for test in sorted({m.test for m in chosen}):
            passes, line = run(place, test)
            if not passes:
                raise SystemExit(f"{test} fails without any fault: {line}")
        for mutant in chosen:
            file = place / "src" / "tacit" / mutant.file
            whole = file.read_text()
            if whole.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.name}: its text stands {whole.count(mutant.old)} times in {mutant.file}")
            file.write_text(whole.replace(mutant.old, mutant.new))
            passes, _ = run(place, mutant.test)
            file.write_text(whole)
            lived += [mutant.name] * passes
            print(f"{'LIVED' if passes else 'died':<6} {mutant.name:<66} {mutant.test.rpartition('::')[2]}", flush=True)
    print(f"{len(chosen) - len(lived)} of {len(chosen)} faults were found")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
