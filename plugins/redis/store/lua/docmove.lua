-- The documents of a board that moves are refused by their own key, since on a cluster the
-- board's head may lie elsewhere: among the spaces stands a name that no space has.
redis.call('SREM', KEYS[1], 'FROZEN', 'RECEIVING')
if ARGV[1] ~= '' then redis.call('SADD', KEYS[1], ARGV[1]) end
return redis.status_reply('OK')
