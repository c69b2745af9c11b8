# SPDX-License-Identifier: Apache-2.0
"""The index in a PostgreSQL server, through SQLAlchemy 1.4 or 2: the tables and views of index_schema."""
import importlib.util

from . import index_schema as schema
from .errors import InfrastructureError, UsageError

DRIVERS = ("psycopg2", "psycopg")
NEED = "--db needs SQLAlchemy and a driver: sudo apt-get install python3-sqlalchemy python3-psycopg2"


class Server:
    """Replaces the index of a database in one transaction: readers see the old one or the new one."""

    def __init__(self, url):
        try:
            import sqlalchemy
            from sqlalchemy import exc
        except ImportError as error:
            raise InfrastructureError(f"{NEED} ({error})") from error
        self._sql, self._error = sqlalchemy, exc.SQLAlchemyError
        try:
            parsed = sqlalchemy.engine.make_url(url)
        except exc.ArgumentError as error:
            raise UsageError("--db: not a URL like postgresql://user@host/database") from error
        if parsed.get_backend_name() != "postgresql":
            raise UsageError(f"--db: {parsed.get_backend_name()} is not supported; "
                             "write postgresql://user@host/database")
        if parsed.drivername == "postgresql":  # SQLAlchemy's versions differ in the driver that this means
            found = [name for name in DRIVERS if importlib.util.find_spec(name)]
            parsed = parsed.set(drivername=f"postgresql+{(found or DRIVERS)[0]}")
        try:
            self._engine = sqlalchemy.create_engine(parsed)
        except ImportError as error:
            raise InfrastructureError(f"{NEED} ({error})") from error
        self._tables = self._describe(sqlalchemy)
        self._connection = None
        self._guarded(self._open)

    def _describe(self, sa):
        types = {schema.TEXT: sa.Text, schema.INTEGER: sa.BigInteger, schema.REAL: sa.Float(53)}
        self._metadata = sa.MetaData()
        return {table: sa.Table(table, self._metadata, *(
            sa.Column(name, types[kind], primary_key=name == schema.KEYS.get(table), autoincrement=False)
            for name, kind in columns.items())) for table, columns in schema.TABLES.items()}

    def _guarded(self, action):
        """Runs action(); a failure of the server is one line without the URL, which may hold a password."""
        try:
            return action()
        except self._error as error:
            reason = str(getattr(error, "orig", None) or error).strip().split("\n")[0]
            raise InfrastructureError(f"the database refuses: {reason}") from error

    def _open(self):
        self._connection = self._engine.connect()
        self._transaction = self._connection.begin()
        there = set(self._sql.inspect(self._connection).get_table_names())
        foreign = there & set(schema.TABLES)
        if foreign and "tigon_index" not in there:
            self._connection.close()
            raise UsageError(f"--db: the database has a table {sorted(foreign)[0]} that is no index of tigon; "
                             "use another one")
        for name in reversed(schema.VIEWS):
            self._execute(f"DROP VIEW IF EXISTS {name}")
        self._metadata.drop_all(self._connection)
        self._metadata.create_all(self._connection)

    def _execute(self, text, *values):
        return self._connection.execute(self._sql.text(text), *values)

    def insert(self, table, rows):
        names = list(schema.TABLES[table])
        if rows:
            values = [dict(zip(names, row)) for row in rows]
            self._guarded(lambda: self._connection.execute(self._tables[table].insert(), values))

    def delete(self, ids):
        if ids:
            self._guarded(lambda: self._execute("DELETE FROM records WHERE id = :id",
                                                [{"id": number} for number in ids]))

    def finish(self):
        def close():
            for name, columns in schema.INDEXES.items():
                self._execute(f"CREATE INDEX {name} ON {columns}")
            for name, text in schema.VIEWS.items():
                self._execute(f"CREATE VIEW {name} AS {text}")
            self._transaction.commit()
            self._connection.close()
        self._guarded(close)

    def abandon(self):
        """Leaves the database as it was."""
        if self._connection is not None:
            self._connection.close()
