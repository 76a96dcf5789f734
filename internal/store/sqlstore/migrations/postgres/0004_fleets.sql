-- Fleets: a new, empty table.
CREATE TABLE fleets (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);
