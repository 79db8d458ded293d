"""Faults in audits, and what is shown of a run."""

from __future__ import annotations

from tests.mutants.fault import Mutant

AUDIT = "tests/audit/test_audits.py::"
METHOD_AUDIT = "tests/audit/test_methods.py::"
SUM_AUDIT = "tests/audit/test_sum.py::"
COMPARE = "tests/compare/test_compare.py::"
FACES = "tests/test_risk_faces.py::"
SHARED = "tests/report/test_shared.py::"
STATES = "tests/privacy/test_guarantee.py::"
LIVE = "tests/ui/test_reading.py::"
BOARD = "tests/report/test_headline.py::"
NEIGHBOURS = SHARED + "test_a_shared_page_is_the_same_for_neighbours"

MUTANTS = (
    Mutant("guarantee: nobody is trusted if a result does not say who", "report/privacy_text.py",
           '("Not stated", self._told_in_words) if self.guarantee is None', '("Nobody", "") if self.guarantee is None',
           BOARD + "test_a_result_without_the_fields_of_a_guarantee_is_never_private_and_does_not_say_nobody"),
    Mutant("guarantee: a result without its fields is private", "report/privacy_text.py",
           'return NOT_STATED if self.guarantee is None else "weak"', 'return "weak"',
           LIVE + "test_a_result_without_the_fields_of_a_guarantee_is_never_private"),
    Mutant("guarantee: an unknown field is passed over", "jsontext.py",
           "values.keys() ^ hints.keys()", "hints.keys() - values.keys()",
           STATES + "test_a_result_that_lacks_a_field_states_nothing_and_one_with_an_unknown_field_is_refused"),
    Mutant("guarantee: true is taken for a number", "jsontext.py",
           "if isinstance(value, bool) or not isinstance(value, int | float)", "if not isinstance(value, int | float)",
           STATES + "test_nonsense_in_a_field_is_refused_or_read_for_what_it_says"),
    Mutant("the audit attacks a simulation in place of the deployed agent", "audit/answering.py",
           "if deploy.wanted(spec):", "if False:",
           AUDIT + "test_a_lattice_that_adds_no_noise_is_caught_though_everything_else_is_right"),
    Mutant("the coalition forgets the masks that it knows", "audit/sum_views.py",
           "(np.subtract if name < own.agent else np.add)(row, mask, out=row)", "pass",
           SUM_AUDIT + "test_what_the_coalition_takes_off_leaves_the_sum_of_the_honest_shares"),
    Mutant("the audit of a sum takes the words of a part for those of one agent", "audit/secure_sum.py",
           '"a part": trials(part, ', '"a part": trials(first, ',
           SUM_AUDIT + "test_every_fault_of_a_secure_sum_is_caught_by_the_views_that_it_opens"),
    Mutant("the audit of a sum asks the same model in every attempt", "audit/secure_sum.py",
           "Asked(1, 1, HONEST, -steer)", "Asked(1, 1, HONEST, steer)",
           SUM_AUDIT + "test_every_fault_of_a_secure_sum_is_caught_by_the_views_that_it_opens"),
    Mutant("one agent of a sum is audited as if it released alone", "audit/mechanism.py",
           'if spec.privacy.trust == "sum":\n        raise', 'if False:\n        raise',
           SUM_AUDIT + "test_attacks_on_one_agent_refuse_a_sum"),
    Mutant("the audit does not test the scale of the noise", "audit/finding.py",
           "if noise is not None and claim.events and not noise.hidden:", "if False:",
           AUDIT + "test_a_lattice_with_too_little_noise_is_caught_at_the_default_epsilon_too"),
    Mutant("the audit measures noise by what is drawn and not by what is claimed", "audit/mechanism.py",
           "claimed_scale(pair.present, question)", "claimed_scale(broken.present, question)",
           AUDIT + "test_the_scale_of_the_noise_shows_what_attacks_on_a_deployed_agent_need_many_draws_for"),
    Mutant("the audit detects a share of the noise as it is", "audit/finding.py",
           "(1.0 if noise is None else noise.scale)", "1.0",
           "tests/audit/test_noise.py::test_what_is_detected_is_a_share_of_the_claim_and_not_of_the_noise_as_it_is"),
    Mutant("the audit of a method looks at every entry by itself", "audit/pilots.py",
           'BASES: dict[str, Basis] = {"": entries, "whitened": whitened}', 'BASES: dict[str, Basis] = {"": entries}',
           METHOD_AUDIT + "test_a_broken_method_is_caught_by_one_kind_of_attack_alone"),
    Mutant("the audit of a method drops what has no noise", "audit/pilots.py",
           "np.sqrt(np.maximum(variance, FLOOR))", "np.sqrt(np.where(variance > FLOOR, variance, np.inf))",
           METHOD_AUDIT + "test_a_combination_without_noise_tells_all_if_the_draws_are_whitened"),
    Mutant("the audit of a method starts at zero only", "audit/methods.py",
           '{"": None, "w0": steering(of)}', '{"": None}',
           METHOD_AUDIT + "test_a_broken_method_is_caught_by_one_kind_of_attack_alone"),
    Mutant("each attack of the audit of a method has the whole risk of error", "audit/finding.py",
           "sure = 1 - (1 - confidence) / len(several)", "sure = confidence",
           METHOD_AUDIT + "test_all_attacks_of_a_finding_share_its_risk"),
    Mutant("behind a sum a comparison is taken for one that is not", "compare/job.py",
           '({} if self.trust is None else {"budget.trust": self.trust})', "{}",
           COMPARE + "test_a_job_that_names_no_trust_keeps_the_hash_of_its_spec"),
    Mutant("a name on the page can end its script", "report/markup.py",
           '.replace("<", "\\\\u003c")', "",
           "tests/report/test_numbers.py"),
    Mutant("a shared page holds all that a result holds", "report/audience.py",
           "summary = {key: run.summary[key] for key in (*SHARED, *tests) if key in run.summary}",
           "summary = dict(run.summary)", NEIGHBOURS + "[classes-True]"),
    Mutant("a shared page holds the seal, a digest of exact numbers", "report/audience.py",
           'HASHES = ("model_hash", "spec_hash")', 'HASHES = ("model_hash", "spec_hash", "seal", "rounds_hash")',
           NEIGHBOURS + "[sum-False]"),
    Mutant("a shared page draws every curve", "report/audience.py",
           'curve = {key: run.curve[key] for key in ("t", *tests) if key in run.curve}', "curve = run.curve",
           NEIGHBOURS + "[sweep-True]"),
    Mutant("a shared page shows test results unasked", "report/audience.py",
           "tests = TEST_RESULTS if audience is Audience.PUBLIC_WITH_TESTS else ()", "tests = TEST_RESULTS",
           NEIGHBOURS + "[number-False]"),
    Mutant("a shared page names the files of its owner", "report/audience.py",
           'kept[key] = paths.of(key, value)', "kept[key] = value", SHARED + "test_settings_hold_no_path"),
    Mutant("a shared page names the directory of a run", "report/source.py",
           'shared(run, audience, f"run {n}", paths)', "shared(run, audience, run.name, paths)",
           SHARED + "test_a_shared_page_names_no_directory_and_keeps_runs_on_different_data_apart"),
    Mutant("a shared page may be of simulated noise", "report/audience.py",
           'if run.private and run.summary.get("simulated_noise") is False:', "if run.private:",
           SHARED + "test_only_what_may_be_released_can_be_shared"),
    Mutant("a guess of the live page knows no weak protection", "report/privacy_text.py",
           'else "weak" if self.weak else "private"', 'else "private"',
           FACES + "test_every_face_of_a_run_has_the_same_number_and_the_same_verdict"),
)  # fmt: skip
