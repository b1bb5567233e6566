"""Other people's files and evaluators, read as ours.

`judge_llm` runs that system's configurations and evaluators, `russo` takes that package's evaluators,
`mcpuniverse` its registered functions.  `tau`, `inspect_ai`, `livemcpbench`, `mcpmark` and `openai_chat` read
the runs of those systems, for `mcpeval.read_runs`; `recorded_scores` makes a scores frame of what each
system said of them.  None of the packages named here has to be installed.
"""

from .recorded import recorded_scores

__all__ = ["recorded_scores"]
