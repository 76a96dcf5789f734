-- Packs may lie sealed: by which key, 0 for one that is not. One row says which key is the present one and how far the
-- sealing of older packs has come. It rewrites nothing: it takes no time, whatever the size.
ALTER TABLE packs ADD COLUMN seal BIGINT NOT NULL DEFAULT 0;
CREATE TABLE seals (
	one     BIGINT  PRIMARY KEY CHECK (one = 1),
	seal    BIGINT  NOT NULL,
	after   BIGINT  NOT NULL,
	done    BOOLEAN NOT NULL
);
