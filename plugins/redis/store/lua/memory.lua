-- A Redis that is full, and may evict nothing, refuses the writes of a script that
-- may take memory, until the script has made a write that takes none. So a write
-- of the first sort, which changes nothing, finds out whether Redis is full, and
-- one of the second sort, which changes nothing either, lets all others through.
-- What makes the board larger is refused by the ops themselves, so that all the
-- rest goes on: claims take a little memory, and endings free it.
local nomemory = false
if #ARGV >= 7 then
  local answer = redis.pcall('ZADD', TRASHBY, 'XX', '0', '')
  local text = type(answer) == 'table' and answer.err
  if text and string.find(text, 'OOM command not allowed', 1, true) then
    nomemory = true
    redis.pcall('ZREM', TRASHBY, '')
  elseif text and not string.find(text, 'WRONGTYPE', 1, true) then -- whoever needs that key finds out
    return answer
  end
end

-- grows reports whether an update takes memory that its job may not have now.
local function grows(o, j)
  for n = 1, #o.attach, 3 do
    if not o.attach[n + 1] then return true end
  end
  return o.status and #o.status > #j.status + GROWTH
end
