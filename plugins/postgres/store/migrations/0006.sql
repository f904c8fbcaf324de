-- Which documents were changed last, for those who watch spaces of them. A look asks for the
-- rows that have become visible since the one before, as with the inbox. The 65536 rows that
-- were added last are there, and older ones are taken away by whoever adds more.
CREATE SEQUENCE {s}.document_change_numbers AS bigint CACHE 1;
CREATE TABLE {s}.document_changes (
  number bigint PRIMARY KEY,
  xact   xid8 NOT NULL,  -- of the transaction that made the change
  oldest xid8 NOT NULL,  -- all transactions before this one had ended when the number was drawn
  board  bytea NOT NULL,
  space  bytea NOT NULL, -- empty: every space of every board
  name   bytea           -- NULL: any document of the space
);
CREATE INDEX document_changes_by_xact ON {s}.document_changes (xact);
ALTER TABLE {s}.document_changes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

-- Takes the oldest rows away. A row goes when its transaction had ended 32768 rows ago: who has
-- looked since then has seen it. Rows of transactions that have not begun were dumped from
-- another server. Of those that stay, the ones of a transaction that is held open and of all
-- that came after it, no look reads any.
CREATE FUNCTION {s}.forget_document_changes(last bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ended xid8;
  upto bigint;
BEGIN
  SELECT oldest INTO ended FROM {s}.document_changes WHERE number <= last - 32768 ORDER BY number DESC LIMIT 1;
  SELECT max(number) INTO upto FROM (SELECT number FROM {s}.document_changes WHERE number <= last - 65536 ORDER BY number LIMIT 4096) f;
  DELETE FROM {s}.document_changes WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {s}.document_changes
    WHERE number <= upto AND (xact < ended OR xact >= pg_snapshot_xmax(pg_current_snapshot()) AND xact <> pg_current_xact_id())
    FOR UPDATE SKIP LOCKED));
END $$;

-- Notes what a statement has changed. It runs with the rights of whoever made it, so that a
-- server which knows nothing of it needs none.
CREATE FUNCTION {s}.note_document_changes() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last bigint;
  whole boolean;
BEGIN
  WITH added AS (
    INSERT INTO {s}.document_changes
      SELECT nextval('{s}.document_change_numbers'), pg_current_xact_id(), pg_snapshot_xmin(pg_current_snapshot()), c.board, c.space, c.name
      FROM (SELECT d.board, d.space, CASE WHEN m.many THEN NULL ELSE d.name END AS name
        FROM changed d, (SELECT count(*) > 1000 AS many FROM (SELECT FROM changed LIMIT 1001) f) m GROUP BY 1, 2, 3) c
      RETURNING number
  ) SELECT max(number), bool_or(number % 256 = 0) INTO last, whole FROM added;
  -- In other transactions, rows that somebody else takes away meanwhile would be an error.
  IF whole AND current_setting('transaction_isolation') = 'read committed' THEN
    PERFORM {s}.forget_document_changes(last);
  END IF;
  RETURN NULL;
END $$;
CREATE FUNCTION {s}.note_documents_emptied() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO {s}.document_changes VALUES
    (nextval('{s}.document_change_numbers'), pg_current_xact_id(), pg_snapshot_xmin(pg_current_snapshot()), '', '', NULL);
  RETURN NULL;
END $$;
-- Triggers run them whoever makes the change. With the right to execute them anybody could make a
-- trigger of his own that writes here.
REVOKE ALL ON FUNCTION {s}.forget_document_changes, {s}.note_document_changes, {s}.note_documents_emptied FROM PUBLIC;

CREATE TRIGGER document_inserted AFTER INSERT ON {s}.documents REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION {s}.note_document_changes();
CREATE TRIGGER document_updated AFTER UPDATE ON {s}.documents REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION {s}.note_document_changes();
CREATE TRIGGER document_deleted AFTER DELETE ON {s}.documents REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION {s}.note_document_changes();
CREATE TRIGGER documents_emptied AFTER TRUNCATE ON {s}.documents
  FOR EACH STATEMENT EXECUTE FUNCTION {s}.note_documents_emptied();
