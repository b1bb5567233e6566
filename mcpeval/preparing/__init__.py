"""What a run does around its agent: prepares before it, clean-ups after it, and a working folder of its own.

`steps` reads what task files say, `registry` holds the functions that they may name, `doing` makes
the calls, `folders` gives a run its working folder.
"""

from .doing import Surroundings
from .folders import Seed, Workdir, read_seed
from .registry import cleanup_func, prepare_func
from .steps import WORKDIR, Step, check_known, check_steps, cleanup_arguments, names_workdir, servers_of, steps_of

__all__ = [
    "Seed",
    "Step",
    "Surroundings",
    "WORKDIR",
    "Workdir",
    "check_known",
    "check_steps",
    "cleanup_arguments",
    "cleanup_func",
    "names_workdir",
    "prepare_func",
    "read_seed",
    "servers_of",
    "steps_of",
]
