CREATE TABLE spent (
	project TEXT NOT NULL,
	usr     TEXT NOT NULL,
	doc     TEXT NOT NULL,
	PRIMARY KEY (project, usr)
) WITHOUT ROWID;
