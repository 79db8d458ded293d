"""Faults in the server's check of an answer (tacit.run.plausible), and in the cap of the records that count."""

from __future__ import annotations

from tests.mutants.fault import Mutant

CHECK = "tests/run/test_plausible.py::"
SITE = "tests/federation/test_plausible.py::"
BEYOND = CHECK + "test_an_answer_beyond_the_threshold_is_refused_and_one_below_is_not"
RARE = CHECK + "test_noise_exceeds_its_bound_as_rarely_as_stated_and_the_bound_is_near_it"
VALUE = CHECK + "test_if_the_noise_is_small_the_threshold_is_the_bound_of_the_value_whatever_the_adjacency"
QUESTIONS = CHECK + "test_a_run_with_more_questions_or_agents_has_a_larger_threshold"
DECLARED = SITE + "test_an_agent_that_declares_more_records_than_it_may_is_named_before_anybody_joins"

MUTANTS = (
    Mutant("a server in one process checks no answer", "run/asking.py",
           "if self.checked and lane.deployment.in_sum is None:", "if False:",
           CHECK + "test_no_model_moves_by_a_round_with_such_an_answer_and_its_answers_are_paid_for"),
    Mutant("models move before answers are checked", "run/asking.py",
           "        for lane, own in zip(self.lanes, each, strict=True):\n",
           "        [self._take(lane, msg, own, waited) for (lane, msg), own in zip(asked, each, strict=True)]\n"
           "        for lane, own in zip(self.lanes, each, strict=True):\n",
           CHECK + "test_no_model_moves_by_a_round_with_such_an_answer_and_its_answers_are_paid_for"),
    Mutant("a run that ends for an answer holds its budget", "run/train.py",
           'deploy.end(run.spec, run.deployed, "an answer was not plausible")', "pass",
           CHECK + "test_no_model_moves_by_a_round_with_such_an_answer_and_its_answers_are_paid_for"),
    Mutant("a coordinator gives every agent the records of the first", "federation/individual_rounds.py",
           "why_implausible(remote.deployment, remote.place[name],", "why_implausible(remote.deployment, 0,",
           SITE + "test_an_answer_beyond_the_threshold_is_missing_and_log_and_status_name_the_agent"),
    Mutant("numbers that are not finite pass", "run/plausible.py",
           "if size <= 1:", "if not size > 1:",
           CHECK + "test_numbers_that_are_not_finite_or_far_too_large_are_refused"),
    Mutant("one entry counts for the norm of an answer", "run/plausible.py",
           "np.linalg.norm(answer.ravel() / most)", "np.abs(answer / most).max()", BEYOND),
    Mutant("the value of one record is that of all", "run/plausible.py",
           "value = records * query.bound(", "value = query.bound(", VALUE),
    Mutant("a replaced record makes an answer twice as long", "run/plausible.py",
           "query.bound(Norm.L2, Adjacency.ZERO_OUT)", "query.bound(Norm.L2, adjacency)", VALUE),
    Mutant("a threshold is for one question", "run/plausible.py",
           "math.log(2 * questions)", "math.log(2)", QUESTIONS),
    Mutant("a threshold is for one agent", "run/plausible.py",
           "len(deployment.records) * own.rounds)", "own.rounds)", QUESTIONS),
    Mutant("honest answers are refused with probability 2^-20", "run/plausible.py",
           "FAILURE = 60", "FAILURE = 20",
           CHECK + "test_one_number_of_noise_in_a_whole_run_exceeds_its_bound_with_probability_2_to_minus_60"),
    Mutant("the length of Gaussian noise is the usual one", "run/plausible.py",
           "scale * math.sqrt(d + 2 * math.sqrt(d * x) + 2 * x)", "scale * math.sqrt(d)", RARE),
    Mutant("the length of Laplace noise has half of its mean square", "run/plausible.py",
           "scale * math.sqrt(2 * d + least)", "scale * math.sqrt(d + least)", RARE),
    Mutant("the bound of Laplace noise is far from it", "run/plausible.py",
           "range(1, 64)", "range(1, 2)", RARE),
    Mutant("an agent may declare any number of records", "federation/plan.py",
           "is not None and count > most:", "is None and count > 0:", DECLARED),
    Mutant("a new run does not ask how many records there may be", "federation/coordinator.py",
           "declared(folder, values))\n        plan.check_records(participants.sites)", "declared(folder, values))",
           DECLARED),
    Mutant("a resumed run does not ask how many records there may be", "federation/coordinator.py",
           "participants.check(plan)\n        plan.check_records(participants.sites)", "participants.check(plan)",
           SITE + "test_a_run_is_not_resumed_with_more_records_than_are_allowed_by_then"),
)  # fmt: skip
