-- Browsers that were sent to an OpenID provider and did not come back yet.
CREATE TABLE strangers (
  digest TEXT PRIMARY KEY,
  state TEXT NOT NULL,
  nonce TEXT NOT NULL,
  verifier TEXT NOT NULL,
  expires_at DOUBLE PRECISION NOT NULL
);
