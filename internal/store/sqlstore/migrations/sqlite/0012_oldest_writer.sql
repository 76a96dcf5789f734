-- oldest: 11
-- Each migration says the oldest schema whose programs may still write the database after it: so the version before can
-- be put back while nothing but additions was made.
ALTER TABLE migrations ADD COLUMN oldest BIGINT NOT NULL DEFAULT 0;
