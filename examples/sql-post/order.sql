-- An order, and the job that goes with it: both or none.
--
--   psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -v id=17 -f order.sql
BEGIN;
INSERT INTO orders (id, total) VALUES (:id, 99.90);
SELECT boardd.post(board => 'default', name => 'invoice', details => jsonb_build_object('order', :id), priority => 'HIGH');
COMMIT;
