"""Rules: a chain of steps over an output, an operator, and the value it is held against.

A rule is MCP-Universe's evaluator ``{"func", "op", "value", "op_args"}`` with the same verdicts
(`Rule.from_config`), or one of ours (`rule`), which allows quoted arguments, refuses a mistake when
it is written, and fails where ``foreach`` gave no values.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, ClassVar

from ..errors import InputError, did_you_mean
from ..types import Score
from . import comparisons as _comparisons  # noqa: F401  (fills COMPARISONS)
from .base import Context, comes_from_a_service, failed
from .chains import (
    COMPARISONS,
    STEPS,
    Call,
    Custom,
    FunctionResult,
    call_when_registered,
    chain_error,
    flat,
    over_tree,
    parse,
    registered_step,
)
from .steps import parse_json
from .values import as_json, fill, has_variable, plain, show

#: Whether an output passed, why not, and the metadata.
Verdict = tuple[bool, str, dict[str, Any]]

ON_EMPTY = ("pass", "fail")
_KEYS = ("func", "op", "value", "op_args", "desc", "name", "on_empty", "quotes")
_AGENTS_FAULT = (ValueError, KeyError, IndexError, TypeError, AssertionError)
_IN_BUILT_IN = (ArithmeticError, RecursionError)  # only an output can bring a built-in step to these


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """A chain, an operator and a value: an evaluator of ``output``, compiled when it is made.

    Parameters
    ----------
    chain : str
        ``step -> step(argument) -> ...``; empty for the output itself. Steps: ``json get(key) len
        foreach raw list`` as in MCP-Universe, and ``extract_json lower strip normalize number
        index(n) path(a.b[0]) sort unique sum regex(pattern) keys values``; registered ones
        (`eval_func`).
    op : str
        ``= < <= > >= in contain`` as in MCP-Universe, and ``== != "not in" "not contain" approx
        between matches set= subset superset similar schema``; registered ones (`compare_func`);
        empty where it is enough that the chain can be followed. After ``foreach`` the comparison
        has to hold for every leaf.
    value : JSON value
        ``{{VAR}}`` in its texts is replaced by the variable of this name, from `env`, else from
        the environment, at the moment of scoring; nothing else in double braces is.
    op_args : JSON value, optional
        Options of the operator: ``rel``, ``abs`` (approx, default 1e-6 and 0), ``threshold``
        (similar, default 0.8).
    name : str, optional
        The chain, operator and value where it is not given.
    on_empty : {"fail", "pass"}
        The verdict where ``foreach`` gave no values. A pass of this kind is marked ``vacuous``.
    quotes : bool
        Whether an argument between quotes is taken without them, and what can never be meant is
        refused. False reads the chain as MCP-Universe does.
    desc : str
    env : mapping, optional

    Attributes
    ----------
    immediate : bool
        Whether it is made of built-in steps and comparisons alone, which never wait.

    Raises
    ------
    ChainError
        The chain names no known step, or a step has arguments it cannot use.
    InputError
        The operator is unknown, or the value or `op_args` cannot be used with it.
    """

    chain: str
    op: str = "="
    value: Any = None
    op_args: Any = None
    name: str | None = None
    on_empty: str = "fail"
    quotes: bool = True
    desc: str = ""
    env: Mapping[str, str] | None = field(default=None, repr=False)

    kind: ClassVar[str] = "rule"
    columns: ClassVar[tuple[str, ...]] = ("output",)
    reads: ClassVar[tuple[str, ...]] = ("output",)

    def __post_init__(self) -> None:
        for key, what in (("chain", "chain (func)"), ("op", "op"), ("desc", "desc")):
            if not isinstance(getattr(self, key), str):
                raise InputError(f"rule: {what}={getattr(self, key)!r} should be a text")
        if not isinstance(self.name, str | None):
            raise InputError(f"rule: name={self.name!r} should be a text")
        if self.on_empty not in ON_EMPTY:
            raise InputError(f"rule: on_empty={self.on_empty!r}. {did_you_mean(self.on_empty, ON_EMPTY)}")
        calls = parse(self.chain, quotes=self.quotes)
        if self.op and self.op not in COMPARISONS:
            raise InputError(f"rule: op={self.op!r} is not a known comparison. {did_you_mean(self.op, COMPARISONS)}")
        comparison = COMPARISONS.get(self.op)
        waits = any(isinstance(f, Custom) for f in (comparison, *(STEPS.get(call.name) for call in calls)))
        put = self.__dict__  # the dataclass is frozen: this is how it fills itself
        put.update(value=plain(self.value, "value"), op_args=plain(self.op_args, "op_args"), immediate=not waits)
        put["name"] = _default_name(self) if self.name is None else self.name
        put["_comparison"] = comparison
        put["_steps"] = tuple((c, _compile(c, self, shared=not waits), c.name == "foreach") for c in calls)
        first = next((n for n, (_, _, opens) in enumerate(self._steps) if opens), len(calls))
        put["_before"], put["_from_foreach"] = [step[:2] for step in self._steps[:first]], self._steps[first:]
        put["_many"] = first < len(calls)
        put["_open"] = has_variable(self.value) or has_variable(self.op_args)
        put["_wanted"] = "" if self._open else show(self.value)
        put["_test"] = None if self._open else self._test_of(self.value, self.op_args)
        put["_text"] = json.dumps(self.to_dict(), sort_keys=True)

    def _test_of(self, value: Any, op_args: Any) -> Callable[[Any], bool | str] | None:
        """The test of one leaf; None where there is no comparison, or it is a registered one."""
        known = self._comparison
        if known is None or isinstance(known, Custom):
            return None
        if known.theirs and not self.quotes:
            return known.make(value, {})  # MCP-Universe's take no options and ignore them
        if not isinstance(op_args, dict | None):
            raise InputError(f"rule: op_args={op_args!r} should be a dict of options for {self.op!r}")
        for key in op_args or {}:
            if key not in known.options:
                hint = did_you_mean(key, known.options) if known.options else "It takes none."
                raise InputError(f"rule: op_args has {key!r}, which is no option of {self.op!r}. {hint}")
        if self.op in ("in", "not in") and not isinstance(value, (str, list)):
            raise InputError(f"rule: value={value!r} should be a list or a text for {self.op!r}")
        return known.make(value, op_args or {})

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any] | str,
        *,
        on_empty: str = "pass",
        env: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> Rule:
        """A rule from MCP-Universe's dict, or its JSON text, with MCP-Universe's verdicts.

        Parameters
        ----------
        config : mapping or str
            ``func``, and optionally ``op, value, op_args, desc, name, on_empty, quotes``.
        on_empty : {"pass", "fail"}
            Where `config` does not say.
        env : mapping, optional
            Where ``{{VAR}}`` is looked up before the environment.
        name : str, optional
            Replaces the name in `config`.

        Raises
        ------
        InputError
            It cannot be read as a rule, or a key is a misspelling of a known one.
        """
        if isinstance(config, str):
            try:
                config = json.loads(config)
            except ValueError as error:
                raise InputError(f"config is not JSON: {error}") from None
        if not isinstance(config, Mapping) or "func" not in config:
            raise InputError(f"config={config!r:.200} should be a dict with 'func'")
        for key in config:
            if key not in _KEYS and (near := did_you_mean(key, _KEYS)).startswith("Did"):
                raise InputError(f"config has the unknown key {key!r}. {near}")
        made = _from_text(json.dumps(plain(config, "config")), on_empty, name)
        return made if env is None else replace(made, env=dict(env))

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """The rule whose `to_json` this is."""
        return cls.from_config(text)

    def to_json(self) -> str:
        """A JSON text that `from_json` and `from_config` read back as an equal rule."""
        return json.dumps(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The rule as a config; variables stand in it by name, not by value."""
        config = {"func": self.chain, "op": self.op, "value": self.value, "on_empty": self.on_empty}
        if self.op_args is not None:
            config["op_args"] = self.op_args
        if self.name != _default_name(self):
            config["name"] = self.name
        return config | ({"quotes": True} if self.quotes else {}) | ({"desc": self.desc} if self.desc else {})

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of everything that shapes the verdict."""
        return sha256(self._text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self._text == other._text if isinstance(other, Rule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return f"Rule({self.chain!r}, {self.op!r}, {show(self.value)})"

    def evaluate(self, row: Any, context: Context | None = None) -> Score:
        """The verdict on an output. Never raises.

        Parameters
        ----------
        row : mapping with ``output``, or any output
            A dict without the key ``output``, a text, a list, a number or None is the output itself.
        context : Context, optional
            For registered functions.

        Returns
        -------
        Score
            1 or 0. What the output is to blame for is 0 with a reason; anything else that fails
            is of status ``error``. `metadata`: ``leaves`` (what the chain gave, where that is not
            the output itself), ``leaf`` (place of the one that failed), ``vacuous``.
        """
        if not self.immediate:
            from .._loop import run_sync

            return run_sync(self.evaluate_async(row, context))
        return _as_score(self.verdict(_output_of(row)))

    def verdict(self, output: Any) -> Verdict | Score:
        """The verdict of an immediate rule on an output, bare; a `Score` where its status is not ``ok``.

        `evaluate` makes a `Score` of it, which takes as long as a short chain.
        """
        call, value, values = None, output, None
        try:
            for call, step in self._before:  # noqa: B007  (which step it was, where one fails)
                value = step(value)
            values = [value]
            for call, step, opens in self._from_foreach:  # noqa: B007
                if opens:
                    values = [inner for value in values for inner in step(value)]
                else:
                    values = [step(value) for value in values]
            call = None
            test = self._test_of(fill(self.value, self.env), fill(self.op_args, self.env)) if self._open else self._test
            return self._compared(values, output, test) if values else self._vacuous()
        except Exception as error:  # a row's isolation: whose fault it is decides what is said
            given = output if call is None else value if values is None else _culprit(step, values)
            return self._of_error(error, call, given)

    def _compared(self, values: list[Any], output: Any, test: Callable[[Any], bool | str] | None) -> Verdict:
        for place, leaf in enumerate(values):
            if type(leaf) is FunctionResult:  # what the step raw wraps, a comparison unwraps
                values[place] = leaf = leaf.result
            if test is not None and (answer := test(leaf)) is not True:
                return self._lost(values, place, output, self._comparison.reason, answer or "")
        return True, "", self._leaves(values, output)

    async def evaluate_async(self, row: Any, context: Context | None = None) -> Score:
        """As `evaluate`, on the running loop; registered functions are awaited here.

        Tool calls made through the context are in ``metadata["tool_calls"]``.
        """
        if self.immediate:
            return self.evaluate(row)
        output, context = _output_of(row), (context or Context()).recording(self.env)
        call, tree = None, FunctionResult(output)
        try:
            for call, step, opens in self._steps:
                tree = over_tree(step, opens, tree) if step else await registered_step(call, tree, context)
            call, leaves = None, flat(tree)
            value, op_args = fill(self.value, self.env), fill(self.op_args, self.env)
            if not leaves:
                said = self._vacuous()
            elif isinstance(self._comparison, Custom):
                said = await self._registered_verdict(leaves, output, (value, op_args), context)
            else:
                said = self._compared(leaves, output, self._test_of(value, op_args))
        except (Exception, SystemExit) as error:  # a row's isolation: whose fault it is decides what is said
            said = self._of_error(error, call, tree)
        score = _as_score(said)
        if not context.calls:
            return score
        return replace(score, metadata={**score.metadata, "tool_calls": list(context.calls)})

    async def _registered_verdict(
        self, leaves: list[Any], output: Any, operands: tuple[Any, Any], context: Context
    ) -> Verdict:
        known, (value, op_args) = COMPARISONS[self.op], operands  # by name: it may have been registered again
        more = (op_args, op_args) if known.third else ()
        for place, leaf in enumerate(leaves):
            answer = await known.call((leaf, value, op_args, *more), context)
            passed, reason = answer if isinstance(answer, (tuple, list)) and len(answer) == 2 else (answer, "")
            if type(passed).__name__ not in ("bool", "bool_") or not isinstance(reason, str | None):
                raise InputError(f"comparison {self.op!r} gave {answer!r:.200}; expected (passed, reason) or a bool")
            if not passed:
                return self._lost(leaves, place, output, reason or f"comparison {self.op!r} does not hold", "")
        return True, "", self._leaves(leaves, output)

    def _leaves(self, values: list[Any], output: Any) -> dict[str, Any]:
        if len(values) == 1 and values[0] is output:
            return {}
        return {"leaves": values if self.immediate else [as_json(value) for value in values]}

    def _vacuous(self) -> Verdict:
        passed = self.on_empty == "pass"
        reason = "vacuous: the chain gave no values" if passed else f"gave no values: {self.chain}"
        return passed, reason, {"leaves": [], "vacuous": True}

    def _lost(self, values: list[Any], place: int, output: Any, reason: str, detail: str) -> Verdict:
        where = f", at leaves[{place}] of {len(values)}" if self._many else ""
        detail = f" ({detail})" if detail else ""
        wanted = self._wanted or show(fill(self.value, self.env))
        metadata = self._leaves(values, output) | ({"leaf": place} if self._many else {})
        text = f"{reason}: found {show(values[place])}, wanted {wanted}{detail}{where}"
        return False, text, metadata

    def _of_error(self, error: BaseException, call: Call | None, given: Any) -> Verdict | Score:
        """0 where the output is to blame, else status ``error``."""
        faults = _AGENTS_FAULT + _IN_BUILT_IN if self.immediate else _AGENTS_FAULT
        where = f", in step {call.text!r}, given {show(given)}" if call else f", in comparison {self.op!r}"
        if not isinstance(error, faults) or comes_from_a_service(error):
            score = failed(error)
            return replace(score, reason=f"{score.reason}{where}")
        begins = "JSON decoding error" if isinstance(error, json.JSONDecodeError) else "Execution error"
        text = f"KeyError: {error}" if isinstance(error, KeyError) else str(error) or type(error).__name__
        metadata = {} if self.immediate else failed(error).metadata  # the traceback of a registered function
        return False, f"{begins}: {text}{where}", metadata


def rule(
    chain: str,
    op: str = "=",
    value: Any = None,
    *,
    op_args: Any = None,
    name: str | None = None,
    on_empty: str = "fail",
) -> Rule:
    """A rule over ``output``: ``rule("json -> get(city)", "=", "Paris")``.

    Parameters, errors and the lists of steps and operators are those of `Rule`.

    Examples
    --------
    >>> rule("json -> get(city)", "=", "Paris").evaluate('{"city": "Paris"}').score
    1.0
    >>> rule("json -> foreach -> get(price)", "<", 100).evaluate('[{"price": 20}, {"price": 300}]').reason
    'output is not less than ground-truth: found 300, wanted 100, at leaves[1] of 2'
    """
    return Rule(chain, op, value, op_args, name, on_empty)


def missing_functions(configs: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The steps and comparisons that evaluators name and nobody has registered.

    Returns
    -------
    dict of str to int
        Name to the number of evaluators that use it, the most used first.
    """
    found: Counter[str] = Counter()
    for config in configs:
        calls = parse(str(config.get("func", "")), quotes=bool(config.get("quotes")))
        unknown = {call.name for call in calls} - STEPS.keys()
        if (op := config.get("op")) and op not in COMPARISONS:
            unknown.add(op)
        found.update(sorted(unknown))
    return dict(found.most_common())


def rules_of(configs: Iterable[Mapping[str, Any]]) -> list[Rule]:
    """The rules of many configs; functions that are missing are named once, all together.

    Raises
    ------
    InputError
        One or more configs name a function that is not registered, or cannot be used.
    """
    configs = list(configs)
    if missing := missing_functions(configs):
        lines = [f"  {name!r} ({n} evaluator{'s' if n > 1 else ''})" for name, n in missing.items()]
        raise InputError(
            "evaluators name functions that are not registered; register each with @eval_func(name=...) (a step) "
            "or @compare_func(name=...) (a comparison):\n" + "\n".join(lines)
        )
    return [Rule.from_config(config) for config in configs]


@lru_cache(maxsize=4096)
def _from_text(text: str, on_empty: str, name: str | None) -> Rule:
    """One rule for equal configs: rows bring the same ones again and again."""
    config = json.loads(text)
    return Rule(
        config["func"],
        config.get("op", ""),
        config.get("value"),
        config.get("op_args"),
        config.get("name") if name is None else name,
        config.get("on_empty", on_empty),
        config.get("quotes", False),
        config.get("desc", ""),
    )


call_when_registered(_from_text.cache_clear)  # a new name may be what a kept rule would now mean


def _compile(call: Call, rule: Rule, *, shared: bool) -> Callable[[Any], Any] | None:
    """The function of one value that a step stands for; None for a registered one, looked up when it runs."""
    step, arguments = STEPS.get(call.name), call.arguments or ()

    def refuse(message: str) -> InputError:
        return chain_error(message, rule.chain, call.position)

    if step is None:
        raise refuse(f"unknown step {call.name!r}. {did_you_mean(call.name, STEPS)}")
    if isinstance(step, Custom):
        if problem := step.cannot_take(1 + len(arguments)):
            raise refuse(f"step {call.name!r} does not take {len(arguments)} arguments: {problem}")
        return None
    if step.theirs and not rule.quotes and len(arguments) < step.least:
        return _without_argument  # MCP-Universe finds out when it runs, and blames the output
    if arguments == ("",) and not step.most and not step.theirs:
        arguments = ()  # lower() is lower
    if len(arguments) < step.least or (len(arguments) > step.most and not step.theirs):
        needs = f"{step.least or 'no'} argument{'' if step.least == 1 else 's'}"
        hint = "; quote one that holds a comma" if len(arguments) > step.most > 0 else ""
        raise refuse(f"step {call.name!r} takes {needs}, not {len(arguments)}{hint}")
    if call.name == "json" and not shared:
        return _fresh_json
    try:
        return step.make(*arguments)
    except ValueError as error:
        raise refuse(str(error)) from None


def _without_argument(value: Any) -> Any:
    raise TypeError("get() missing 1 required positional argument: 'key'")


def _fresh_json(value: Any) -> Any:
    """The step json for rules with registered functions, which may change what they are given."""
    if isinstance(value, str):
        return parse_json(value)
    raise AssertionError("The input is not a string")


def _output_of(row: Any) -> Any:
    if isinstance(row, dict):
        return row.get("output", row)
    return row["output"] if not isinstance(row, str) and isinstance(row, Mapping) and "output" in row else row


def _as_score(said: Verdict | Score) -> Score:
    if isinstance(said, Score):
        return said
    passed, reason, metadata = said
    return Score(float(passed), reason, passed=passed, label=passed, metadata=metadata)


def _culprit(step: Callable[[Any], Any], values: list[Any]) -> Any:
    """The first of `values` that a step fails on (steps are pure: asking again gives the same)."""
    for value in values[:-1]:
        try:
            step(value)
        except Exception:  # this is the one that is looked for
            return value
    return values[-1]


def _default_name(rule: Rule) -> str:
    """``json -> get(city) = "Paris"``; a long value is cut, and told from others by its hash."""
    chain = " -> ".join(call.text for call in parse(rule.chain, quotes=rule.quotes)) or "output"
    if not rule.op:
        return chain
    operands = [rule.value] if rule.op_args is None else [x for x in (rule.value, rule.op_args) if x is not None]
    text = " ".join(json.dumps(operand, sort_keys=True, ensure_ascii=False) for operand in operands)
    if len(text) > 60:
        text = f"{text[:48]}… {sha256(text.encode(errors='surrogatepass')).hexdigest()[:6]}"
    return f"{chain} {rule.op} {text}".strip()
