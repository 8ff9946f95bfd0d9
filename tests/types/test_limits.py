"""Which limits bind, and which leave no room."""

from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

import weft
from programs import environ, run_weft
from weft.config import load_config
from weft.types.recipe import Recipe

LIMITS = weft.ModelContextLimits
NUMBER = st.integers(1, 300_000)


def test_the_ceiling_is_the_window_without_the_room_for_the_answer() -> None:
    assert LIMITS(max_tokens=1000, reserved_response_tokens=200).ceiling == 800


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (LIMITS(max_tokens=0), "`max_tokens` is 0: it must be above zero."),
        (LIMITS(max_tokens=-5), "`max_tokens` is -5: it must be above zero."),
        (
            LIMITS(max_tokens=100, reserved_response_tokens=100),
            "`reserved_response_tokens` is 100 of 100 tokens: it must leave room for a request.",
        ),
        (
            LIMITS(max_tokens=100, reserved_response_tokens=-1),
            "`reserved_response_tokens` is -1 of 100 tokens: it must leave room for a request.",
        ),
    ],
)
def test_limits_without_room_for_a_request_are_refused(limits: weft.ModelContextLimits, said: str) -> None:
    with pytest.raises(weft.ConfigError) as caught:
        limits.check()

    assert str(caught.value) == said


@pytest.mark.parametrize(
    "limits", [LIMITS(max_tokens=100, memory_tokens=-1), LIMITS(max_tokens=100, history_tokens=-1)]
)
def test_a_part_limit_below_zero_is_refused(limits: weft.ModelContextLimits) -> None:
    with pytest.raises(weft.ConfigError):
        limits.check()


def test_limits_that_leave_one_token_are_accepted() -> None:
    limits = LIMITS(max_tokens=100, reserved_response_tokens=99)

    assert limits.check() is limits


@given(NUMBER, NUMBER, NUMBER)
def test_a_resized_window_always_leaves_room_and_keeps_a_reserve_that_fits(
    window: int, reserve: int, resized: int
) -> None:
    limits = LIMITS(max_tokens=window, reserved_response_tokens=reserve, memory_tokens=7)

    new = limits.resized(resized).check()

    assert (new.max_tokens, new.memory_tokens) == (resized, 7)
    assert new.reserved_response_tokens == (reserve if reserve < resized else resized // 4)


@given(NUMBER, st.integers(0, 299_999), NUMBER | st.none())
def test_a_model_only_ever_lowers_the_window_and_leaves_half_of_it_to_read(
    window: int, reserve: int, model: int | None
) -> None:
    limits = LIMITS(max_tokens=window, reserved_response_tokens=min(reserve, window - 1)).check()

    lowered = limits.lowered_to(model).check()

    assert lowered.max_tokens == min(window, model or window)
    assert lowered.reserved_response_tokens <= limits.reserved_response_tokens
    assert lowered == limits or lowered.ceiling * 2 >= lowered.max_tokens


RECIPE = LIMITS(max_tokens=1000, reserved_response_tokens=100)
EXPLICIT = LIMITS(max_tokens=2000)
OVERRIDE = LIMITS(max_tokens=3000)


@pytest.mark.parametrize(
    ("config", "model", "expected"),
    [
        (weft.ContextConfig(), None, RECIPE),
        (weft.ContextConfig(default_limits=EXPLICIT), None, EXPLICIT),
        (weft.ContextConfig(model_overrides={"m": OVERRIDE}), None, RECIPE),
        (weft.ContextConfig(model_overrides={"m": OVERRIDE}), weft.ModelInfo(id="m"), OVERRIDE),
        (weft.ContextConfig(model_overrides={"m": OVERRIDE}), weft.ModelInfo(id="n"), RECIPE),
        (
            weft.ContextConfig(default_limits=EXPLICIT, model_overrides={"m": OVERRIDE}),
            weft.ModelInfo(id="m", max_tokens=9000),
            OVERRIDE,
        ),
        (
            weft.ContextConfig(),
            weft.ModelInfo(id="m", max_tokens=500),
            LIMITS(max_tokens=500, reserved_response_tokens=100),
        ),
        (
            weft.ContextConfig(),
            weft.ModelInfo(id="m", max_tokens=100),
            LIMITS(max_tokens=100, reserved_response_tokens=25),
        ),
    ],
)
def test_the_explicit_limit_wins_then_the_models_override_then_its_window(
    config: weft.ContextConfig, model: weft.ModelInfo | None, expected: weft.ModelContextLimits
) -> None:
    assert config.limits(RECIPE, model) == expected


def test_explicit_limits_are_checked_before_they_bind() -> None:
    config = weft.ContextConfig(default_limits=LIMITS(max_tokens=0))

    with pytest.raises(weft.ConfigError):
        config.limits(RECIPE, None)


@pytest.mark.parametrize("window", [0, -5])
def test_a_model_without_a_window_is_a_configuration_error(window: int) -> None:
    with pytest.raises(weft.ConfigError):
        weft.ContextConfig().limits(RECIPE, weft.ModelInfo(id="m", max_tokens=window))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("[context]\nmax_tokens = 6000", (6000, 1500)),
        ("[context]\nmax_tokens = 9000", (9000, 4000)),
        ("[context]\nmax_tokens = 90000", (90_000, 4000)),
        ("[context]\nmax_tokens = 6000\nreserved_response_tokens = 3500", (6000, 3500)),
        ('[models."m"]\nmax_tokens = 6000', (6000, 1500)),
        ('[context]\nreserved_response_tokens = 3500\n[models."m"]\nmax_tokens = 6000', (6000, 3500)),
        ('[context]\nreserved_response_tokens = 8000\n[models."m"]\nmax_tokens = 6000', (6000, 1500)),
        ('[context]\nmax_tokens = 6000\n[models."m"]\nmax_tokens = 50000', (50_000, 4000)),
    ],
)
def test_a_smaller_window_of_the_settings_shrinks_the_recipes_reserve_but_not_one_that_was_set(
    tmp_path: Path, settings: str, expected: tuple[int, int]
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(settings, "utf-8")
    recipe = Recipe.load("weft")

    limits = load_config(file).context_config(recipe).limits(recipe.limits, weft.ModelInfo(id="m"))

    assert (limits.max_tokens, limits.reserved_response_tokens) == expected


def test_a_chat_in_a_small_window_of_the_settings_is_answered(home: Path) -> None:
    (home / "config.toml").write_text("[context]\nmax_tokens = 6000\n", "utf-8")
    env = environ(home) | {"WEFT_PROVIDER": "scripted"}
    run_weft(env, "init")

    asked = run_weft(env, "ask", "Hello.")

    assert (asked.returncode, asked.stderr) == (0, "")
