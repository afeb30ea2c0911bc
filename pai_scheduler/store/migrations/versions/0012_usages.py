"""what users have used of virtual clusters"""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_table(
        "usages",
        sa.Column("virtual_cluster", sa.String(length=255), nullable=False),
        sa.Column("user_name", sa.String(length=255), nullable=False),
        sa.Column("amount", sa.Float(53), nullable=False),
        sa.Column("as_of", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("virtual_cluster", "user_name"),
    )
