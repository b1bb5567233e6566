"""Run by a Python that has inspect_ai: ``write FOLDER`` makes logs of a toy task, ``read LOG`` tells what is in one.

``write`` tells, for each log, what inspect_ai itself makes of it, as ``read`` does.
"""

from __future__ import annotations

import json
import sys

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, includes, mean, scorer, value_to_float
from inspect_ai.solver import generate, solver, system_message, use_tools
from inspect_ai.tool import ToolCall, ToolError, tool

GRADES = {1: "P", 2: "yes", 3: 0.25}


@tool
def add():
    async def execute(x: int, y: int):
        """Add two numbers.

        Args:
            x: The first.
            y: The second.
        """
        return str(x + y)

    return execute


@tool
def fail():
    async def execute(x: int):
        """Fail.

        Args:
            x: A number.
        """
        raise ToolError("no such thing")

    return execute


@scorer(metrics=[mean()])
def graded():
    async def score(state, target):
        if state.sample_id == 2 and state.epoch == 2:
            return Score.unscored(reason="grader_failed", explanation="no verdict")
        return Score(value=GRADES[state.sample_id], explanation="because")

    return score


@scorer(metrics={"a": [mean()], "b": [mean()]})
def double():
    async def score(state, target):
        return Score(value={"a": 1, "b": 0.5})

    return score


@solver
def breaks():
    async def solve(state, generate):
        if state.sample_id == 3 and state.epoch == 1:
            raise ValueError("broke down")
        return state

    return solve


def answer(messages, tools, tool_choice, config):
    if messages[-1].role == "user":
        output = ModelOutput.for_tool_call("mockllm/model", "add", {"x": 2, "y": 3}, content="I add.")
        output.choices[0].message.tool_calls.append(ToolCall(id="second", function="fail", arguments={"x": 1}))
    else:
        output = ModelOutput.from_content("mockllm/model", "It is 5. " + "So it is. " * 30)
    output.usage = ModelUsage(input_tokens=10, output_tokens=5, total_tokens=18, input_tokens_cache_read=3)
    return output


def toy() -> Task:
    return Task(
        dataset=[
            Sample(id=1, input="What is 2 + 3?", target="5", metadata={"level": "easy"}),
            Sample(id=2, input=[ChatMessageUser(content="What is 3 + 2? " * 20)], target=["5", "five"]),
            Sample(id=3, input="What is 1 + 5?", target="6"),
        ],
        solver=[system_message("Be short."), use_tools([add(), fail()]), breaks(), generate()],
        scorer=[includes(), graded(), double()],
        name="toy",
    )


def told(location: str) -> dict:
    log = read_eval_log(location)
    to_float = value_to_float()
    samples = []
    for sample in log.samples:
        scores = {}
        for name, score in (sample.scores or {}).items():
            if isinstance(score.value, dict):
                scores |= {f"{name}.{key}": to_float(value) for key, value in score.value.items()}
            else:
                unscored = isinstance(score.value, float) and score.value != score.value
                scores[name] = None if unscored else to_float(score.value)
        calls = [call for one in sample.messages if one.role == "assistant" for call in one.tool_calls or ()]
        samples.append(
            {
                "id": str(sample.id),
                "epoch": sample.epoch,
                "messages": [[one.role, one.text] for one in sample.messages],
                "calls": [[call.function, call.arguments, call.parse_error] for call in calls],
                "errors": [one.error.message for one in sample.messages if one.role == "tool" and one.error],
                "output": sample.output.completion,
                "target": sample.target,
                "error": sample.error.message if sample.error else None,
                "scores": scores,
                "reasons": {name: score.explanation for name, score in (sample.scores or {}).items()},
                "tokens": [sum((u.input_tokens, u.output_tokens)) for u in sample.model_usage.values()],
            }
        )
    summaries = [[str(one.id), one.epoch, one.completed] for one in read_eval_log_sample_summaries(location)]
    means = {one.name: one.metrics["mean"].value for one in log.results.scores if "mean" in one.metrics}
    about = {"model": log.eval.model, "task": log.eval.task, "solver": log.eval.solver, "status": log.status}
    return {**about, "samples": samples, "summaries": summaries, "means": means}


def write(folder: str) -> dict:
    found = {}
    for form in ("eval", "json"):
        model = get_model("mockllm/model", custom_outputs=answer)
        [log] = eval(toy(), model=model, epochs=2, fail_on_error=False, log_format=form, log_dir=folder, display="none")
        found[log.location.removeprefix("file://")] = told(log.location)
    return found


if __name__ == "__main__":
    print(json.dumps({"write": write, "read": told}[sys.argv[1]](sys.argv[2])))
