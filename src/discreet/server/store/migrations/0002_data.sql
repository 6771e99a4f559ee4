-- Data sets, studies and seats. Budgets stand in the tree; nodes are named here.
CREATE TABLE datasets (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  owner TEXT NOT NULL REFERENCES people (id),
  node TEXT NOT NULL UNIQUE,
  budget TEXT NOT NULL,
  version INTEGER NOT NULL CHECK (version >= 1),
  state TEXT NOT NULL CHECK (state IN ('opening', 'open', 'frozen', 'closed')),
  reason TEXT NOT NULL,
  listed INTEGER NOT NULL CHECK (listed IN (0, 1)),
  created_at DOUBLE PRECISION NOT NULL,
  UNIQUE (owner, name)
);

CREATE TABLE versions (
  dataset TEXT NOT NULL REFERENCES datasets (id),
  version INTEGER NOT NULL CHECK (version >= 1),
  declared TEXT NOT NULL,
  public_count BIGINT,
  rows_at_most BIGINT NOT NULL,
  pin TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (dataset, version)
);

CREATE TABLE studies (
  id TEXT PRIMARY KEY,
  dataset TEXT NOT NULL REFERENCES datasets (id),
  name TEXT NOT NULL,
  purpose TEXT NOT NULL,
  asked_by TEXT NOT NULL REFERENCES people (id),
  members TEXT NOT NULL,
  budget TEXT NOT NULL,
  seats TEXT NOT NULL CHECK (seats IN ('carved', 'pooled')),
  plan TEXT NOT NULL,
  ask_above TEXT,
  state TEXT NOT NULL CHECK (state IN ('requested', 'opening', 'open', 'declined', 'closed')),
  reason TEXT NOT NULL,
  node TEXT,
  expires_at DOUBLE PRECISION,
  created_at DOUBLE PRECISION NOT NULL,
  decided_at DOUBLE PRECISION
);

CREATE TABLE seats (
  study TEXT NOT NULL REFERENCES studies (id),
  person TEXT NOT NULL REFERENCES people (id),
  node TEXT NOT NULL UNIQUE,
  created_at DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (study, person)
);

CREATE TABLE questions (
  id TEXT PRIMARY KEY,
  study TEXT NOT NULL REFERENCES studies (id),
  node TEXT NOT NULL,
  person TEXT NOT NULL REFERENCES people (id),
  key TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('release', 'named')),
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  words TEXT,
  reservation TEXT,
  state TEXT NOT NULL CHECK (state IN ('asked', 'waiting', 'declined', 'refused', 'answered',
                                       'failed')),
  reason TEXT NOT NULL,
  result TEXT,
  asked_at DOUBLE PRECISION NOT NULL,
  ready_at DOUBLE PRECISION,
  finished_at DOUBLE PRECISION,
  UNIQUE (node, key)
);

CREATE INDEX questions_unfinished ON questions (state, ready_at);
CREATE INDEX questions_of_a_person ON questions (person, asked_at);
