-- What users spent in projects, for fair-share. A new, empty table: it costs nothing, however much history there is.
CREATE TABLE spent (
	project TEXT NOT NULL,
	usr     TEXT NOT NULL,
	doc     TEXT NOT NULL,
	PRIMARY KEY (project, usr)
) WITHOUT ROWID;
