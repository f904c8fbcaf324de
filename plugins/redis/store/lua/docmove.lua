-- The documents of a board that moves are refused by a key of their own, since on a cluster
-- the board's head may lie elsewhere. ARGV is what the changes are answered with; none: they
-- are made.
redis.call('HDEL', KEYS[1], 'moved')
if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'moved', ARGV[1]) end
return redis.status_reply('OK')
