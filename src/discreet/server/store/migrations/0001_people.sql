-- People, and how they show who they are.
CREATE TABLE people (
  id TEXT PRIMARY KEY,
  login TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('owner', 'analyst', 'auditor', 'operator')),
  password TEXT NOT NULL,
  subject TEXT UNIQUE,
  active INTEGER NOT NULL CHECK (active IN (0, 1)),
  created_at DOUBLE PRECISION NOT NULL
);

CREATE TABLE tokens (
  id TEXT PRIMARY KEY,
  person TEXT NOT NULL REFERENCES people (id),
  digest TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL,
  revoked_at DOUBLE PRECISION
);

CREATE TABLE browsers (
  digest TEXT PRIMARY KEY,
  person TEXT NOT NULL REFERENCES people (id),
  created_at DOUBLE PRECISION NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
);

-- Failed logins of a name, whether or not somebody has it.
CREATE TABLE failures (
  login TEXT PRIMARY KEY,
  count INTEGER NOT NULL,
  locked_until DOUBLE PRECISION NOT NULL
);
