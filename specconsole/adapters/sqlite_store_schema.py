"""The store's tables, as steps from one schema version to the next. A step that has shipped never changes."""

from __future__ import annotations

APPLICATION_ID = 0x53504543
"""`SPEC`, in the file's header: tells our store from any other SQLite file."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE launches (
            launch_id TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            folder TEXT NOT NULL,
            profile TEXT NOT NULL,
            engine TEXT NOT NULL,
            owner TEXT NOT NULL,
            started_at_s REAL,
            ended_at_s REAL,
            outcome TEXT NOT NULL,
            facts TEXT NOT NULL
        ) WITHOUT ROWID""",
        "CREATE INDEX launches_by_host ON launches (host, started_at_s)",
        """CREATE TABLE phase_samples (
            launch_id TEXT NOT NULL,
            phase TEXT NOT NULL,
            part TEXT NOT NULL,
            nth INTEGER NOT NULL,
            engine TEXT NOT NULL,
            key TEXT NOT NULL,
            seconds REAL NOT NULL,
            finished INTEGER NOT NULL,
            to_ready_s REAL,
            at_s REAL NOT NULL,
            PRIMARY KEY (launch_id, phase, part, nth)
        ) WITHOUT ROWID""",
        "CREATE INDEX samples_by_engine ON phase_samples (engine, at_s)",
        """CREATE TABLE records (
            kind TEXT NOT NULL,
            record_id TEXT NOT NULL,
            launch_id TEXT NOT NULL,
            at_s REAL NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (kind, record_id)
        ) WITHOUT ROWID""",
        "CREATE INDEX records_by_launch ON records (kind, launch_id, at_s)",
    ),
    # 2: the history that is searched, and notes and tags. `history` is made of `launches` (short rows, so that a look
    # through ten thousand of them reads little); `annotated` of `annotations`, which exist here and on the hosts.
    (
        """CREATE TABLE history (
            launch_id TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            profile TEXT NOT NULL,
            engine TEXT NOT NULL,
            outcome TEXT NOT NULL,
            cause TEXT NOT NULL,
            at_s REAL NOT NULL,
            row TEXT NOT NULL,
            searched TEXT NOT NULL
        )""",
        "CREATE INDEX history_by_time ON history (at_s, launch_id)",
        """INSERT INTO history SELECT launch_id, host, profile, engine, outcome, '', coalesce(started_at_s, 0), '{}',
            lower(launch_id || char(10) || profile || char(10) || host || char(10) || engine || char(10) || owner)
            FROM launches""",
        """CREATE TABLE annotations (
            launch_id TEXT NOT NULL,
            entry_id TEXT NOT NULL,
            line TEXT NOT NULL,
            on_host INTEGER NOT NULL,
            PRIMARY KEY (launch_id, entry_id)
        ) WITHOUT ROWID""",
        "CREATE INDEX annotations_to_send ON annotations (on_host, launch_id)",
        """CREATE TABLE annotated (
            launch_id TEXT PRIMARY KEY,
            searched TEXT NOT NULL
        ) WITHOUT ROWID""",
    ),
)
"""`MIGRATIONS[n]` leads from version n to n + 1; each runs whole or not at all."""

VERSION = len(MIGRATIONS)
