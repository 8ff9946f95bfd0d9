"""The query for everything that is remembered of everyone: blocks, facts, instructions, notes and summaries.

Messages are the log, and not remembered text.
"""

from __future__ import annotations

from weft.types.person import ASKED_BY

# A block is the operator's own if nobody else ever wrote to it; its creation does not count. The text of a
# stream is written by the system, but comes from elsewhere.
ALL_REMEMBERED = f"""
    select 'block' as kind, agent_id as owner, label as name, rendered as text,
        coalesce((
            select origin from stream_items join streams on name = stream
            where block_id = blocks.id and block_id <> ''
        ), case when exists(
            select 1 from block_updates where block_id = blocks.id and author <> 'system'
            and seq > (select min(seq) from block_updates where block_id = blocks.id)
        ) then 'agent' else 'operator' end) as origin,
        char_limit as "limit", updated_at as at,
        coalesce((
            select substr(author, instr(author, '{ASKED_BY}') + {len(ASKED_BY)}) from block_updates as change
            where block_id = blocks.id and instr(author, '{ASKED_BY}') and kind <> 'undo' and not exists(
                select 1 from block_updates as other
                where other.block_id = blocks.id and other.kind = 'undo' and other.undoes = change.seq
            ) order by seq desc limit 1
        ), '') as asked_by from blocks
    union all
    select 'fact', person, key, value, 'user', null, created_at, asked_by from facts where ended_at is null
    union all
    select 'instruction', person, id, text, 'user', null, created_at, '' from instructions
        where ended_at is null
    union all
    select 'note', agent_id, id, content, coalesce(metadata ->> '$.origin', 'agent'), null, created_at,
        coalesce(metadata ->> '$.asked_by', '') from archive
    union all
    select 'summary', channel || ':' || sender, cast(id as text), text, 'agent', null, created_at, ''
        from summaries
    union all
    select 'task', sender, id, text, 'agent', null, created_at, asked_by from tasks
        where status = 'pending' and asked_by <> ''
"""
