-- Carved nodes whose forgotten lines were counted as spent: receipts of these are no news any more.
CREATE TABLE counted (
  node TEXT PRIMARY KEY,
  dataset TEXT NOT NULL REFERENCES datasets (id)
);
