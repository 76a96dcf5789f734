-- The audit log: who asked for what, with which answer. It only grows; retention.audit removes its oldest rows.
CREATE TABLE audit (
	seq        BIGINT PRIMARY KEY,
	at         BIGINT NOT NULL,
	usr        TEXT   NOT NULL,
	token      TEXT   NOT NULL,
	token_name TEXT   NOT NULL,
	action     TEXT   NOT NULL,
	object     TEXT   NOT NULL,
	answer     TEXT   NOT NULL,
	doc        TEXT   NOT NULL
);
CREATE INDEX audit_usr ON audit (usr, seq);
