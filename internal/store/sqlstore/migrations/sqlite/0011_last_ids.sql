-- One row: the highest ids ever given to advance reservations, to QOS and to projects with their members, so that no id is
-- given again after its record was deleted. What was deleted before is known of reservations alone, from their log; the
-- server adds what its records have. It costs one look at the log's key.
CREATE TABLE last_ids (
	one         BIGINT PRIMARY KEY CHECK (one = 1),
	reservation BIGINT NOT NULL,
	qos         BIGINT NOT NULL,
	project     BIGINT NOT NULL
);
INSERT INTO last_ids (one, reservation, qos, project)
	VALUES (1, (SELECT COALESCE(MAX(id), 0) FROM reservation_log), 0, 0);
