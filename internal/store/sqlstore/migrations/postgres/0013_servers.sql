-- oldest: 11
-- The servers of the cluster, each a row that it writes itself: where the others reach it and how far its copy is.
CREATE TABLE servers (
	id      TEXT PRIMARY KEY,
	seen_at BIGINT NOT NULL,
	doc     TEXT NOT NULL
);
