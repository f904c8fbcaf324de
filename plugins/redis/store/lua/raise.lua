-- A board that was found to have lost changes goes on in a new generation, far
-- beyond every position that any host has seen. A second host finds it done already.
local call = redis.call
local head = call('HMGET', KEYS[1], 'generation', 'position', 'id', 'stays')
local generation, position = tonumber(head[1] or 1), tonumber(head[2] or 0)
local wanted, seen = tonumber(ARGV[1]), tonumber(ARGV[2])
if generation < wanted then
  call('HDEL', KEYS[1], '') -- changes nothing: see memory.lua
  generation, position = wanted, math.max(position, seen) + 1048576
  call('HSET', KEYS[1], 'generation', string.format('%.0f', generation), 'position', string.format('%.0f', position),
    'id', head[3] or ARGV[3], 'server', ARGV[4], 'stays', stays(head[4], ARGV[5], position))
end
return {generation, position, head[3] or ARGV[3]}
