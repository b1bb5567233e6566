"""What `import mcpeval` costs, against `import pandas`: run as ``python -m tests.benchmarks.bench_import``."""

import subprocess
import sys
import time

ROUNDS = 7


def seconds(code: str) -> float:
    """The best of some fresh processes: the rest is what else the machine did."""

    def once() -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - began

    return min(once() for _ in range(ROUNDS))


def main() -> None:
    nothing, pandas = seconds("pass"), seconds("import pandas")
    print(f"python alone {nothing:.2f} s, import pandas {pandas:.2f} s")
    for code in ("import mcpeval", "import mcpeval; mcpeval.run; mcpeval.score; mcpeval.summarize"):
        took = seconds(code)
        print(f"{code}: {took:.2f} s, {took / pandas:.2f} of `import pandas`")


if __name__ == "__main__":
    main()
