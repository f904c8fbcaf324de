-- Postings that somebody left in a transaction of their own. A server that has the board
-- open posts them, and takes each away in the step that does.
CREATE SEQUENCE {s}.inbox_numbers AS bigint CACHE 1;
CREATE TABLE {s}.inbox (
  number  bigint PRIMARY KEY,
  xact    xid8 NOT NULL, -- of the transaction that left it: by this the drivers find what is new
  board   bigint NOT NULL,
  job     uuid NOT NULL,
  posting jsonb NOT NULL,
  size    integer NOT NULL, -- of the posting, as text
  at      timestamptz NOT NULL,
  poster  name NOT NULL,
  refused text -- why it is never posted; NULL: it waits
);
CREATE INDEX inbox_by_xact ON {s}.inbox (xact);
CREATE INDEX inbox_by_board ON {s}.inbox (board, number);

-- Who may post on which board, by the name of a role; * is every board.
CREATE TABLE {s}.posters (
  role  name NOT NULL,
  board text NOT NULL CONSTRAINT tenant_and_board CHECK (board = '*' OR board LIKE '_%/_%'),
  PRIMARY KEY (role, board)
);

-- For people: what waits, and what was refused and why.
CREATE VIEW {s}.left_postings AS
  SELECT convert_from(b.name, 'UTF8') AS board, i.job AS uuid, i.posting, i.at, i.poster, i.refused
  FROM {s}.inbox i LEFT JOIN {s}.boards b USING (board) ORDER BY i.number;

-- What follows is parsed with the caller's settings. No text in it has a backslash, which would
-- mean something else without standard_conforming_strings.

-- What is the matter with a value that has to be a text of so many bytes; NULL: nothing.
CREATE FUNCTION {s}.text_problem(value jsonb, low integer, high integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN jsonb_typeof(value) = 'string' AND octet_length(value #>> '{}') BETWEEN low AND high THEN NULL
    ELSE format('want a text of %s to %s bytes', low, high) END
$$;

-- What is the matter with a value that has to be an object with these fields only; NULL: nothing.
CREATE FUNCTION {s}.object_problem(value jsonb, fields text[]) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN jsonb_typeof(value) IS DISTINCT FROM 'object' THEN 'want a JSON object'
    ELSE (SELECT format('there is no field %s: want some of %s', quote_ident(left(k, 64)), array_to_string(fields, ', '))
      FROM jsonb_object_keys(value) k WHERE k <> ALL (fields) LIMIT 1) END
$$;

-- The same of a value that has to be a duration such as "1.5s".
CREATE FUNCTION {s}.duration_problem(value jsonb, low integer, high integer) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE
    WHEN jsonb_typeof(value) = 'string' AND CASE WHEN value #>> '{}' ~ '^[0-9]{1,9}([.][0-9]{1,9})?s$'
      THEN rtrim(value #>> '{}', 's')::numeric BETWEEN low AND high END THEN NULL
    ELSE format('want seconds such as "30s", from %ss to %ss', low, high) END
$$;

-- Whether a value is a number without a fraction from low to high.
CREATE FUNCTION {s}.whole_number(value jsonb, low integer, high integer) RETURNS boolean
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN jsonb_typeof(value) = 'number' THEN value::numeric BETWEEN low AND high AND value::numeric % 1 = 0 ELSE false END
$$;

-- The first thing that is the matter with a job as post_many takes it, as far as can be
-- told without its board; NULL: nothing. The server that posts it has the last word.
CREATE FUNCTION {s}.posting_problem(job jsonb) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  problem text;
  item jsonb;
  bytes integer := 0;
BEGIN
  problem := {s}.text_problem(job -> 'name', 1, 256);
  IF problem IS NOT NULL THEN RETURN 'name: ' || problem; END IF;
  IF job ? 'details' THEN
    IF jsonb_typeof(job -> 'details') <> 'object' THEN RETURN 'details: want a JSON object'; END IF;
    IF octet_length((job -> 'details')::text) > 4194304 THEN
      RETURN format('details: %s bytes are too many: want at most 4194304', octet_length((job -> 'details')::text));
    END IF;
  END IF;
  IF job ? 'priority' AND job ->> 'priority' NOT IN ('VERY_HIGH', 'HIGH', 'NORMAL', 'LOW', 'VERY_LOW') THEN
    RETURN 'priority: want VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW';
  END IF;
  IF job ? 'labels' THEN
    IF jsonb_typeof(job -> 'labels') <> 'object' THEN RETURN 'labels: want a JSON object of texts'; END IF;
    IF (SELECT count(*) FROM jsonb_object_keys(job -> 'labels')) > 64 THEN RETURN 'labels: want at most 64'; END IF;
    SELECT coalesce('a key: ' || {s}.text_problem(to_jsonb(key), 1, 128), key || ': ' || {s}.text_problem(value, 0, 128)) INTO problem
      FROM jsonb_each(job -> 'labels') WHERE {s}.text_problem(to_jsonb(key), 1, 128) IS NOT NULL OR {s}.text_problem(value, 0, 128) IS NOT NULL LIMIT 1;
    IF problem IS NOT NULL THEN RETURN 'labels: ' || problem; END IF;
  END IF;
  IF job ? 'maxAttempts' AND NOT {s}.whole_number(job -> 'maxAttempts', 0, 2147483647) THEN
    RETURN 'maxAttempts: want 0 (the board''s) to 2147483647';
  END IF;
  IF job ? 'notBefore' THEN
    BEGIN
      IF (job ->> 'notBefore' ~ '^[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}([.][0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$') IS NOT TRUE THEN
        RETURN 'notBefore: want a time such as "2030-01-31T12:00:00Z"';
      ELSIF (job ->> 'notBefore')::timestamptz > now() + interval '36525 days' THEN
        RETURN 'notBefore: want a time at most 36525 days ahead';
      END IF;
    EXCEPTION WHEN data_exception THEN
      RETURN 'notBefore: want a time such as "2030-01-31T12:00:00Z"';
    END;
  END IF;
  IF job ? 'timeout' THEN
    problem := {s}.duration_problem(job -> 'timeout', 1, 31536000);
    IF problem IS NOT NULL THEN RETURN 'timeout: ' || problem; END IF;
  END IF;
  IF job ? 'unique' THEN
    problem := {s}.object_problem(job -> 'unique', '{key,window,onConflict}');
    IF problem IS NOT NULL THEN RETURN 'unique: ' || problem; END IF;
    problem := {s}.text_problem(job #> '{unique,key}', 1, 255);
    IF problem IS NOT NULL THEN RETURN 'unique.key: ' || problem; END IF;
    IF job -> 'unique' ? 'window' THEN
      problem := {s}.duration_problem(job #> '{unique,window}', 1, 31536000);
      IF problem IS NOT NULL THEN RETURN 'unique.window: ' || problem; END IF;
    END IF;
    IF job -> 'unique' ? 'onConflict' AND (job #>> '{unique,onConflict}' IN ('KEEP', 'REPLACE', 'REJECT')) IS NOT TRUE THEN
      RETURN 'unique.onConflict: want KEEP, REPLACE or REJECT';
    END IF;
  END IF;
  IF job ? 'book' THEN
    problem := {s}.object_problem(job -> 'book', '{uuid,name}');
    IF problem IS NOT NULL THEN RETURN 'book: ' || problem; END IF;
    SELECT key || ': ' || {s}.text_problem(value, 0, 256) INTO problem
      FROM jsonb_each(job -> 'book') WHERE {s}.text_problem(value, 0, 256) IS NOT NULL LIMIT 1;
    IF problem IS NOT NULL THEN RETURN 'book.' || problem; END IF;
  END IF;
  IF job ? 'after' THEN
    IF jsonb_typeof(job -> 'after') <> 'array' OR jsonb_array_length(job -> 'after') > 64 THEN RETURN 'after: want an array of at most 64'; END IF;
    FOR item IN SELECT * FROM jsonb_array_elements(job -> 'after') LOOP
      problem := {s}.object_problem(item, '{uuid,statuses}');
      IF problem IS NOT NULL THEN RETURN 'after: ' || problem; END IF;
      IF (item ->> 'uuid' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$') IS NOT TRUE THEN RETURN 'after: want the uuid of a job'; END IF;
      IF item ? 'statuses' AND NOT (CASE WHEN jsonb_typeof(item -> 'statuses') = 'array'
          THEN jsonb_array_length(item -> 'statuses') <= 3 AND item -> 'statuses' <@ '["SUCCESS", "ERROR", "CANCELED"]' ELSE false END) THEN
        RETURN 'after: statuses: want some of SUCCESS, ERROR and CANCELED';
      END IF;
    END LOOP;
  END IF;
  IF job ? 'operations' THEN
    IF jsonb_typeof(job -> 'operations') <> 'array' OR jsonb_array_length(job -> 'operations') > 256 THEN
      RETURN 'operations: want an array of at most 256';
    END IF;
    FOR item IN SELECT * FROM jsonb_array_elements(job -> 'operations') LOOP
      problem := {s}.object_problem(item, '{name,input,priority}');
      IF problem IS NOT NULL THEN RETURN 'operations: ' || problem; END IF;
      problem := {s}.text_problem(item -> 'name', 1, 256);
      IF problem IS NOT NULL THEN RETURN 'operations: name: ' || problem; END IF;
      IF octet_length((item -> 'input')::text) > 65536 THEN RETURN 'operations: input: want at most 65536 bytes'; END IF;
      IF item ? 'priority' AND NOT {s}.whole_number(item -> 'priority', -20, 19) THEN RETURN 'operations: priority: want -20 to 19'; END IF;
      bytes := bytes + octet_length(item ->> 'name') + coalesce(octet_length((item -> 'input')::text), 0);
    END LOOP;
    IF bytes > 524288 THEN RETURN format('operations: %s bytes of names and inputs are too many: want at most 524288', bytes); END IF;
  END IF;
  RETURN NULL;
END $$;

-- Leaves one job in the inbox. what begins messages about it.
CREATE FUNCTION {s}.leave_posting(job jsonb, what text) RETURNS uuid
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  poster name := coalesce(nullif(current_setting('role'), 'none'), session_user);
  problem text := {s}.object_problem(job, '{board,uuid,name,details,priority,labels,book,notBefore,maxAttempts,operations,after,unique,timeout}');
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
  problem := coalesce(problem, {s}.posting_problem(job));
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

-- Posts a job as part of the caller's transaction, and returns its uuid.
CREATE FUNCTION {s}.post(
  board text, name text, details jsonb DEFAULT NULL, priority text DEFAULT NULL, labels jsonb DEFAULT NULL, uuid uuid DEFAULT NULL,
  not_before timestamptz DEFAULT NULL, max_attempts integer DEFAULT NULL, timeout interval DEFAULT NULL,
  unique_key text DEFAULT NULL, unique_window interval DEFAULT NULL, on_conflict text DEFAULT NULL,
  after uuid[] DEFAULT NULL, operations jsonb DEFAULT NULL, book jsonb DEFAULT NULL
) RETURNS uuid LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT {s}.leave_posting(jsonb_build_object(
    'board', $1, 'name', $2, 'details', $3, 'priority', $4, 'labels', $5, 'uuid', $6,
    'notBefore', CASE WHEN isfinite($7) THEN to_jsonb(to_char($7 AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')) ELSE to_jsonb($7) END,
    'maxAttempts', $8, 'timeout', extract(epoch FROM $9)::text || 's',
    'unique', CASE WHEN coalesce($10, $11::text, $12) IS NOT NULL THEN
      (SELECT jsonb_object_agg(key, value) FROM (VALUES ('key', $10), ('window', extract(epoch FROM $11)::text || 's'), ('onConflict', $12)) u (key, value)
        WHERE value IS NOT NULL) END,
    'after', (SELECT jsonb_agg(jsonb_build_object('uuid', a)) FROM unnest($13) a), 'operations', $14, 'book', $15), '')
$$;

-- Posts jobs as part of the caller's transaction, and returns their uuids in order.
CREATE FUNCTION {s}.post_many(jobs jsonb) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  item jsonb;
  n bigint;
BEGIN
  IF jsonb_typeof(jobs) IS DISTINCT FROM 'array' OR jsonb_array_length(jobs) > 10000 THEN
    RAISE EXCEPTION 'jobs: want an array of at most 10000' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  FOR item, n IN SELECT value, ordinality - 1 FROM jsonb_array_elements(jobs) WITH ORDINALITY LOOP
    RETURN NEXT {s}.leave_posting(item, format('jobs[%s].', n));
  END LOOP;
END $$;

REVOKE ALL ON FUNCTION {s}.text_problem, {s}.object_problem, {s}.duration_problem, {s}.whole_number, {s}.posting_problem, {s}.leave_posting FROM PUBLIC;
