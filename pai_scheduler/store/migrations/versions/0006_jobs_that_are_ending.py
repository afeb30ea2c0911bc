"""a job ends when its last task has: what was said too early of those that are ending is taken back"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the rows here from the revision before."""
    op.execute(
        "DELETE FROM story WHERE type = 'ended' "
        "AND job_id IN (SELECT id FROM jobs WHERE sub_state = 'ENDING')"
    )
    op.execute(
        "UPDATE jobs SET completed = NULL, state = CASE WHEN EXISTS (SELECT 1 FROM attempts "
        "WHERE attempts.job_id = jobs.id AND attempts.number = jobs.attempt AND launched IS NOT NULL) "
        "THEN 'RUNNING' ELSE 'WAITING' END WHERE sub_state = 'ENDING'"
    )
