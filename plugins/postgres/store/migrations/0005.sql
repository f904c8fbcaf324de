-- What moves have made of a board: NULL while it is open, else F or R (it is frozen, or
-- receives) and the 16 bytes of the move.
ALTER TABLE {s}.boards ADD COLUMN passage bytea;

-- A board that moves takes no postings. What was left before is still there.
CREATE FUNCTION {s}.not_while_moving() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM {s}.boards b WHERE b.board = NEW.board AND b.passage IS NOT NULL) THEN
    RAISE EXCEPTION 'the board is moving to another store, or has gone there: nothing may be posted here'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER not_while_moving BEFORE INSERT ON {s}.inbox FOR EACH ROW EXECUTE FUNCTION {s}.not_while_moving();
