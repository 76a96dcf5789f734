-- Secrets, repositories and keys of projects and users: a new, empty table.
CREATE TABLE credentials (
	kind  TEXT NOT NULL,
	owner TEXT NOT NULL,
	name  TEXT NOT NULL,
	doc   TEXT NOT NULL,
	PRIMARY KEY (kind, owner, name)
);
