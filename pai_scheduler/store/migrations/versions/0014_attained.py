"""what jobs' earlier attempts had, and how much of it counts for no level"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("jobs", sa.Column("attained", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("uncounted", sa.BigInteger(), nullable=False, server_default="0"))
