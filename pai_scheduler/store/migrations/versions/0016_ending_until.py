"""when the tasks of an attempt that is ending are killed"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("attempts", sa.Column("ending_until", sa.BigInteger()))
