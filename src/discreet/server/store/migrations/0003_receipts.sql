-- Receipts that were signed here, shown by people, and not known to their ledger: what recovery
-- counts as spent.
CREATE TABLE shown (
  dataset TEXT NOT NULL REFERENCES datasets (id),
  node TEXT NOT NULL,
  number BIGINT NOT NULL,
  hash TEXT NOT NULL,
  PRIMARY KEY (dataset, node, number, hash)
);
