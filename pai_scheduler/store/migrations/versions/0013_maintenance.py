"""the maintenance that administrators have planned"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
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
