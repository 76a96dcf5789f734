-- Qualities of service and advance reservations: new, empty tables.
CREATE TABLE qos (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);
CREATE TABLE reservations (
	name TEXT PRIMARY KEY,
	doc  TEXT NOT NULL
);
