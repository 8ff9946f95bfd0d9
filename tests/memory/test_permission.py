"""Who may do what with a block."""

import pytest

from weft.errors import LimitExceeded, PermissionDenied, StoreError
from weft.memory.permission import MATRIX, Action, ConsentRequest, RefuseAll, Rights, needs_consent
from weft.types.memory import Permission

ALLOWED = {
    Action.READ: set(Permission),
    Action.APPEND: {Permission.APPEND, Permission.READ_WRITE, Permission.ADMIN},
    Action.OVERWRITE: {Permission.READ_WRITE, Permission.ADMIN},
    Action.DELETE: {Permission.ADMIN},
}
WITH_CONSENT = {
    Action.APPEND: {Permission.PARTNER, Permission.HUMAN},
    Action.OVERWRITE: {Permission.PARTNER, Permission.HUMAN},
}


def allowed(
    action: Action, permission: Permission, *, consented: bool = False, is_system: bool = False
) -> bool:
    try:
        Rights(permission, consented).check(action, "notes", is_system=is_system)
    except PermissionDenied:
        return False
    return True


def test_the_table_has_an_answer_for_everything() -> None:
    assert set(MATRIX) == set(Permission)
    assert all(set(row) == set(Action) for row in MATRIX.values())


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize("permission", Permission)
def test_each_permission_allows_what_it_says_and_no_more(action: Action, permission: Permission) -> None:
    freely, asked = permission in ALLOWED[action], permission in WITH_CONSENT.get(action, set())

    assert allowed(action, permission) == freely
    assert allowed(action, permission, consented=True) == (freely or asked)
    assert allowed(action, permission, is_system=True)
    assert needs_consent(action, permission) == asked


@pytest.mark.parametrize(
    ("action", "permission", "words"),
    [
        (Action.APPEND, Permission.READ_ONLY, "ask its owner for ReadWrite."),
        (Action.OVERWRITE, Permission.APPEND, "add to it instead"),
        (Action.OVERWRITE, Permission.PARTNER, "ask its owner to agree first."),
        (Action.APPEND, Permission.HUMAN, "ask a person to agree first."),
        (Action.DELETE, Permission.HUMAN, "ask its owner for Admin."),
        (Action.DELETE, Permission.READ_WRITE, "ask its owner for Admin."),
    ],
)
def test_a_refusal_says_who_could_help(action: Action, permission: Permission, words: str) -> None:
    with pytest.raises(PermissionDenied) as caught:
        Rights(permission).check(action, "notes")

    assert words in str(caught.value)
    assert f"'notes' has the permission {permission.value}" in str(caught.value)


async def test_where_nobody_can_be_asked_the_answer_is_no() -> None:
    request = ConsentRequest(label="notes", action=Action.APPEND, permission=Permission.HUMAN)

    assert await RefuseAll().ask(request) is False


def test_a_limit_names_what_to_raise() -> None:
    characters = LimitExceeded(label="notes", limit=10, needed=12)
    items = LimitExceeded(label="notes", limit=3, needed=4, unit="items")

    assert isinstance(characters, StoreError)
    assert (characters.limit, characters.needed) == (10, 12)
    assert "at most 10 characters" in str(characters)
    assert str(characters).endswith("raise its char_limit.")
    assert str(items).endswith("raise its max_items.")
