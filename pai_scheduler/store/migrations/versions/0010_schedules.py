"""the jobs that run again and again"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
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
