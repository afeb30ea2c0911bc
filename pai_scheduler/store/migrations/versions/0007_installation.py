"""what tells this database from all others, and the files that belong to it"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Bring the schema here from the revision before."""
    table = op.create_table(
        "installation",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.bulk_insert(table, [{"name": "database", "value": _name(op.get_bind())}])


def _name(connection: sa.Connection) -> str:
    """Keep the name under which data folders know a PostgreSQL already."""
    found = sa.inspect(connection)
    if found.has_table("leader") and "name" in {column["name"] for column in found.get_columns("leader")}:
        name = connection.execute(sa.text("SELECT name FROM leader")).scalar()
        if name:
            return str(name)
    return secrets.token_hex(16)
