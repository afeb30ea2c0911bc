"""the texts of jobs that were submitted with comments or trailing commas"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.add_column("jobs", sa.Column("submitted", sa.Text()))
    op.add_column("jobs", sa.Column("submitted_type", sa.String(length=64)))
