-- A posting may name its batch, as everywhere. The server that posts it has the last word on it.
CREATE OR REPLACE FUNCTION {s}.leave_posting(job jsonb, what text) RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  poster name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  problem text := {s}.object_problem(job, '{board,uuid,name,details,priority,labels,book,notBefore,maxAttempts,operations,after,unique,timeout,batch}');
  board_name text;
  board_id bigint;
  id uuid;
BEGIN
  IF problem IS NULL THEN
    job := (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(job) WHERE value <> 'null'); -- as if they were not there
    problem := 'board: ' || {s}.text_problem(job -> 'board', 1, 200);
  END IF;
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION '%', what || problem USING ERRCODE = 'invalid_parameter_value';
  END IF;
  board_name := job ->> 'board';
  IF board_name NOT LIKE '%/%' THEN
    board_name := 'default/' || board_name;
  END IF;
  -- The owner of the function is who it runs as.
  IF NOT pg_has_role(poster, current_user, 'USAGE') AND NOT EXISTS (
    SELECT FROM {s}.posters p JOIN pg_roles r ON r.rolname = p.role
    WHERE p.board IN (board_name, '*') AND pg_has_role(poster, r.oid, 'USAGE')
  ) THEN
    RAISE EXCEPTION '%', format('%srole %s may not post on board %s', what, quote_ident(poster), quote_ident(board_name))
      USING ERRCODE = 'insufficient_privilege', HINT = 'Whoever has the tables of boardd lets it, by a row in the table posters.';
  END IF;
  SELECT b.board INTO board_id FROM {s}.boards b WHERE b.name = convert_to(board_name, 'UTF8');
  IF NOT FOUND THEN
    RAISE EXCEPTION '%', format('%sthere is no board %s', what, quote_ident(board_name))
      USING ERRCODE = 'undefined_object', HINT = 'Want TENANT/BOARD, or BOARD of the tenant default, which a server has opened once.';
  END IF;
  BEGIN
    id := coalesce((job ->> 'uuid')::uuid, gen_random_uuid());
  EXCEPTION WHEN data_exception THEN
    problem := 'uuid: want a uuid';
  END;
  IF id = '00000000-0000-0000-0000-000000000000' THEN
    problem := 'uuid: want one that is not all zeros';
  END IF;
  problem := coalesce(problem, {s}.posting_problem(job), CASE WHEN job ? 'batch' THEN 'batch: ' || {s}.text_problem(job -> 'batch', 1, 255) END);
  IF problem IS NOT NULL THEN
    RAISE EXCEPTION '%', what || problem USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF job ? 'notBefore' THEN -- as every reader of it understands it
    job := jsonb_set(job, '{notBefore}', to_jsonb(to_char((job ->> 'notBefore')::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')));
  END IF;
  job := job - '{board,uuid}'::text[];
  INSERT INTO {s}.inbox (number, xact, board, job, posting, size, at, poster)
    VALUES (nextval('{s}.inbox_numbers'), pg_current_xact_id(), board_id, id, job, octet_length(job::text), clock_timestamp(), poster);
  RETURN id;
END $$;

-- With one argument more it is another function, and beside the one before each call of either
-- would be ambiguous. That one goes out of the way under another name, and is not dropped: what
-- was made of it, such as a view, or is being called goes on.
ALTER FUNCTION {s}.post(text, text, jsonb, text, jsonb, uuid, timestamptz, integer, interval, text, interval, text, uuid[], jsonb, jsonb)
  RENAME TO post_without_batch;
CREATE FUNCTION {s}.post(
  board text, name text, details jsonb DEFAULT NULL, priority text DEFAULT NULL, labels jsonb DEFAULT NULL, uuid uuid DEFAULT NULL,
  not_before timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL,
  unique_key text DEFAULT NULL, unique_window interval DEFAULT NULL, on_conflict text DEFAULT NULL,
  after uuid[] DEFAULT NULL, operations jsonb DEFAULT NULL, book jsonb DEFAULT NULL, batch text DEFAULT NULL
) RETURNS uuid LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT {s}.leave_posting(jsonb_build_object(
    'board', $1, 'name', $2, 'details', $3, 'priority', $4, 'labels', $5, 'uuid', $6,
    'notBefore', CASE WHEN isfinite($7) THEN to_jsonb(to_char($7 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) ELSE to_jsonb($7) END,
    'maxAttempts', $8, 'timeout', extract(epoch FROM $9)::text || 's',
    'unique', CASE WHEN coalesce($10, $11::text, $12) IS NOT NULL THEN
      (SELECT jsonb_object_agg(key, value) FROM (VALUES ('key', $10), ('window', extract(epoch FROM $11)::text || 's'), ('onConflict', $12)) u (key, value)
        WHERE value IS NOT NULL) END,
    'after', (SELECT jsonb_agg(jsonb_build_object('uuid', a)) FROM unnest($13) a), 'operations', $14, 'book', $15, 'batch', $16), '')
$$;
