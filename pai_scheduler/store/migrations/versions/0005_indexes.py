"""indexes for the order of submissions and the counts of virtual clusters"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    op.create_index("ix_jobs_ord", "jobs", ["ord"])
    op.create_index("ix_jobs_virtual_cluster", "jobs", ["virtual_cluster"])
