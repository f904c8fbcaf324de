-- All is known that other programs did to a frozen board: from where it has come to, nobody
-- may change it. ARGV is how it stands between stores.
local head = redis.call('HMGET', KEYS[1], 'moved', 'position')
if head[1] ~= ARGV[1] then return 0 end
redis.call('HDEL', KEYS[1], '') -- changes nothing: see memory.lua
redis.call('HSET', KEYS[1], 'froze', head[2] or '0')
return 1
