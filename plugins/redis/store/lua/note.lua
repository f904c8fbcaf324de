-- A host that has looked how a board stands notes on which server that was. Who
-- has looked at another one only is refused from then on. A board that is new
-- gets its head with its first change.
if redis.call('HEXISTS', KEYS[1], 'generation') == 1 then redis.call('HSET', KEYS[1], 'server', ARGV[1]) end
return redis.status_reply('OK')
