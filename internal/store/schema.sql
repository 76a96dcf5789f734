-- The store's schema after all migrations, as SQLite has it: the readable truth. PostgreSQL's has the same tables and
-- columns, with BIGINT for INTEGER and BYTEA for BLOB. Tests compare both with this file; the migrations make it.

-- One row: who leads, and the counters that every commit moves with it.
CREATE TABLE leader (
	one       BIGINT PRIMARY KEY CHECK (one = 1),
	epoch     BIGINT NOT NULL,
	holder    TEXT   NOT NULL,
	expires   BIGINT NOT NULL,
	seq       BIGINT NOT NULL,
	next_job  BIGINT NOT NULL,
	next_node BIGINT NOT NULL,
	now       BIGINT NOT NULL
);

-- One row: the highest ids ever given to reservations, QOS and projects with their members; see 0011.
CREATE TABLE last_ids (
	one         BIGINT PRIMARY KEY CHECK (one = 1),
	reservation BIGINT NOT NULL,
	qos         BIGINT NOT NULL,
	project     BIGINT NOT NULL
);

-- The servers of the cluster, each a row that it writes itself: where the others reach it and how far its copy is.
CREATE TABLE servers (
	id      TEXT   PRIMARY KEY,
	seen_at BIGINT NOT NULL,
	doc     TEXT   NOT NULL
);

CREATE TABLE specs (
	id     INTEGER PRIMARY KEY,
	script BLOB NOT NULL,
	env    BLOB NOT NULL,
	doc    TEXT NOT NULL
);

CREATE TABLE jobs (
	id        INTEGER PRIMARY KEY,
	spec_id   BIGINT  NOT NULL,
	array_id  BIGINT,
	usr       TEXT    NOT NULL,
	project   TEXT    NOT NULL,
	part      TEXT    NOT NULL,
	name      TEXT    NOT NULL,
	state     BIGINT  NOT NULL,
	submit_at BIGINT  NOT NULL,
	start_at  BIGINT  NOT NULL,
	end_at    BIGINT  NOT NULL,
	live      BOOLEAN NOT NULL,
	doc       TEXT    NOT NULL
);
CREATE INDEX jobs_live ON jobs (id) WHERE live;
CREATE INDEX jobs_array ON jobs (array_id) WHERE array_id IS NOT NULL;
CREATE INDEX jobs_end ON jobs (end_at) WHERE NOT live;
CREATE INDEX jobs_usr ON jobs (usr, end_at) WHERE NOT live;

CREATE TABLE steps (
	job     BIGINT NOT NULL,
	attempt BIGINT NOT NULL,
	id      BIGINT NOT NULL,
	doc     TEXT   NOT NULL,
	PRIMARY KEY (job, attempt, id)
) WITHOUT ROWID;

CREATE TABLE nodes (
	name TEXT   PRIMARY KEY,
	id   BIGINT NOT NULL,
	doc  TEXT   NOT NULL
);

CREATE TABLE users (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);

CREATE TABLE projects (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);

-- What users have spent in projects, for fair-share.
CREATE TABLE spent (
	project TEXT NOT NULL,
	usr     TEXT NOT NULL,
	doc     TEXT NOT NULL,
	PRIMARY KEY (project, usr)
) WITHOUT ROWID;

CREATE TABLE qos (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);

CREATE TABLE reservations (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);

-- Advance reservations by occurrence, for reports; rows stay after the end.
CREATE TABLE reservation_log (
	id       BIGINT NOT NULL,
	start_at BIGINT NOT NULL,
	end_at   BIGINT NOT NULL,
	name     TEXT   NOT NULL,
	doc      TEXT   NOT NULL,
	PRIMARY KEY (id, start_at)
) WITHOUT ROWID;
CREATE INDEX reservation_log_end ON reservation_log (end_at);

-- Small records that the server keeps beside the engine's state: triggers, other clusters, shared licenses.
CREATE TABLE records (
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	doc  TEXT NOT NULL,
	PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE TABLE fleets (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);

CREATE TABLE credentials (
	kind  TEXT NOT NULL,
	owner TEXT NOT NULL,
	name  TEXT NOT NULL,
	doc   TEXT NOT NULL,
	PRIMARY KEY (kind, owner, name)
);

CREATE TABLE volumes (
	project TEXT NOT NULL,
	name    TEXT NOT NULL,
	doc     TEXT NOT NULL,
	PRIMARY KEY (project, name)
);

CREATE TABLE tokens (
	id   TEXT PRIMARY KEY,
	hash BLOB NOT NULL UNIQUE,
	doc  TEXT NOT NULL
);

CREATE TABLE runs (
	id         TEXT   PRIMARY KEY,
	project    TEXT   NOT NULL,
	name       TEXT   NOT NULL,
	created_at BIGINT NOT NULL,
	end_at     BIGINT NOT NULL,
	config     BLOB   NOT NULL,
	doc        TEXT   NOT NULL
);
CREATE INDEX runs_created ON runs (created_at);
CREATE INDEX runs_name ON runs (project, name, created_at);
CREATE INDEX runs_project ON runs (project, created_at);

-- Scripts and environments: where each stands, and the packs they stand in. shelf is a run of neighbouring job ids, so
-- that the index grows at its end although hashes are random; see blobs.go.
CREATE TABLE blobs (
	shelf BIGINT NOT NULL,
	hash  BLOB   NOT NULL,
	pack  BIGINT NOT NULL,
	off   BIGINT NOT NULL,
	len   BIGINT NOT NULL,
	PRIMARY KEY (shelf, hash)
) WITHOUT ROWID;

CREATE TABLE packs (
	id   INTEGER PRIMARY KEY,
	data BLOB NOT NULL
, seal BIGINT NOT NULL DEFAULT 0);

-- One row: the key that seals packs now, and after which pack those are that are not yet under it.
CREATE TABLE seals (
	one     BIGINT  PRIMARY KEY CHECK (one = 1),
	seal    BIGINT  NOT NULL,
	after   BIGINT  NOT NULL,
	done    BOOLEAN NOT NULL
);

CREATE TABLE submit_keys (
	shelf BIGINT NOT NULL,
	key   TEXT   NOT NULL,
	job   BIGINT NOT NULL,
	at    BIGINT NOT NULL,
	usr   TEXT   NOT NULL,
	PRIMARY KEY (shelf, key)
) WITHOUT ROWID;

CREATE TABLE events (
	seq    INTEGER PRIMARY KEY,
	at     BIGINT NOT NULL,
	kind   TEXT   NOT NULL,
	job    BIGINT NOT NULL,
	node   TEXT   NOT NULL,
	usr    TEXT   NOT NULL,
	by_usr TEXT   NOT NULL,
	data   TEXT   NOT NULL
);
CREATE INDEX events_node ON events (node, seq) WHERE node <> '';

-- The audit log: who asked for what, with which answer.
CREATE TABLE audit (
	seq        INTEGER PRIMARY KEY,
	at         BIGINT NOT NULL,
	usr        TEXT   NOT NULL,
	token      TEXT   NOT NULL,
	token_name TEXT   NOT NULL,
	action     TEXT   NOT NULL,
	object     TEXT   NOT NULL,
	answer     TEXT   NOT NULL,
	doc        TEXT   NOT NULL
);
CREATE INDEX audit_usr ON audit (usr, seq);

CREATE TABLE sealed (
	name TEXT PRIMARY KEY,
	data BLOB NOT NULL
);

-- What Probe writes to and empties again.
CREATE TABLE probe (
	one  BIGINT PRIMARY KEY,
	data BLOB NOT NULL
);

-- Which migrations were run. oldest is the oldest schema whose programs may write after one; 0: those that know it.
CREATE TABLE migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL, oldest BIGINT NOT NULL DEFAULT 0);
