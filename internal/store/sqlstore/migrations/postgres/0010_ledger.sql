-- Advance reservations by occurrence, kept after their end for reports, and small records that the server keeps beside
-- the engine's state (triggers, other clusters, shared licenses). Both begin empty: it costs nothing.
CREATE TABLE reservation_log (
	id       BIGINT NOT NULL,
	start_at BIGINT NOT NULL,
	end_at   BIGINT NOT NULL,
	name     TEXT   NOT NULL,
	doc      TEXT   NOT NULL,
	PRIMARY KEY (id, start_at)
);
CREATE INDEX reservation_log_end ON reservation_log (end_at);

CREATE TABLE records (
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	doc  TEXT NOT NULL,
	PRIMARY KEY (kind, name)
);
