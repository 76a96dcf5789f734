-- What happened to a node is found without reading what happened to jobs.
CREATE INDEX events_node ON events (node, seq) WHERE node <> '';
