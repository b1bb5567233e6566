"""Other people's files and evaluators, read as ours.

`judge_llm` runs that system's configurations and evaluators, `russo` takes that package's evaluators,
`mcpuniverse` its registered functions, `tau` reads the transcripts of tau-bench and tau2.  Nothing is
imported before it is used, and none of the packages named here has to be installed.
"""
