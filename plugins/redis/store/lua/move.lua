-- A step of a move: how the board stands between stores becomes what ARGV says, if it still
-- is as the host read it. A board that receives goes on in the generation and beyond the
-- position of the other store's, and does so again where it receives already. What was
-- imported before is forgotten: a watcher of the old board may be at a position between. One
-- for whose jobs other programs look is left only if none of them has changed it since
-- froze.lua.
local call, fmt = redis.call, string.format
local head = call('HMGET', KEYS[1], 'generation', 'position', 'epoch', 'claimed', 'id', 'moved', 'froze')
local before, after, generation, position = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local number = {}
for n = 1, 4 do
  number[n] = tonumber(head[n] or (n == 1 and 1 or 0))
  if not number[n] then return redis.error_reply('CORRUPT the head of the board has no number where one has to be') end
end
if (head[6] or '') ~= before then return {0, 0, 0} end
if after ~= before and ARGV[7] == '1' and string.sub(after, 1, 1) == 'L' and tonumber(head[7]) ~= number[2] then return {3, 0, 0} end
if after ~= before and string.sub(after, 1, 1) == 'R' and number[4] > 0 then return {2, 0, 0} end
call('HDEL', KEYS[1], '') -- changes nothing: see memory.lua
if not head[5] then call('HSET', KEYS[1], 'generation', fmt('%.0f', number[1]), 'id', ARGV[5], 'server', ARGV[6]) end
if after == '' then
  call('HDEL', KEYS[1], 'moved', 'froze')
  return {1, number[1], number[2]}
end
if string.sub(after, 1, 1) == 'R' then
  number[1], number[2] = math.max(number[1], generation), math.max(number[2], position) + 1
  number[3] = math.max(number[3], number[2]) -- tokens go on beyond those of the other store, too
  call('HSET', KEYS[1], 'came', head[5] or ARGV[5])
  call('UNLINK', KEYS[2])
end
call('HSET', KEYS[1], 'moved', after, 'generation', fmt('%.0f', number[1]), 'position', fmt('%.0f', number[2]), 'epoch', fmt('%.0f', number[3]))
return {1, number[1], number[2]}
