"""The evaluators that a configuration names by type, with the keys that it may set.

Each is one of `mcpeval.evaluators`; ``compat="judge-llm"`` gives judge-llm's own defaults and
answers where ours differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import InputError, did_you_mean
from ...evaluators.embeddings import EmbeddingSimilarity
from ...evaluators.judges import Judge
from ...evaluators.limits import CostLimit, LatencyLimit
from ...evaluators.sequences import AgentChain, Trajectory
from ...evaluators.text import Contains, Excludes, JsonFormat, Length, Matches, Similarity
from .compat import TheirAgentChain, TheirTrajectory

COMPAT = "judge-llm"

Prepare = Callable[[dict[str, Any], bool], dict[str, Any]]


def _as_given(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    return config


@dataclass(frozen=True)
class BuiltIn:
    """An evaluator that has a type of its own.

    Attributes
    ----------
    class_name : str
        judge-llm's, by which a test case may override it.
    make : callable
        Ours.
    keys : mapping
        The keys of a configuration, and the parameters of `make` that they set.
    values : mapping
        For a key, what its values are called there and here.
    needs : tuple of str
        Keys that have to be given.
    idle : tuple of str
        Keys that judge-llm documents and does nothing with.
    prepare : callable
        From the configuration, and whether `COMPAT` is asked for, to the configuration in which
        every key sets a parameter.
    theirs : callable, optional
        What `COMPAT` makes instead.
    defaults : mapping
        Parameters that `COMPAT` sets.
    """

    class_name: str
    make: Callable[..., Any]
    keys: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    prepare: Prepare = _as_given
    theirs: Callable[..., Any] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)


def built_in(
    kind: str, config: Mapping[str, Any], *, name: str | None = None, compat: str | None = None, where: str = ""
) -> Any:
    """The evaluator of a type.

    Parameters
    ----------
    kind : str
        A key of `BUILT_INS`: "response_evaluator", ...
    config : mapping
        As under ``config:`` in a configuration.
    name : str, optional
        Of the frame's column ``evaluator``; the type where it is not given.
    compat : {None, "judge-llm"}
    where : str
        Where it stands, for errors.

    Raises
    ------
    InputError
        The type, a key or a value is unknown.
    """
    place = f"{where}: " if where else ""
    if kind not in BUILT_INS:
        raise InputError(f"{place}type={kind!r} is no built-in evaluator. {did_you_mean(kind, BUILT_INS)}")
    entry, theirs = BUILT_INS[kind], check_compat(compat)
    config = _checked(entry, kind, config, theirs, place)
    try:
        config = entry.prepare(dict(config), theirs)
        given = {entry.keys[key]: _value(entry, key, value) for key, value in config.items()}
        make = entry.theirs if theirs and entry.theirs else entry.make
        return make(**{**(entry.defaults if theirs else {}), "name": name or kind, **given})
    except InputError as error:
        text = str(error)
        for key, parameter in entry.keys.items():
            text = text.replace(f" {parameter}=", f" {key}=")
        raise InputError(f"{place}{kind}: {text}") from None


def check_compat(compat: str | None) -> bool:
    """Whether judge-llm's own answers are asked for."""
    if compat not in (None, COMPAT):
        raise InputError(f"compat={compat!r}. {did_you_mean(compat, [COMPAT])}")
    return compat == COMPAT


def _checked(entry: BuiltIn, kind: str, config: Mapping[str, Any], theirs: bool, place: str) -> dict[str, Any]:
    """`config` without the keys that do nothing; raise for one that nobody knows, or that is missing."""
    for key in config:
        if key in entry.idle and not theirs:
            raise InputError(
                f"{place}{kind}: {key!r} has no effect, in judge-llm neither; take it out, or say compat={COMPAT!r}"
            )
        if key not in entry.keys and key not in entry.idle:
            raise InputError(f"{place}{kind}: unknown key {key!r}. {did_you_mean(key, entry.keys)}")
    for key in entry.needs:
        if key not in config:
            raise InputError(f"{place}{kind}: needs {key!r}")
    return {key: value for key, value in config.items() if key not in entry.idle}


def _value(entry: BuiltIn, key: str, value: Any) -> Any:
    known = entry.values.get(key)
    if known is None:
        return value
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{key}={value!r}. {did_you_mean(value, known)}")
    return known[value]


# --- those that need more than other names ------------------------------------------------------


def _trajectory(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    compare = config.pop("compare_arguments", not theirs)
    if not isinstance(compare, bool):
        raise InputError(f"compare_arguments={compare!r} should be true or false")
    how = config.pop("argument_match_type", "exact")
    return {**config, "argument_match_type": how if compare else "ignore"}


def _cost(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    currency = config.pop("currency", "USD")
    if currency != "USD" and not theirs:
        raise InputError(f"currency={currency!r} should be USD: costs are counted in US dollars, and not converted")
    return _without_alias(config, "max_cost", "max_cost_per_case")


def _latency(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    percentile = config.pop("percentile", 100)
    if percentile != 100 and not theirs:
        raise InputError(
            f"percentile={percentile!r}: one run has no percentiles; take it out, and look at the column seconds"
        )
    return _without_alias(config, "max_latency", "max_latency_seconds")


def _without_alias(config: dict[str, Any], alias: str, key: str) -> dict[str, Any]:
    if alias in config and key in config:
        raise InputError(f"{alias} and {key} are the same; give one of them")
    return {key if name == alias else name: value for name, value in config.items()}


_EMBEDDINGS = {"gemini": "gemini/text-embedding-004", "openai": "openai/text-embedding-3-small"}


def _embedding(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    provider = config.pop("provider", "gemini")
    if provider == "sentence_transformers":
        raise InputError("provider='sentence_transformers' runs a model in this process; name one that LiteLLM serves")
    if provider not in _EMBEDDINGS:
        raise InputError(f"provider={provider!r}. {did_you_mean(provider, _EMBEDDINGS)}")
    model = with_prefix(config.pop("model", _EMBEDDINGS[provider]), provider)
    params = {key: config.pop(key) for key in ("api_key", "api_base", "dimensions") if key in config}
    chunk = config.pop("max_chunk_length", 2000) if config.pop("chunk_long_text", True) else 0
    return {**config, "model": model, "params": params, "max_chunk_length": chunk}


_RUBRICS = {
    "relevance": "How well does the output speak to the question? 1: not at all. 5: wholly.",
    "hallucination": "Is what the output says supported by the reference? 1: much of it is made up. 5: nothing is.",
    "quality": "How helpful, clear and complete is the output, beside the reference? 1: very poor. 5: excellent.",
    "factuality": "How accurate are the facts that the output states? 1: mostly wrong. 5: all right.",
    "comprehensive": (
        "Judge the output as a whole, held against the reference: relevance, accuracy, completeness, clarity and "
        "helpfulness. 1: very poor. 5: excellent."
    ),
}
_COLUMNS = {"{user_query}": "{question}", "{response}": "{output}", "{expected_response}": "{reference}"}


def _judge(config: dict[str, Any], theirs: bool) -> dict[str, Any]:
    kind = config.pop("evaluation_type", "comprehensive")
    if kind not in _RUBRICS:
        raise InputError(f"evaluation_type={kind!r}. {did_you_mean(kind, _RUBRICS)}")
    rubric = config.pop("custom_prompt", None) or _RUBRICS[kind]
    for column, ours in _COLUMNS.items():
        rubric = rubric.replace(column, ours)
    lowest = config.pop("min_score", 3.0)
    if not isinstance(lowest, (int, float)) or isinstance(lowest, bool) or not 1 <= lowest <= 5:
        raise InputError(f"min_score={lowest!r} should be a number from 1 to 5")
    model = with_prefix(config.pop("model", "gemini-2.0-flash"), "gemini")
    return {**config, "custom_prompt": rubric, "model": model, "min_score": (lowest - 1) / 4}


def _make_judge(**given: Any) -> Judge:
    return Judge(**given, scale=(1, 5))


def with_prefix(model: Any, provider: str) -> str:
    """A provider's model as LiteLLM names it; one that has a provider keeps it."""
    if not isinstance(model, str) or not model:
        raise InputError(f"model={model!r} should be a text")
    return model if "/" in model else f"{provider}/{model}"


BUILT_INS: dict[str, BuiltIn] = {
    "response_evaluator": BuiltIn(
        "ResponseEvaluator",
        Similarity,
        {
            "similarity_threshold": "threshold",
            "match_type": "mode",
            "case_sensitive": "case_sensitive",
            "normalize_whitespace": "normalize",
        },
        values={"match_type": {"exact": "exact", "semantic": "jaccard", "rouge": "rouge1", "recall": "recall"}},
        idle=("llm_provider", "llm_model", "temperature"),
        defaults={"list_markers": "any", "words": "ascii"},
    ),
    "trajectory_evaluator": BuiltIn(
        "TrajectoryEvaluator",
        Trajectory,
        {
            "sequence_match_type": "match",
            "argument_match_type": "arguments",
            "compare_arguments": "arguments",
            "argument_similarity_threshold": "argument_threshold",
            "allow_extra_tools": "extra",
            "tool_name_match": "names",
            "min_score_threshold": "threshold",
        },
        idle=("allow_partial_match", "llm_provider", "llm_model"),
        prepare=_trajectory,
        theirs=TheirTrajectory,
    ),
    "cost_evaluator": BuiltIn(
        "CostEvaluator",
        CostLimit,
        {"max_cost_per_case": "limit", "max_cost": "limit", "currency": "limit"},
        prepare=_cost,
    ),
    "latency_evaluator": BuiltIn(
        "LatencyEvaluator",
        LatencyLimit,
        {"max_latency_seconds": "limit", "max_latency": "limit", "percentile": "limit"},
        idle=("warn_threshold_seconds",),
        prepare=_latency,
    ),
    "subagent_evaluator": BuiltIn(
        "SubAgentEvaluator",
        AgentChain,
        {"sequence_match_type": "match", "allow_extra_agents": "extra", "min_match_ratio": "threshold"},
        theirs=TheirAgentChain,
    ),
    "embedding_similarity_evaluator": BuiltIn(
        "EmbeddingSimilarityEvaluator",
        EmbeddingSimilarity,
        {
            "model": "model",
            "provider": "model",
            "similarity_threshold": "threshold",
            "compare_with_query": "with_question",
            "chunk_long_text": "chunk",
            "max_chunk_length": "chunk",
            "api_key": "params",
            "api_base": "params",
            "dimensions": "params",
            "params": "params",
        },
        prepare=_embedding,
    ),
    "llm_judge_evaluator": BuiltIn(
        "LLMJudgeEvaluator",
        _make_judge,
        {
            "custom_prompt": "rubric",
            "evaluation_type": "rubric",
            "model": "model",
            "min_score": "threshold",
            "temperature": "temperature",
            "max_retries": "reasks",
            "api_key": "api_key",
            "api_base": "api_base",
        },
        prepare=_judge,
    ),
    "contains_evaluator": BuiltIn(
        "ContainsEvaluator",
        Contains,
        {"terms": "terms", "require": "require", "case_sensitive": "case_sensitive", "whole_words": "whole_words"},
        needs=("terms",),
    ),
    "unsafe_terms_evaluator": BuiltIn(
        "UnsafeTermsEvaluator",
        Excludes,
        {"unsafe_terms": "terms", "case_sensitive": "case_sensitive", "whole_words": "whole_words"},
        needs=("unsafe_terms",),
    ),
    "regex_evaluator": BuiltIn(
        "RegexEvaluator",
        Matches,
        {"pattern": "pattern", "whole": "whole", "case_sensitive": "case_sensitive"},
        needs=("pattern",),
    ),
    "length_evaluator": BuiltIn(
        "LengthEvaluator",
        Length,
        {"min_length": "minimum", "max_length": "maximum", "unit": "unit"},
    ),
    "json_format_evaluator": BuiltIn("JSONFormatEvaluator", JsonFormat, {"required_fields": "required"}),
}
