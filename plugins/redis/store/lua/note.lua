-- A host that has looked at a board notes on which server that was. From then on,
-- hosts that have looked only at another server are refused. A new board gets its
-- head with its first change. It is told at which change the stay begins: hosts that have
-- not yet met the server may have made some since the head was read. The first write changes
-- nothing, and lets the other one through where Redis is full, see memory.lua.
local head = redis.call('HMGET', KEYS[1], 'generation', 'position', 'stays')
if head[1] then
  redis.call('HDEL', KEYS[1], '')
  local all = stays(head[3], ARGV[2], tonumber(head[2] or 0))
  redis.call('HSET', KEYS[1], 'server', ARGV[1], 'stays', all)
  return (struct.unpack('>I8', all, #all - 7))
end
return 0
