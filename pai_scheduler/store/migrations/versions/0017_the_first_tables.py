"""the tables of the first release; what there was before it, 0001 to 0016, is in this one"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables in an empty database, and give it a name."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("virtual_cluster", sa.String(length=255), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("ord", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("sub_state", sa.String(length=16), nullable=False),
        sa.Column("completed", sa.BigInteger()),
        sa.Column("attempt", sa.Integer()),
        sa.Column("retries", sa.Text(), nullable=False),
        sa.Column("not_before", sa.BigInteger()),
        sa.Column("verdict", sa.Text()),
        sa.Column("doomed", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer()),
        sa.Column("overtaken", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("attained", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("uncounted", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("eligible", sa.BigInteger()),
        sa.Column("submitted", sa.Text()),
        sa.Column("submitted_type", sa.String(length=64)),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_jobs_created", "jobs", ["created"])
    op.create_index("ix_jobs_sub_state", "jobs", ["sub_state"])
    op.create_index("ix_jobs_user_created", "jobs", ["user_name", "created"])
    op.create_index(
        "uq_jobs_user_name",
        "jobs",
        ["user_name", "name"],
        unique=True,
        sqlite_where=sa.text("NOT doomed"),
        postgresql_where=sa.text("NOT doomed"),
    )
    op.create_index("ix_jobs_ord", "jobs", ["ord"])
    op.create_index("ix_jobs_virtual_cluster", "jobs", ["virtual_cluster"])
    op.create_table(
        "dependencies",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("target", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("wanted", sa.String(length=16), nullable=False),
        sa.Column("holds", sa.Boolean()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "place"),
    )
    op.create_index("ix_dependencies_target", "dependencies", ["target"])
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("launched", sa.BigInteger()),
        sa.Column("completed", sa.BigInteger()),
        sa.Column("verdict", sa.Text()),
        sa.Column("ending_until", sa.BigInteger()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number"),
    )
    op.create_table(
        "tasks",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=255), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.Column("assignment", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("started", sa.BigInteger()),
        sa.Column("ended", sa.BigInteger()),
        sa.Column("exit_code", sa.Integer()),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("container_id", sa.String(length=255), nullable=False),
        sa.Column("killing", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("held", sa.BigInteger()),
        sa.Column("held_cause", sa.String(length=16)),
        sa.ForeignKeyConstraint(
            ["job_id", "attempt"], ["attempts.job_id", "attempts.number"], ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "attempt", "role", "idx"),
    )
    op.create_table(
        "story",
        sa.Column(
            "id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(length=32), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer()),
        sa.Column("role", sa.String(length=255)),
        sa.Column("idx", sa.Integer()),
        sa.Column("data", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_story_job", "story", ["job_id", "id"])
    installation = op.create_table(
        "installation",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.bulk_insert(installation, [{"name": "database", "value": secrets.token_hex(16)}])
    op.create_table(
        "forgotten",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("role", sa.String(length=255), nullable=False),
        sa.Column("idx", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "attempt", "role", "idx"),
    )
    op.create_table(
        "virtual_clusters",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("document", sa.Text()),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "usages",
        sa.Column("virtual_cluster", sa.String(length=255), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("amount", sa.Float(53), nullable=False),
        sa.Column("as_of", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("virtual_cluster", "user_name"),
    )
    op.create_table(
        "clock_marks",
        sa.Column("boot", sa.String(length=64), nullable=False),
        sa.Column("uptime", sa.BigInteger(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("boot"),
    )
    op.create_table(
        "closed_nodes",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "maintenance",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("nodes", sa.Text(), nullable=False),
        sa.Column("begin_time", sa.BigInteger(), nullable=False),
        sa.Column("end_time", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "announcements",
        sa.Column("job_id", sa.String(length=32), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("due", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "channel"),
    )
    op.create_index("ix_announcements_due", "announcements", ["due"])
    op.create_table(
        "public_keys",
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("line", sa.Text(), nullable=False),
        sa.Column("added", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("user_name", "fingerprint"),
    )
    op.create_table(
        "schedules",
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("cron", sa.String(length=255), nullable=False),
        sa.Column("zone", sa.String(length=255), nullable=False),
        sa.Column("overlap", sa.String(length=16), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("next_time", sa.BigInteger()),
        sa.Column("last_job", sa.String(length=255)),
        sa.Column("last_time", sa.BigInteger()),
        sa.Column("last_outcome", sa.String(length=16)),
        sa.Column("last_message", sa.Text()),
        sa.Column("config", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("user_name", "name"),
    )
    op.create_index("ix_schedules_next_time", "schedules", ["next_time"])
