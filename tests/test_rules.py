"""Rules: grammar, steps, comparisons, reasons, and what may never happen."""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpeval.errors import ChainError, InputError
from mcpeval.evaluators import Rule, missing_functions, rule, rules_of, steps
from mcpeval.evaluators.chains import COMPARISONS, STEPS, Custom

OUTPUT = json.dumps({"city": "Paris", "a, b": 1, "x->y": 2, "n": 18, "tags": ["b", "a", "b"], "o": {"k": [{"z": 5}]}})


def verdict(chain, op, value, output=OUTPUT, **more):
    score = rule(chain, op, value, **more).evaluate(output)
    assert score.status == "ok", score.reason
    return score.passed


def theirs(func, op="", value=None, output=OUTPUT, **more):
    return Rule.from_config({"func": func, "op": op, "value": value, **more}).evaluate(output)


# Grammar


@pytest.mark.parametrize(
    ("argument", "value"),
    [('"a, b"', 1), ("'x->y'", 2), ('  "city" ', "Paris"), ("city", "Paris"), ("  city ", "Paris")],
)
def test_an_argument_wholly_between_quotes_is_taken_without_them(argument, value):
    assert verdict(f"json -> get({argument})", "=", value)


@pytest.mark.parametrize("key", ['"city', "it's", 'say "hi" now', "'a' b"])
def test_quotes_that_do_not_enclose_the_whole_argument_are_part_of_the_key(key):
    assert verdict(f"json -> get({key})", "=", 1, json.dumps({key: 1}))


def test_a_config_looks_its_quotes_up_as_mcp_universe_does():
    assert theirs('json -> get("city")', "=", 1, '{"\\"city\\"": 1}').passed
    assert not theirs('json -> get("city")', "=", "Paris").passed
    assert theirs('json -> get("city")', "=", "Paris", quotes=True).passed


def test_quoted_text_may_hold_parentheses_and_regular_expressions():
    assert verdict('regex("(\\d+) km, (north)")', "=", "12", "about 12 km, north")


def test_an_unknown_step_is_named_with_the_nearest_and_a_caret_under_its_place():
    with pytest.raises(ChainError) as refused:
        rule("json -> gett(city)")
    message, chain, caret = str(refused.value).splitlines()
    assert message == "unknown step 'gett'. Did you mean 'get'?"
    assert chain.index("gett") == caret.index("^")


def test_the_caret_stands_right_in_a_chain_of_several_lines():
    with pytest.raises(ChainError) as refused:
        rule("json\n  -> lenn")
    _, chain, caret = str(refused.value).splitlines()
    assert chain.index("lenn") == caret.index("^")


@pytest.mark.parametrize(
    "chain",
    [
        "json -> get",
        "(json)",
        "json -> JSON",
        "json -> index(one)",
        "json -> index",
        "json -> path(a[x])",
        "json -> path(a..b)",
        'regex("(")',
        "regex(a, b)",
        "json -> sort(up)",
        "json -> path()",
    ],
)
def test_what_can_never_work_is_refused_when_it_is_written(chain):
    with pytest.raises(ChainError):
        rule(chain)


@pytest.mark.parametrize(
    ("op", "value", "op_args"),
    [
        ("matches", "(", None),
        ("matches", 5, None),
        ("between", [2, 1], None),
        ("between", 3, None),
        ("approx", "3", None),
        ("approx", 3, {"relative": 0.1}),
        ("approx", 3, {"rel": "big"}),
        ("similar", 3, None),
        ("similar", "x", {"threshold": 7}),
        ("set=", "ab", None),
        ("schema", {"type": "objekt"}, None),
        ("schema", "object", None),
        ("in", {"a": 1}, None),
        ("=", 1, {"tolerance": 1}),
        ("=", 1, 5),
    ],
)
def test_a_value_or_option_that_cannot_be_meant_is_refused_when_it_is_written(op, value, op_args):
    with pytest.raises(InputError):
        rule("json", op, value, op_args=op_args)


def test_an_unknown_operator_is_named_with_the_nearest():
    with pytest.raises(InputError, match=r"op='contains' is not a known comparison. Did you mean 'contain'\?"):
        rule("raw", "contains", "x")


def test_a_misspelt_key_or_option_is_named_with_the_nearest():
    with pytest.raises(InputError, match="Did you mean 'value'"):
        Rule.from_config({"func": "json", "op": "=", "vale": 1})
    with pytest.raises(InputError, match="Did you mean 'threshold'"):
        rule("raw", "similar", "x", op_args={"treshold": 0.5})
    with pytest.raises(InputError, match="Did you mean 'pass'"):
        rule("json", on_empty="pas")


@pytest.mark.parametrize("config", ['{"func": "json",', "[]", "3", {"op": "="}, {"func": "json", "value": {1, 2}}])
def test_what_is_no_config_is_refused(config):
    with pytest.raises(InputError):
        Rule.from_config(config)


# Steps and comparisons


@pytest.mark.parametrize(
    ("op", "value", "output", "passed"),
    [
        ("=", 1, "true", True),
        ("=", 18, '"18"', False),
        (">", "10", '"9"', True),
        ("=", None, "null", True),
        ("in", [1], "true", True),
    ],
)
def test_values_are_compared_as_python_compares_them(op, value, output, passed):
    assert verdict("json", op, value, output) is passed


def test_a_text_held_against_a_number_is_the_outputs_fault():
    score = rule("json -> get(n)", ">", 17).evaluate('{"n": "18"}')
    assert (score.score, score.status) == (0.0, "ok")
    assert score.reason.startswith("Execution error: '>' not supported between instances of 'str' and 'int'")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ("\ufeff[1, 2]", [1, 2]),
        ('Here you are:\n```JSON\n{"a": 1}\n```\nDone [1].', {"a": 1}),
        ("~~~\n[1, 2]\n~~~", [1, 2]),
        ('```json {"a": 1} ```', {"a": 1}),
        ('First {"a": 1}, no: {"a": 2}. See [3].', {"a": 2}),
        ("The list is [1, [2]] I think", [1, [2]]),
        ('<think>maybe {"a": 0}</think>\n{"a": 1}', {"a": 1}),
        ('maybe {"a": 0}</think>{"a": 1} is it', {"a": 1}),
        ("```json\n{'a': 1}\n```\n```json\n{\"a\": 2}\n```", {"a": 2}),
        ('```python\nx = {}\n```\nso {"a": "``` inside"}', {"a": "``` inside"}),
        ('{not json} but {"a": {"b": 1}}', {"a": {"b": 1}}),
        ("42", 42),
        ('"a }{ b"', "a }{ b"),
    ],
)
def test_extract_json_finds_the_answer_in_what_stands_around_it(text, found):
    assert verdict("extract_json", "=", found, text)


@pytest.mark.parametrize("text", ["", "no json", '<think>{"a": 1}', "{'a': 1}", "[1, 2"])
def test_extract_json_fails_where_there_is_none(text):
    score = rule("extract_json", "").evaluate(text)
    assert score.passed is False
    assert score.reason.startswith("Execution error: The input holds no JSON")


@pytest.mark.parametrize(
    "text",
    ["{" * 300_000, "[" * 300_000, '{"a":' * 60_000, "```" + "a" * 1_000_000, "```\n{x\n" * 60_000, "[1, " * 100_000],
)
def test_extract_json_ends_on_a_text_of_openings_alone(text):
    assert rule("extract_json", "").evaluate(text).passed is False  # read anew from each, these would take hours


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", 18), ("about 1,234.5 km", 1234.5), ("$1,200", 1200), ("42%", 42), ("-7", -7), ("\u22127", -7),
        ("1e3", 1000.0), (".5", 0.5), ("(3)", 3), ("1,234,567", 1234567),
    ],
)  # fmt: skip
def test_number_reads_the_one_number_of_a_text(text, number):
    assert verdict("number", "=", number, text)
    assert verdict("json -> number", "=", number, json.dumps(number))


@pytest.mark.parametrize("text", ["3 of 5", "none", "", "2024-05-01", "1.234,5", "1,2345"])
def test_number_takes_no_guess(text):
    assert rule("number", "").evaluate(text).passed is False


@pytest.mark.parametrize(
    ("chain", "found"),
    [
        ("json -> get(city) -> lower", "paris"),
        ("json -> get(tags) -> index(-1)", "b"),
        ("json -> get(tags) -> sort", ["a", "b", "b"]),
        ("json -> get(tags) -> unique", ["b", "a"]),
        ("json -> path(o.k[0].z)", 5),
        ("json -> path(o['k'][0])", {"z": 5}),
        ("json -> path(o.nothing)", None),
        ("json -> get(o) -> keys", ["k"]),
        ("json -> get(o) -> values", [[{"z": 5}]]),
        ('json -> get(city) -> regex("^P(a)")', "a"),
        ("json -> get(city) -> regex(zz)", None),
        ("json -> get(missing)", None),
    ],
)
def test_each_step_gives(chain, found):
    assert verdict(chain, "=", found)


def test_strip_normalize_and_sum():
    assert verdict("strip", "=", "a b", " a b\n")
    assert verdict("normalize", "=", "strasse ab 1", "  Straße\u00a0AB\n\u2460")
    assert verdict("json -> sum", "=", 6, "[1, 2, 3]")
    assert verdict("json -> sum", "=", 1.0, json.dumps([0.1] * 10))  # math.fsum, not 0.9999999999999999


@pytest.mark.parametrize(
    ("chain", "output"),
    [
        ("json -> sum", "[1, true]"),
        ("json -> sort", '[1, "a"]'),
        ("json -> index(3)", "[1]"),
        ("json -> path(a.b)", '{"a": 1}'),
        ("json -> lower", "1"),
        ("json -> keys", "[]"),
        ("json -> sum", "[1e308, 1e308]"),
        ("json", "[" * 100_000),
        ("json", "1" * 5_000),
    ],
)
def test_what_a_step_cannot_do_with_an_output_scores_zero(chain, output):
    score = rule(chain, "").evaluate(output)
    assert (score.score, score.status) == (0.0, "ok")
    assert score.reason.startswith("Execution error: ")


@pytest.mark.parametrize(
    ("op", "value", "output", "passed", "op_args"),
    [
        ("!=", 1, "2", True, None),
        ("!=", 1, "1", False, None),
        ("==", 1, "1", True, None),
        ("not in", [1, 2], "3", True, None),
        ("not in", "abc", '"b"', False, None),
        ("not contain", "x", '"abc"', True, None),
        ("not contain", 2, "[1, 2]", False, None),
        ("approx", 100, "100.00001", True, None),
        ("approx", 100, "101", False, None),
        ("approx", 100, "101", True, {"rel": 0.01}),
        ("approx", 0, "0.5", True, {"abs": 0.5}),
        ("approx", 1, "true", False, None),
        ("between", [1, 2], "2", True, None),
        ("between", [1, 2], "2.001", False, None),
        ("matches", r"^\d{4}$", '"2024"', True, None),
        ("matches", r"^\d{4}$", '"in 2024"', False, None),
        ("set=", [2, 1, {"a": 1}], '[{"a": 1}, 1, 2, 2]', True, None),
        ("set=", [1], "[1, 2]", False, None),
        ("subset", [1, 2, 3], "[3, 1]", True, None),
        ("subset", [1], "[1, 4]", False, None),
        ("superset", [1], "[1, 4]", True, None),
        ("superset", [1, 5], "[1, 4]", False, None),
        ("similar", "San Francisco", '"San Fransisco"', True, None),
        ("similar", "San Francisco", '"San Fransisco"', False, {"threshold": 0.95}),
        ("schema", {"type": "object", "required": ["a"]}, '{"a": 1}', True, None),
        ("schema", {"type": "object", "required": ["a"]}, '{"b": 1}', False, None),
    ],
)
def test_each_comparison_of_ours_says(op, value, output, passed, op_args):
    assert verdict("json", op, value, output, op_args=op_args) is passed


@pytest.mark.parametrize(
    ("op", "detail"),
    [
        ("set=", "(missing: [5], not wanted: [4, {'a': 1}])"),
        ("subset", "(not wanted: [4, {'a': 1}])"),
        ("superset", "(missing: [5])"),
    ],
)
def test_a_comparison_of_sets_names_the_items_that_are_at_fault_and_no_others(op, detail):
    assert detail in rule("json", op, [1, 5]).evaluate('[1, 4, {"a": 1}, 4]').reason


def test_similar_is_the_ratio_of_difflib():
    reason = rule("raw", "similar", "abcd", op_args={"threshold": 0.9}).evaluate("bcde").reason
    assert "similarity 0.750" in reason  # the example in the documentation of difflib


def test_similar_takes_long_texts_word_by_word():
    long = " ".join(f"word{i}" for i in range(2_000))
    assert verdict("raw", "similar", long, long.replace("word7 ", "world7 "))
    assert not verdict("raw", "similar", long, "x" * 1_000_000)


def test_a_schema_that_refers_elsewhere_fetches_nothing():
    score = rule("json", "schema", {"$ref": "http://127.0.0.1:9/schema.json"}).evaluate("{}")
    assert score.status == "error"
    assert math.isnan(score.score)
    assert "Unresolvable" in score.error


# Reasons, foreach, empty lists


def test_a_reason_says_what_was_found_what_was_wanted_and_at_which_leaf():
    score = rule("json -> foreach -> get(p)", "<", 100).evaluate('[{"p": 1}, {"p": 300}, {"p": 400}]')
    assert score.reason == "output is not less than ground-truth: found 300, wanted 100, at leaves[1] of 3"
    assert score.metadata == {"leaves": [1, 300, 400], "leaf": 1}


def test_a_reason_of_a_step_says_which_step_and_what_it_was_given():
    score = rule("json -> foreach -> get(p)", "").evaluate('[{"p": 1}, 5]')
    assert score.reason == "Execution error: The input is not a dict, in step 'get(p)', given 5"
    assert rule("json", "").evaluate("not json").reason == (
        "JSON decoding error: Expecting value: line 1 column 1 (char 0), in step 'json', given 'not json'"
    )


def test_metadata_keeps_the_leaves_unless_they_are_the_output_itself():
    assert rule("json -> foreach").evaluate("[1, 2]").metadata["leaves"] == [1, 2]
    assert rule("raw", "contain", "a").evaluate("abc").metadata == {}


@pytest.mark.parametrize("chain", ["json -> foreach", "json -> foreach -> get(a) -> foreach"])
def test_a_rule_over_nothing_fails_and_a_config_passes_and_says_so(chain):
    score = rule(chain, "=", 1).evaluate("[]")
    assert (score.passed, score.reason) == (False, f"gave no values: {chain}")
    assert score.metadata["vacuous"]
    score = theirs(chain, "=", 1, "[]")
    assert (score.passed, score.metadata["vacuous"]) == (True, True)
    assert score.reason.startswith("vacuous")


def test_an_evaluator_in_a_task_file_says_itself_what_nothing_means():
    assert not theirs("json -> foreach", "=", 1, "[]", on_empty="fail").passed
    assert not Rule.from_config({"func": "json -> foreach", "op": "="}, on_empty="fail").evaluate("[]").passed
    assert rule("json -> foreach", "=", 1, on_empty="pass").evaluate("[]").passed


@pytest.mark.parametrize("output", [None, 3, 2.5, True, ["a"], {"a": 1}, float("nan"), "", object])
def test_outputs_of_any_kind_are_evaluated(output):
    for chain in ("", "json", "get(a)", "len", "foreach", "extract_json", "number", "raw -> list"):
        assert rule(chain, "").evaluate(output).status == "ok"


def test_a_row_is_known_by_its_output_and_any_other_dict_is_an_output():
    assert rule("get(a)", "=", 1).evaluate({"a": 1}).passed
    assert rule("get(output)", "=", 1).evaluate({"output": {"output": 1}, "question": "?"}).passed


# Variables


def test_a_variable_is_filled_in_at_any_depth_from_env_and_then_the_environment(monkeypatch):
    monkeypatch.setenv("MCPEVAL_TEST_CITY", "Osaka")
    config = {"func": "json", "op": "=", "value": {"a": ["{{CITY}}", {"b": "in {{ MCPEVAL_TEST_CITY }}"}]}}
    made = Rule.from_config(config, env={"CITY": "Paris"})
    assert made.evaluate('{"a": ["Paris", {"b": "in Osaka"}]}').passed
    monkeypatch.setenv("CITY", "Rome")
    assert made.evaluate('{"a": ["Paris", {"b": "in Osaka"}]}').passed
    assert Rule.from_config(config).evaluate('{"a": ["Rome", {"b": "in Osaka"}]}').passed


@pytest.mark.parametrize(
    "text",
    ["{{ cycler.__init__ }}", "{% if 1 %}y{% endif %}", "{# note #}", "{{ 7*7 }}", "{{ unclosed", "{{ a.b }}", "{x}"],
)
def test_no_template_runs(text):
    assert verdict("raw", "=", text, text)


def test_what_is_filled_in_is_not_read_again():
    made = Rule.from_config({"func": "", "op": "=", "value": "{{A}}"}, env={"A": "{{B}}", "B": "x"})
    assert made.evaluate("{{B}}").passed


def test_a_variable_that_is_not_set_is_an_error_and_not_a_low_score(monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    score = rule("raw", "=", "{{NOT_SET}}").evaluate("x")
    assert score.status == "error"
    assert math.isnan(score.score)
    assert "needs the variable NOT_SET" in score.reason


def test_a_rules_json_holds_a_variables_name_and_not_its_value():
    made = Rule.from_config({"func": "raw", "op": "=", "value": "{{TOKEN}}"}, env={"TOKEN": "s3cret"})
    assert "s3cret" not in made.to_json() + repr(made) + made.name + made.fingerprint


# Values


def test_a_rule_is_a_value():
    a, b = rule("json", "=", [1, (2, 3)]), rule("json", "=", [1, [2, 3]])
    assert a == b
    assert hash(a) == hash(b)
    assert a.fingerprint == b.fingerprint
    assert a != rule("json", "=", [True, [2, 3]])
    assert rule("json", "=", True) != rule("json", "=", 1)


def test_a_rule_does_not_change_when_its_value_does():
    value = ["a"]
    made = rule("json", "=", value)
    value.append("b")
    assert made.evaluate('["a"]').passed


def test_equal_configs_share_one_compiled_rule():
    config = {"func": "json -> get(a)", "op": "=", "value": 1}
    assert Rule.from_config(config) is Rule.from_config(json.dumps(config))
    assert Rule.from_config({**config, "value": True}) is not Rule.from_config(config)


def test_a_rule_without_a_name_is_named_after_what_it_asks():
    assert rule("json->get(city)", "=", "Paris").name == 'json -> get(city) = "Paris"'
    assert rule("", "contain", "x").name == 'output contain "x"'
    long = [rule("json", "in", ["x" * 100, n]).name for n in range(2)]
    assert long[0] != long[1]
    assert max(map(len, long)) < 80
    assert rule("json", name="is JSON").name == "is JSON"


def test_five_rules_over_the_same_output_parse_it_once(monkeypatch):
    parsed = Counter()
    real = steps.parse_json
    monkeypatch.setattr(steps, "parse_json", lambda text: (parsed.update([text]), real(text))[1])
    for output in ('{"a": 1, "b": [1, 2]}', '{"a": 2, "b": []}'):
        for chain in ("json", "json -> get(a)", "json -> get(b)", "json -> get(b) -> len", "json -> keys"):
            rule(chain, "").evaluate(output)
    assert set(parsed.values()) == {1}


def test_a_comparison_sees_a_value_in_the_order_it_was_written_in():
    config = {"func": "json", "op": "=", "value": {"z": 1, "a": {"y": 2, "b": 3}}}
    made = Rule.from_config(config)
    assert json.dumps(made.value) == json.dumps(Rule.from_json(made.to_json()).value) == json.dumps(config["value"])
    assert made == Rule.from_config({**config, "value": {"a": {"b": 3, "y": 2}, "z": 1}})


def test_no_step_changes_what_other_rules_are_shown():
    output = '{"l": [3, 1, 2]}'
    rule("json -> get(l) -> sort", "").evaluate(output)
    assert verdict("json -> get(l)", "=", [3, 1, 2], output)


# Their files


def task_files(conformance: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((conformance / "mcpuniverse_tasks").rglob("*.json"))]


def test_every_evaluator_of_their_task_files_is_made_or_its_missing_function_named(conformance):
    files = task_files(conformance / "data")
    configs = [config for file in files for config in file["evaluators"]]
    assert (len(files), len(configs)) == (336, 769)
    made = []
    for config in configs:
        try:
            made.append(Rule.from_config(config))
        except InputError as refused:
            assert repr(config["op"]) in str(refused)
    built_in = [config for config in configs if config.get("op", "") in ("", "=")]
    assert len(made) == len(built_in) == 145


def test_missing_functions_are_named_once_all_together(conformance):
    configs = [config for file in task_files(conformance / "data") for config in file["evaluators"]]
    missing = missing_functions(configs)
    assert missing["google_search.llm_as_a_judge"] == 50
    assert sum(missing.values()) == 769 - 145
    with pytest.raises(InputError) as refused:
        rules_of(configs)
    for name, count in missing.items():
        assert str(refused.value).count(f"{name!r} ({count} evaluator") == 1


def test_the_built_in_evaluators_of_their_task_files_give_a_verdict_on_any_answer(conformance):
    for file in task_files(conformance / "data"):
        mine = [config for config in file["evaluators"] if config.get("op", "") in ("", "=")]
        for made in rules_of(mine):
            for output in (json.dumps(file.get("output_format")), "I could not do it", None):
                assert made.evaluate(output).status == "ok"


# Whatever is written, and whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
ARGUMENTS = {"get": "(a)", "index": "(0)", "path": "(a.b[0])", "regex": '("a(b)?")'}
BUILT_IN_STEPS = sorted(name for name, step in STEPS.items() if not isinstance(step, Custom))
WRITTEN = st.sampled_from([name + ARGUMENTS.get(name, "") for name in BUILT_IN_STEPS])
CHAINS = st.lists(WRITTEN, max_size=4).map(" -> ".join)
VALUES = {
    "approx": st.floats(-10, 10), "between": st.tuples(st.floats(-9, 0), st.integers(0, 9)), "matches": st.just("a|b"),
    "set=": st.lists(JSON), "subset": st.lists(JSON), "superset": st.lists(JSON), "similar": st.text(),
    "schema": st.sampled_from([True, {"type": "object"}, {"type": "string", "minLength": 2}, {"enum": [1, "a"]}]),
    "in": st.lists(JSON) | st.text(), "not in": st.lists(JSON) | st.text(),
}  # fmt: skip
BUILT_IN_OPERATORS = sorted(name for name, comparison in COMPARISONS.items() if not isinstance(comparison, Custom))
QUESTIONS = st.sampled_from([*BUILT_IN_OPERATORS, ""]).flatmap(lambda op: st.tuples(st.just(op), VALUES.get(op, JSON)))
OUTPUTS = st.text() | JSON | JSON.map(json.dumps) | JSON.map(lambda v: f"So:\n```json\n{json.dumps(v)}\n```")


@settings(max_examples=400, deadline=None)
@given(CHAINS, QUESTIONS, OUTPUTS)
def test_no_output_makes_any_built_in_raise_or_be_of_another_status(chain, question, output):
    op, value = question
    score = rule(chain, op, value).evaluate(output)
    assert score.status == "ok"
    assert score.score in (0.0, 1.0)
    assert bool(score.reason) or score.passed


def same(a, b):
    """Equal, of the same types and in the same order: 1 is not True, 0.0 not -0.0, and NaN is NaN."""
    return json.dumps(a) == json.dumps(b) and type(a) is type(b)


@settings(max_examples=2_000, deadline=None)
@given(JSON.map(json.dumps) | JSON.map(lambda v: json.dumps(v, ensure_ascii=False)), st.data())
def test_json_is_read_as_the_standard_library_reads_it(text, data):
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(text)))
        put = data.draw(
            st.sampled_from([*'[]{}",:01.eE+-tfn\\/ \n\t\x00\xa0\ud83d', "NaN", "Infinity", "\\ud83d", "1e999"])
        )
        text = text[:place] + put + text[place + data.draw(st.integers(0, 1)) :]
    text = text.strip()
    try:
        wanted = json.loads(text)
    except ValueError as error:
        with pytest.raises(type(error)) as raised:
            steps._loads(text)
        assert str(raised.value) == str(error)
    else:
        assert same(steps._loads(text), wanted)


@pytest.mark.parametrize(
    "text",
    [
        *("-0", "-0.0", "1e999", "-1e999", "1" * 4300, "1" * 4301, "9" * 400 + ".5", "1e-400", "18446744073709551616"),
        *("2.4703282292062328e-324", "0.1", '{"a": 1, "b": 2, "a": 3}', "[" * 150 + "]" * 150, "[" * 900 + "]" * 900),
        *('"\\ud83d\\ude00"', '"\\ude00"', '"\\u0000"', '"\\x41"', '"\x7f\u2028"', "\udcff", "\ufeff1", ""),
        *("[1,]", "01", "-NaN", "Inf", "+1"),
    ],
)
def test_json_of_every_odd_kind_is_read_as_the_standard_library_reads_it(text):
    try:
        wanted = json.loads(text)
    except ValueError as error:
        with pytest.raises(ValueError) as raised:
            steps._loads(text)
        assert str(raised.value) == str(error)
    else:
        assert same(steps._loads(text), wanted)


@settings(max_examples=200, deadline=None)
@given(CHAINS, QUESTIONS, OUTPUTS)
def test_a_bare_verdict_is_what_evaluate_says(chain, question, output):
    op, value = question
    made = rule(chain, op, value)
    passed, reason, metadata = made.verdict(output)
    score = made.evaluate({"output": output})
    assert (score.passed, score.label, score.score, score.reason) == (passed, passed, float(passed), reason)
    assert json.dumps(score.metadata) == json.dumps(metadata)


@settings(max_examples=200, deadline=None)
@given(CHAINS, QUESTIONS, st.none() | st.text(min_size=1, max_size=5), st.sampled_from(["pass", "fail"]))
def test_a_rule_survives_json(chain, question, name, on_empty):
    op, value = question
    made = rule(chain, op, value, name=name, on_empty=on_empty)
    back = Rule.from_json(made.to_json())
    assert back == made
    assert back.to_json() == made.to_json()
    assert (back.name, back.on_empty) == (made.name, made.on_empty)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30))
def test_no_chain_makes_the_parser_fail_in_another_way(chain):
    for make in (rule, lambda text: Rule.from_config({"func": text})):
        try:
            make(chain)
        except ChainError:
            continue


@pytest.mark.parametrize(
    "value", [functools.reduce(lambda inner, _: [inner], range(3000), []), 10**5000], ids=["deep", "long"]
)
def test_a_value_that_cannot_be_written_is_refused_when_the_rule_is_written(value):
    with pytest.raises(InputError, match="rule: value cannot be written as JSON"):
        rule("json", "=", value)


def test_empty_parentheses_are_no_argument():
    assert rule("lower()", "=", "a").evaluate("A").passed
    with pytest.raises(ChainError, match=r"step 'get' takes 1 argument, not 0\n"):
        rule("json -> get", "=", 1)
