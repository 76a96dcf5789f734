-- oldest: 11
-- Network volumes of projects: a new, empty table.
CREATE TABLE volumes (
	project TEXT NOT NULL,
	name    TEXT NOT NULL,
	doc     TEXT NOT NULL,
	PRIMARY KEY (project, name)
);
