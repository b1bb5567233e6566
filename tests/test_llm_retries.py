"""One layer of retries: `complete` against an endpoint that fails, counts, and says when to come back."""

from email.utils import formatdate

import pytest

from mcpeval import llm
from mcpeval._loop import run_sync
from mcpeval._retry import pause, retry_after
from mcpeval.errors import InputError, ModelError

ASK = [{"role": "user", "content": "How high is the tide at ROW-1?"}]


@pytest.fixture
def ask(endpoint):
    """Ask one of the endpoint's models; keyword arguments as those of `complete`."""

    def ask(name="good", messages=ASK, **how):
        how = {"api_base": endpoint.base, "api_key": "sk-test", "retries": 2, "max_wait": 0.01, "timeout": 20, **how}
        return run_sync(llm.complete(name if "/" in name else f"openai/{name}", messages, **how))

    return ask


def fails(ask, name, **how) -> ModelError:
    with pytest.raises(ModelError) as caught:
        ask(name, **how)
    return caught.value


@pytest.mark.parametrize("name", ["r408", "r409", "r429", "r500", "r502", "r503", "r504", "r529", "reset"])
def test_what_may_pass_is_asked_once_more_for_each_retry_and_no_library_multiplies_it(ask, endpoint, name):
    fails(ask, name, retries=2)
    assert endpoint.count == 3


@pytest.mark.parametrize("name", ["r429", "r500", "reset"])
def test_no_retries_means_one_request(ask, endpoint, name):
    fails(ask, name, retries=0)
    assert endpoint.count == 1


@pytest.mark.parametrize("name", ["r500-once", "r429-twice", "reset-once"])
def test_a_fault_that_passes_is_survived(ask, name):
    assert ask(name).text == "answer for 1"


@pytest.mark.parametrize(
    ("name", "kind", "status"),
    [
        ("r400", "model", 400),
        ("r401", "auth", 401),
        ("r403", "auth", 403),
        ("r404", "model", 404),
        ("context", "context", 400),
        ("quota", "rate", 429),
    ],
)
def test_what_will_not_pass_is_asked_once(ask, endpoint, name, kind, status):
    error = fails(ask, name, retries=5)
    assert endpoint.count == 1
    assert (error.error_class, error.status_code) == (kind, status)


LIMITS_PER_MINUTE = [  # as OpenAI and Gemini word them
    "Rate limit reached for gpt-4.1 on requests per min. Please try again in 0.1s. You can increase your rate limit by "
    "adding a payment method to your account at https://platform.openai.com/account/billing.",
    "You exceeded your current quota, please check your plan and billing details. Please retry in 0.1s.",
    'Resource exhausted, exceeded your current quota. {"@type": "RetryInfo", "retryDelay": "0.1s"}',
]


@pytest.mark.parametrize("said", LIMITS_PER_MINUTE)
def test_a_limit_per_minute_is_not_taken_for_a_used_up_quota(ask, endpoint, said):
    endpoint.script(lambda body: (429, {}, {"error": {"message": said}}) if endpoint.count == 1 else None)
    try:
        assert ask("good", max_wait=5).text == "answer for 1"
    finally:
        endpoint.script(None)
    assert endpoint.count == 2


@pytest.mark.parametrize("name", ["wait", "wait-date"])
def test_retry_after_is_honoured_in_seconds_and_as_a_date(ask, endpoint, name):
    # the endpoint refuses for good whoever comes back early
    assert ask(name, max_wait=30).text == "answer for 1"
    assert endpoint.count == 2


def test_a_longer_wait_than_max_wait_is_not_begun(ask, endpoint):
    error = fails(ask, "late")
    assert endpoint.count == 1 and "86400" in str(error) and error.error_class == "rate"


@pytest.mark.parametrize("name", ["hang", "drip"])
def test_an_attempt_is_over_at_its_timeout_even_when_bytes_keep_coming(ask, endpoint, name):
    ask("good")  # the libraries are loaded
    endpoint.reset()
    error = fails(ask, name, timeout=0.4, retries=1)
    assert endpoint.count == 2 and error.error_class == "timeout" and "timeout=0.4" in str(error)


def test_a_timeout_that_passes_is_survived(ask):
    ask("good")  # the libraries are loaded
    assert ask("hang-once", timeout=0.5).text == "answer for 1"


def test_all_attempts_and_pauses_end_at_the_deadline(ask, endpoint):
    error = fails(ask, "r503", retries=10_000, max_wait=0.02, deadline=0.5)
    assert 1 < endpoint.count < 1000 and "overloaded" in str(error)
    assert fails(ask, "hang", deadline=0.3).error_class == "timeout"


def test_the_libraries_own_retries_cannot_be_asked_for(ask, endpoint):
    for name in ("num_retries", "max_retries", "stream", "n", "drop_params", "caching"):
        with pytest.raises(InputError, match=name):
            ask(**{name: 2})
    assert endpoint.count == 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": formatdate(1_000_060, usegmt=True)}, 60.0),
        ({"retry-after": formatdate(999_000, usegmt=True)}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_each_of_its_forms(headers, seconds):
    assert retry_after(headers, now=1_000_000.0) == seconds


def test_pauses_double_with_jitter_up_to_the_longest():
    waits = [[pause(attempt, None, 4.0) for _ in range(200)] for attempt in range(6)]
    for attempt, drawn in enumerate(waits):
        longest = min(4.0, 0.5 * 2**attempt)
        assert longest / 2 <= min(drawn) and max(drawn) <= longest and len(set(drawn)) > 100
    assert 0.25 <= pause(0, 0.0, 4.0) <= 0.5
    assert all(3.0 <= pause(0, 3.0, 4.0) <= 3.3 for _ in range(100)) and pause(0, 5.0, 4.0) is None
