"""The tables of a results database: what a grade, an episode and a setup leave behind."""

# A shard and a merged database have the same tables. They differ in two points only: a live shard has no
# episodes (those are the agents' records, the merge brings them) and no reveals (seeds stay secret while the
# job runs). Foreign keys are therefore checked where they can hold: at the end of a merge, never in a shard.

from enum import StrEnum
from typing import Any, ClassVar, cast

from sqlalchemy import (
    REAL,
    Column,
    Connection,
    Enum,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    MetaData,
    Table,
    TableClause,
    Text,
    column,
    table,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.schema import CreateTable

from bench.judge.schemas import End, Kind, Language, Outcome, Preset, SubmissionMode

APPLICATION_ID = 0x4B435254  # "KCRT", in the file's header: says whose file this is
SCHEMA_VERSION = 4


class DatabaseKind(StrEnum):
    """What a database holds: the rows of one rank, or of several inputs merged."""

    SHARD = "shard"
    RESULTS = "results"


class Ruling(StrEnum):
    """What an operator says of a grade; `withdrawn` takes the one before it back."""

    DISQUALIFIED = "disqualified"
    ACCEPTED = "accepted"
    WITHDRAWN = "withdrawn"


class Sweep(StrEnum):
    """What a scaling grade varies: sizes, or ranks at one size in all (strong) or at one size a rank (weak)."""

    SIZES = "sizes"
    STRONG = "strong"
    WEAK = "weak"


def _closed(words: type[StrEnum]) -> Enum:
    """A text column for the words of one closed set, which the database itself guards (CHECK)."""
    return Enum(
        words,
        native_enum=False,
        create_constraint=True,
        values_callable=lambda members: [member.value for member in members],
        name=words.__name__.lower(),
    )


# Small rows lie under their key alone, without a row number and a second tree: smaller and faster.
_CLUSTERED = {"sqlite_with_rowid": False}


class Base(DeclarativeBase):
    type_annotation_map: ClassVar[dict[type, Any]] = {
        str: Text,
        float: REAL,
        bytes: LargeBinary,
        End: _closed(End),
        Kind: _closed(Kind),
        Language: _closed(Language),
        Outcome: _closed(Outcome),
        Preset: _closed(Preset),
        Ruling: _closed(Ruling),
        SubmissionMode: _closed(SubmissionMode),
        Sweep: _closed(Sweep),
    }
    metadata = MetaData(
        naming_convention={
            "ck": "%(table_name)s_%(constraint_name)s",
            "ix": "%(table_name)s_%(column_0_N_name)s",
        }
    )


class Meta(Base):
    """Facts about the file itself.

    A shard has kind, job_id, rank, shard (its UUID) and created_at; a merged database has its kind and, for
    each shard that went into it, a key `shard <UUID>` with the value `job <id> rank <k>`.
    """

    __tablename__ = "meta"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class Setup(Base):
    """One setup, as `schemas.SetupRecord` describes it."""

    __tablename__ = "setups"

    setup: Mapped[str] = mapped_column(primary_key=True)
    study: Mapped[str]
    experiment: Mapped[str]
    hardware: Mapped[str]
    model: Mapped[str]
    language: Mapped[Language]
    treatment: Mapped[str]
    harness: Mapped[str]
    temperature: Mapped[float | None]
    effort: Mapped[str | None]
    preset: Mapped[Preset]
    submission_mode: Mapped[SubmissionMode]


class Episode(Base):
    """One episode of one job. A null `end`: no record of it was written, only its grades are known."""

    __tablename__ = "episodes"

    job_id: Mapped[str] = mapped_column(primary_key=True)
    label: Mapped[str] = mapped_column(primary_key=True)
    setup: Mapped[str] = mapped_column(ForeignKey("setups.setup"))
    kernel: Mapped[str]
    slot: Mapped[int]
    node: Mapped[int]
    problem: Mapped[int]
    worker: Mapped[int]
    end: Mapped[End | None]
    end_code: Mapped[int | None]
    exit_code: Mapped[int | None]
    attempts: Mapped[int | None]
    resumed: Mapped[int | None]
    turns: Mapped[int | None]
    tool_calls: Mapped[int | None]
    tokens_fresh: Mapped[int | None]
    tokens_cached: Mapped[int | None]
    tokens_output: Mapped[int | None]
    dollars: Mapped[float | None]
    prices: Mapped[str | None]
    score_calls: Mapped[int | None]
    submit_calls: Mapped[int | None]
    profile_calls: Mapped[int | None]
    search_calls: Mapped[int | None]
    outcome: Mapped[Outcome | None]
    wall_s: Mapped[float | None]
    api_s: Mapped[float | None]
    model: Mapped[str | None]
    harness: Mapped[str | None]
    harness_version: Mapped[str | None]
    started_at: Mapped[str | None]
    ended_at: Mapped[str | None]

    __table_args__ = (Index(None, "setup", "kernel", "slot"),)


class Grade(Base):
    """The judge's recorded answer to one request.

    `rank` is the one that served, `home_rank` the one the episode belongs to. `answer` is the JSON text as it
    was answered; `provenance` and `stages` are JSON objects. Times are UTC in ISO 8601, `*_ms` milliseconds.
    """

    __tablename__ = "grades"

    grade_id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str]
    setup: Mapped[str | None] = mapped_column(ForeignKey("setups.setup"))
    label: Mapped[str | None]
    kernel: Mapped[str]
    slot: Mapped[int]
    attempt: Mapped[int]
    rank: Mapped[int]
    home_rank: Mapped[int]
    kind: Mapped[Kind]
    of_grade_id: Mapped[str | None] = mapped_column(ForeignKey("grades.grade_id"))
    outcome: Mapped[Outcome]
    property: Mapped[str | None]
    suspect: Mapped[str | None]
    score: Mapped[float | None]
    raw_ratio: Mapped[float | None]
    interval_lo: Mapped[float | None]
    interval_hi: Mapped[float | None]
    faster: Mapped[bool | None]
    protocol: Mapped[str]
    preset: Mapped[Preset]
    language: Mapped[Language]
    device: Mapped[str]
    sandbox: Mapped[str]
    denominator: Mapped[str | None]
    task_hash: Mapped[str | None]
    policy_stamp: Mapped[str | None]
    reason: Mapped[str | None]
    tokens_spent: Mapped[int | None]
    idempotency_key: Mapped[str | None]
    body_sha256: Mapped[str | None]
    seed_commitment: Mapped[str]
    answer: Mapped[str]
    provenance: Mapped[str]
    stages: Mapped[str]
    overhead_ms: Mapped[float]
    package_version: Mapped[str]
    package_commit: Mapped[str | None]
    checkout_commit: Mapped[str | None]
    host: Mapped[str]
    requested_at: Mapped[str]
    finished_at: Mapped[str]
    queue_ms: Mapped[float]
    grade_ms: Mapped[float]

    __table_args__ = (
        ForeignKeyConstraint(
            ["job_id", "label"], ["episodes.job_id", "episodes.label"], deferrable=True, initially="DEFERRED"
        ),
        Index(None, "job_id", "label"),
        Index(None, "setup", "kernel", "slot"),
        # One answer a key and route; a fault of the judge is no answer, so its retry may use the key again.
        # The rank is part of it because after a failover two ranks may have met the same key.
        Index(
            "grades_key",
            "job_id",
            "rank",
            text("ifnull(label, '')"),
            text("(kind = 'score')"),
            "idempotency_key",
            unique=True,
            sqlite_where=text("idempotency_key IS NOT NULL AND outcome <> 'judge_fault'"),
        ),
    )


class Source(Base):
    """One text that grades refer to, by content; `size` in bytes."""

    __tablename__ = "sources"

    sha256: Mapped[str] = mapped_column(primary_key=True)
    size: Mapped[int]
    content: Mapped[bytes]


class GradeSource(Base):
    """Which source played which role: submission, manifest, reference, baseline:<file>, toolchains."""

    __tablename__ = "grade_sources"

    grade_id: Mapped[str] = mapped_column(ForeignKey("grades.grade_id"), primary_key=True)
    role: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(ForeignKey("sources.sha256"))

    __table_args__ = _CLUSTERED


class GradeCell(Base):
    """One timed input of a grade, as `records.Cell` describes it; sizes and times (ns) are JSON."""

    __tablename__ = "grade_cells"

    grade_id: Mapped[str] = mapped_column(ForeignKey("grades.grade_id"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    sizes: Mapped[str]
    ratio: Mapped[float]
    raw: Mapped[float]
    p: Mapped[float]
    credited: Mapped[bool]
    candidate_ns: Mapped[str]
    denominator_ns: Mapped[str]
    order: Mapped[str]
    repeated: Mapped[int]

    __table_args__ = _CLUSTERED


class Reveal(Base):
    """The seed (hex) of a grade, published when its job has ended; its sha256 is the `seed_commitment`."""

    __tablename__ = "reveals"

    grade_id: Mapped[str] = mapped_column(ForeignKey("grades.grade_id"), primary_key=True)
    seed: Mapped[str]

    __table_args__ = _CLUSTERED


class Disqualification(Base):
    """What an operator ruled of a grade, who (`by`), when (`at`) and why.

    Rows are only added: of a grade's rulings the latest stands.
    """

    __tablename__ = "disqualifications"

    grade_id: Mapped[str] = mapped_column(ForeignKey("grades.grade_id"), primary_key=True)
    at: Mapped[str] = mapped_column(primary_key=True)
    ruling: Mapped[Ruling]
    why: Mapped[str | None]
    by: Mapped[str]

    __table_args__ = _CLUSTERED


class ScalingGrade(Base):
    """The submission of one grade, graded again over a sweep of sizes or ranks; what it found lies in its points."""

    __tablename__ = "scaling_grades"

    scaling_id: Mapped[str] = mapped_column(primary_key=True)
    grade_id: Mapped[str] = mapped_column(ForeignKey("grades.grade_id"))
    sweep: Mapped[Sweep]
    outcome: Mapped[Outcome]
    reason: Mapped[str | None]
    protocol: Mapped[str]
    device: Mapped[str]
    policy_stamp: Mapped[str | None]
    seed_commitment: Mapped[str]
    provenance: Mapped[str]
    package_version: Mapped[str]
    host: Mapped[str]
    requested_at: Mapped[str]
    finished_at: Mapped[str]

    __table_args__ = (Index(None, "grade_id"),)


class ScalingPoint(Base):
    """One step of a sweep: its `ranks` on `nodes`, its sizes and each side's times (ns), which are JSON.

    `ratio` is the denominator's time over the candidate's; it is null where `outcome` is not `solved`.
    """

    __tablename__ = "scaling_points"

    scaling_id: Mapped[str] = mapped_column(ForeignKey("scaling_grades.scaling_id"), primary_key=True)
    index: Mapped[int] = mapped_column(primary_key=True)
    ranks: Mapped[int]
    nodes: Mapped[int]
    sizes: Mapped[str]
    outcome: Mapped[Outcome]
    ratio: Mapped[float | None]
    candidate_ns: Mapped[str]
    denominator_ns: Mapped[str]

    __table_args__ = _CLUSTERED


def table_of(model: type[Base]) -> Table:
    """The table behind a model, typed as one."""
    return cast(Table, model.__table__)


def create_schema(connection: Connection) -> None:
    """Make tables, view and the file's identity, in the caller's transaction; `create_indexes` follows."""
    for made in Base.metadata.sorted_tables:
        connection.execute(CreateTable(made))
    connection.exec_driver_sql(grades_flat_sql())
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")


def create_indexes(connection: Connection) -> None:
    """Make the indexes: last where many rows are put in, because sorting them once is much faster."""
    for made in Base.metadata.sorted_tables:
        for index in made.indexes:
            index.create(connection)


def grades_flat_sql() -> str:
    """`CREATE VIEW grades_flat`: a row a grade, with columns of its setup, episode, submission and last ruling.

    A column of a setup or an episode keeps its name unless one of that name is there already; then it is
    called `setup_<name>` or `episode_<name>`.
    """
    columns = ", ".join(f'{alias}."{shown.name}" AS "{name}"' for name, (alias, shown) in _flat_columns().items())
    return (
        f"CREATE VIEW grades_flat AS SELECT {columns} FROM grades g"
        " LEFT JOIN setups s ON s.setup = g.setup"
        " LEFT JOIN episodes e ON e.job_id = g.job_id AND e.label = g.label"
        " LEFT JOIN grade_sources x ON x.grade_id = g.grade_id AND x.role = 'submission'"
        # SQLite takes the other columns from the row that has the maximum.
        " LEFT JOIN (SELECT grade_id, ruling, why, max(at) FROM disqualifications GROUP BY grade_id) r"
        " ON r.grade_id = g.grade_id"
    )


def grades_flat() -> TableClause:
    """The view, to select from: its columns have the types of those that they show."""
    return table("grades_flat", *(column(name, shown.type) for name, (_, shown) in _flat_columns().items()))


def _flat_columns() -> dict[str, tuple[str, Column[Any]]]:
    """Each column of the view: the alias of its table, and the column that it shows."""
    grade, setup, episode = table_of(Grade), table_of(Setup), table_of(Episode)
    shown = {one.name: ("g", one) for one in grade.columns}
    for alias, prefix, joining, joined in (
        ("s", "setup", setup, {"setup"}),
        ("e", "episode", episode, {"job_id", "label", "setup", "kernel", "slot"}),
    ):
        for one in (c for c in joining.columns if c.name not in joined):
            shown[f"{prefix}_{one.name}" if one.name in shown else one.name] = (alias, one)
    ruling = table_of(Disqualification).columns
    shown["submission_sha256"] = ("x", table_of(GradeSource).columns.sha256)
    return shown | {"ruling": ("r", ruling.ruling), "ruling_why": ("r", ruling.why)}
