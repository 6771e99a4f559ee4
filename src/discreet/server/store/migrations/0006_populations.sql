-- Populations: data sets about the same people, whose boxes are set aside in one.
CREATE TABLE populations (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  owner TEXT NOT NULL REFERENCES people (id),
  node TEXT NOT NULL UNIQUE,
  budget TEXT NOT NULL,
  neighbors TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  UNIQUE (owner, name)
);

ALTER TABLE datasets ADD COLUMN population TEXT REFERENCES populations (id);
