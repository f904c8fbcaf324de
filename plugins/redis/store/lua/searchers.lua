-- All servers that search anything in this Redis, by the time until which each
-- has said so. The answer is how many there are.
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, over in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))) do call('ZREM', KEYS[1], over) end
call('ZREM', KEYS[1], '') -- lets the next one through where Redis is full, see memory.lua
call('ZADD', KEYS[1], string.format('%.0f', now + ARGV[2]), ARGV[1])
call('PEXPIRE', KEYS[1], ARGV[2])
return call('ZCARD', KEYS[1])
