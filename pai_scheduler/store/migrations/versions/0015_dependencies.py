"""the jobs that jobs wait for, and since when they wait for none any more"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("jobs", sa.Column("eligible", sa.BigInteger()))
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
