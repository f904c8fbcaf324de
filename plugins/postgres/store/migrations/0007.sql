-- Boards that are dropped, with rows left: they go in parts, since a statement that deletes
-- millions takes longer than anybody waits for it.
CREATE TABLE {s}.dropped (
  board bigint PRIMARY KEY -- which no board has any more
);
