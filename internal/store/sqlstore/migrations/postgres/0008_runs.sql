-- Runs are found by name, and those of a project in the order of their creation, without reading those of others.
-- A million runs take a second or two.
CREATE INDEX runs_name ON runs (project, name, created_at);
CREATE INDEX runs_project ON runs (project, created_at);
