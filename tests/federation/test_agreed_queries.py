"""[agree.queries] narrows what a run may ask, and `tacit agent check` prints the list that a run would have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tacit.cli import main
from tacit.errors import SpecError
from tacit.federation.headroom import largest
from tacit.federation.service import Service
from tacit.federation.site import load
from tacit.federation.site import read as read_site
from tacit.query.registry import QUERIES, name_of
from tests.federation.sites import ROUNDS, join, make, service, told

AGREE = '"run.rounds" = 50\n"algorithm.name" = ["objt", "onemessage"]\n"problem.loss" = ["softmax", "squared"]\n'
PAGE = Path(__file__).parents[2] / "docs" / "site-file.md"


@pytest.mark.parametrize(
    ("queries", "kind"),
    [
        ("", "joined"),
        ('queries = "*"', "joined"),
        (f"[agree.queries]\ngradient = {ROUNDS}", "joined"),
        (f"queries = {{gradient = {ROUNDS}, moments = 0}}", "joined"),
        (f"[agree.queries]\ngradient = {ROUNDS - 1}", "refusal"),
        ("[agree.queries]\ngradient = 0", "refusal"),
        ("[agree.queries]\nmoments = 50", "refusal"),
        ("[agree.queries]\n", "refusal"),
    ],
)
def test_a_run_asks_no_query_that_the_site_does_not_list_and_none_more_often(tmp_path, queries, kind):
    with service(tmp_path, agree=AGREE + queries) as one:
        assert told(one, join(one)).kind == kind
        released = [ledger.history().places for ledger in one._ledgers.values()]
        assert all(bool(places) == (kind == "joined") for places in released)


def test_listing_a_query_allows_no_method_that_the_other_keys_refuse(tmp_path):
    listed = "\n".join(f"{name} = 1000" for name in QUERIES)
    with service(tmp_path, agree=f'"run.rounds" = 50\n[agree.queries]\n{listed}') as one:
        assert told(one, join(one, algorithm="fedgd")).kind == "refusal"
        assert told(one, join(one, run="other")).kind == "joined"


@pytest.mark.parametrize(
    ("queries", "says"),
    [
        ("queries = 3", "agree.queries is"),
        ('queries = ["gradient"]', "agree.queries is"),
        ("[agree.queries]\ngradients = 3", "gradient"),
        ("[agree.queries]\ngradient = -1", "at least 0"),
        ("[agree.queries]\ngradient = 1.5", "whole number"),
        ("[agree.queries]\ngradient = true", "whole number"),
    ],
)
def test_a_list_of_queries_that_cannot_be_meant_is_refused(tmp_path, queries, says, capsys):
    path = make(tmp_path, agree=f'"run.rounds" = 50\n{queries}', ledgers=False)
    with pytest.raises(SpecError, match=says):
        read_site(path)
    assert main(["agent", "check", str(path)]) == 2
    assert "Traceback" not in capsys.readouterr().err


def checked(path, capsys) -> tuple[str, dict]:
    assert main(["agent", "check", str(path)]) == 0
    text = capsys.readouterr().out
    assert main(["agent", "check", str(path), "--json"]) == 0
    return " ".join(text.split()), json.loads(capsys.readouterr().out)


def test_check_prints_the_list_that_the_largest_run_would_have(tmp_path, capsys):
    path = make(tmp_path, agree='"run.rounds" = 7\n"privacy.epsilon" = 1.0')
    text, found = checked(path, capsys)
    site = read_site(path)
    (one,) = largest(site, load(site)).deployment.first_agreement.queries
    assert found["queries"] == [
        {
            "query": "gradient", "answers": 7, "numbers": one.query.size, "law": one.noise.law.value,
            "multiplier": one.noise.multiplier, "norm": one.noise.norm.value,
            "described": found["queries"][0]["described"],
        }
    ]  # fmt: skip
    assert found["queries"][0]["described"]["is"] == f"{type(one.query).__module__}.{type(one.query).__qualname__}"
    assert f"asked gradient: at most 7 answers of {one.query.size} numbers" in text


def test_check_prints_the_list_of_a_method_with_a_number_of_rounds_of_its_own(tmp_path, capsys):
    agree = '"run.rounds" = 50\n"algorithm.name" = "onemessage"\n"problem.loss" = "squared"'
    _, found = checked(make(tmp_path, agree=agree), capsys)
    assert [(one["query"], one["answers"]) for one in found["queries"]] == [("moments", 1)]


def test_check_counts_the_questions_that_the_site_allows(tmp_path, capsys):
    path = make(tmp_path, agree='"run.rounds" = 50\n[agree.queries]\ngradient = 6')
    text, found = checked(path, capsys)
    assert [(one["query"], one["answers"]) for one in found["queries"]] == [("gradient", 6)]
    assert "agree queries: gradient at most 6" in text
    path.write_text(path.read_text().replace("gradient = 6", "moments = 6"))
    text, found = checked(path, capsys)
    assert found["queries"] == []
    assert "none of these runs can be run" in text
    assert "agree.queries would have to allow it" in text


def test_the_section_of_the_page_is_read(tmp_path):
    section = PAGE.read_text().split("[agree.queries]\n", 1)[1].split("```", 1)[0]
    site = read_site(make(tmp_path, agree=f'"run.rounds" = 50\n[agree.queries]\n{section}'))
    assert site.agree.queries == {"gradient": 50}


def test_every_query_has_a_name(tmp_path):
    with service(tmp_path) as one:
        told(one, join(one))
        assert isinstance(one, Service)
        (entrant,) = one._runs["r1"].joining.values()
        assert [name_of(query.query) for query in entrant.agreement.queries] == ["gradient"]
