-- Names that at most one job of a board has. Nothing is written here when a job ends:
-- whether it is on the board is looked up when somebody wants the key.
CREATE TABLE {s}.keys (
  key    bigint GENERATED ALWAYS AS IDENTITY, -- where the search for dead ones goes on
  board  bigint NOT NULL,
  name   bytea NOT NULL,
  job    uuid NOT NULL,
  open   boolean NOT NULL, -- the job has it while it is on the board
  til    bigint NOT NULL,  -- and until then, whatever becomes of it
  number bigint NOT NULL,  -- with which it was last taken
  PRIMARY KEY (board, name)
) WITH (fillfactor = 80);
CREATE INDEX keys_by_key ON {s}.keys (board, key);
