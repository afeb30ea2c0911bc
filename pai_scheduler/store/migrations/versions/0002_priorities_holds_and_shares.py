"""priorities, holds and shares"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("jobs", sa.Column("priority", sa.Integer(), nullable=True))
    op.add_column("jobs", sa.Column("overtaken", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("tasks", sa.Column("held", sa.BigInteger(), nullable=True))
    op.add_column("tasks", sa.Column("held_cause", sa.String(length=16), nullable=True))
    op.create_table(
        "virtual_clusters",
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("document", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
