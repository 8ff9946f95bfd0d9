"""Whatever a program sends that fits the description, or nearly, no request makes the server fail."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error

import weft
from http_server import serving
from weft.types.context import Context


class Parrot(weft.ScriptedProvider):
    """Answers everything."""

    async def stream(self, context: Context) -> Any:
        yield weft.TextDelta("An answer.")
        yield weft.Done(weft.Reply(text="An answer."))


async def _serve(ready: Future[str], stop: threading.Event) -> None:
    try:
        async with serving(model=Parrot(), requests_per_minute=0) as server:
            ready.set_result(server.url)
            await asyncio.to_thread(stop.wait)
    except BaseException as error:
        if not ready.done():
            ready.set_exception(error)
        raise


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The description of a server that runs meanwhile."""
    ready, stop = Future[str](), threading.Event()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEFT_HOME", str(tmp_path_factory.mktemp("home")))
        thread = threading.Thread(target=lambda: asyncio.run(_serve(ready, stop)))
        thread.start()
        try:
            url = ready.result(timeout=60)
            yield url, schemathesis.openapi.from_url(f"{url}/openapi.json")
        finally:
            stop.set()
            thread.join()


RIGHT = {
    "/v1/chat/completions": {"model": "weft", "messages": [{"role": "user", "content": "Hi"}]},
    "/v1/responses": {"model": "weft", "input": "Hi"},
    "/api/turns": {"text": "Hi"},
    "/api/context": {"text": "Hi"},
}


@pytest.mark.parametrize("path", RIGHT)
def test_a_right_request_is_answered_and_a_wrong_one_refused(description: Any, path: str) -> None:
    url, _ = description

    assert httpx.post(url + path, json=RIGHT[path], timeout=60).status_code == 200
    assert httpx.post(url + path, json={"text": 5, "messages": 5, "input": 5}, timeout=60).status_code == 400


def test_no_request_makes_the_server_fail(description: Any) -> None:
    operations = [found.ok() for found in description[1].get_all_operations()]
    assert len(operations) == 23
    answers: set[tuple[str, int]] = set()

    for operation in operations:

        @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        @settings(
            max_examples=40,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def holds(case: Any) -> None:
            if isinstance(case.body, dict) and isinstance(case.body.get("model"), str):
                case.body["model"] = "weft"
            answer = case.call_and_validate(checks=[not_a_server_error])
            answers.add((case.operation.label, answer.status_code))

        holds()

    assert {label for label, _ in answers} == {operation.label for operation in operations}
