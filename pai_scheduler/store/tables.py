"""The tables: jobs, their attempts, the attempts' tasks, and job events. Changes go through a migration."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)

#: the newest migration: a database that has it needs none
HEAD = "0017"

metadata = MetaData()

#: what nobody has deleted. SQLite uses an index on a part of the rows only where a query names that part in
#: the same words, and `~jobs.c.doomed` becomes `doomed = 0`
KEPT = text("NOT doomed")

#: one row per job that was accepted and not deleted; `config` is the job JSON as submitted
jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user_name", String(255), nullable=False),
    Column("name", String(255), nullable=False),
    Column("config", Text, nullable=False),
    Column("virtual_cluster", String(255), nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("ord", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("sub_state", String(16), nullable=False),
    Column("completed", BigInteger),
    Column("attempt", Integer),
    Column("retries", Text, nullable=False),
    Column("not_before", BigInteger),
    Column("verdict", Text),
    Column("doomed", Boolean, nullable=False),
    Column("priority", Integer),
    Column("overtaken", Integer, nullable=False, server_default="0"),
    #: what its earlier attempts had: eighths of a GPU for one ms
    Column("attained", BigInteger, nullable=False, server_default="0"),
    #: so much of that counts for its level no longer, as it waited for long
    Column("uncounted", BigInteger, nullable=False, server_default="0"),
    Column("eligible", BigInteger),
    #: its text and media type, where that says more than `config`: it has comments or trailing commas
    Column("submitted", Text),
    Column("submitted_type", String(64)),
    # a job that is being deleted leaves its name to the next one at once
    Index(
        "uq_jobs_user_name",
        "user_name",
        "name",
        unique=True,
        sqlite_where=KEPT,
        postgresql_where=KEPT,
    ),
    Index("ix_jobs_sub_state", "sub_state"),
    Index("ix_jobs_user_created", "user_name", "created"),
    Index("ix_jobs_created", "created"),
    Index("ix_jobs_ord", "ord"),
    Index("ix_jobs_virtual_cluster", "virtual_cluster"),
)

#: the jobs that a job waits for, or has waited for, by their ids: one of them may be deleted; `holds`
#: NULL: it has not ended
dependencies = Table(
    "dependencies",
    metadata,
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("place", Integer, primary_key=True),
    Column("target", String(32), nullable=False),
    Column("name", String(255), nullable=False),
    Column("wanted", String(16), nullable=False),
    Column("holds", Boolean),
    Index("ix_dependencies_target", "target"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("created", BigInteger, nullable=False),
    Column("launched", BigInteger),
    Column("completed", BigInteger),
    Column("verdict", Text),
    #: when those of its tasks that are being stopped are killed
    Column("ending_until", BigInteger),
)

tasks = Table(
    "tasks",
    metadata,
    Column("job_id", String(32), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("role", String(255), primary_key=True),
    Column("idx", Integer, primary_key=True),
    Column("assignment", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("started", BigInteger),
    Column("ended", BigInteger),
    Column("exit_code", Integer),
    Column("address", String(255), nullable=False),
    Column("container_id", String(255), nullable=False),
    Column("killing", Boolean, nullable=False),
    Column("reason", Text),
    Column("held", BigInteger),
    Column("held_cause", String(16)),
    ForeignKeyConstraint(["job_id", "attempt"], ["attempts.job_id", "attempts.number"], ondelete="CASCADE"),
)

job_events = Table(
    "story",  # as databases have called it from the first version on
    metadata,
    # SQLite numbers only INTEGER keys by itself
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("job_id", ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("type", String(32), nullable=False),
    Column("message", Text, nullable=False),
    Column("attempt", Integer),
    Column("role", String(255)),
    Column("idx", Integer),
    Column("data", Text, nullable=False),
    Index("ix_story_job", "job_id", "id"),
    sqlite_autoincrement=True,
)

#: what belongs to this database: `database` is its own name, which tells it from all others; the others are
#: files of the data folder, by their fingerprints
installation = Table(
    "installation",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)

#: tasks of deleted jobs whose logs are still to be removed
forgotten = Table(
    "forgotten",
    metadata,
    Column("job_id", String(32), primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("role", String(255), primary_key=True),
    Column("idx", Integer, primary_key=True),
)

#: what administrators changed of the virtual clusters; `document` NULL: deleted, though the file has it
virtual_clusters = Table(
    "virtual_clusters",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("document", Text),
)

#: what users had used of virtual clusters that they share by that, at `as_of`: eighths of a GPU for one ms
usages = Table(
    "usages",
    metadata,
    Column("virtual_cluster", String(255), primary_key=True),
    Column("user_name", String(255), primary_key=True),
    Column("amount", Float(53), nullable=False),
    Column("as_of", BigInteger, nullable=False),
)

#: where the scheduler's clock was, in one row: so long (ms) after the boot of that name it was `time`
clock_marks = Table(
    "clock_marks",
    metadata,
    Column("boot", String(64), primary_key=True),
    Column("uptime", BigInteger, nullable=False),
    Column("time", BigInteger, nullable=False),
)

#: the nodes that administrators have closed for new tasks
closed_nodes = Table(
    "closed_nodes",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("user_name", String(255), nullable=False),
    Column("reason", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
)

#: when machines will be down, as administrators have planned; `nodes` is a list of patterns as JSON
maintenance = Table(
    "maintenance",
    metadata,
    Column("name", String(255), primary_key=True),
    Column("nodes", Text, nullable=False),
    Column("begin_time", BigInteger, nullable=False),
    Column("end_time", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("user_name", String(255), nullable=False),
)

#: what is still to be told outside of jobs' ends; a job that is deleted is told of all the same
announcements = Table(
    "announcements",
    metadata,
    Column("job_id", String(32), primary_key=True),
    Column("channel", String(16), primary_key=True),
    Column("user_name", String(255), nullable=False),
    Column("target", Text, nullable=False),
    Column("document", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("due", BigInteger, nullable=False),
    Index("ix_announcements_due", "due"),
)

#: the public keys with which users log into their tasks; `line` is the key as OpenSSH writes it
public_keys = Table(
    "public_keys",
    metadata,
    Column("user_name", String(255), primary_key=True),
    Column("fingerprint", String(64), primary_key=True),
    Column("line", Text, nullable=False),
    Column("added", BigInteger, nullable=False),
)

#: the jobs that run again and again; `config` is the job JSON. `next_time` NULL: paused, or never due. The
#: columns `last_…` say what came of it last
schedules = Table(
    "schedules",
    metadata,
    Column("user_name", String(255), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("cron", String(255), nullable=False),
    Column("zone", String(255), nullable=False),
    Column("overlap", String(16), nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("next_time", BigInteger),
    Column("last_job", String(255)),
    Column("last_time", BigInteger),
    Column("last_outcome", String(16)),
    Column("last_message", Text),
    Column("config", Text, nullable=False),
    Index("ix_schedules_next_time", "next_time"),
)
