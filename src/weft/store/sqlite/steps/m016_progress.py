"""Whether the message of a turn was in the log before it began; how many parts of an answer have arrived."""

from __future__ import annotations

import apsw


def m016_progress(db: apsw.Connection) -> None:
    db.execute(
        """
        alter table turns add column is_known integer not null default 0;

        alter table outbox add column arrived integer not null default 0;
        """
    )
