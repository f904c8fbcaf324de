-- Takes jobs of a board that has gone to another store out of TaskFlow's keys, and what boardd
-- keeps of them, each at once. KEYS are the board's head, our records, listings and trash, and
-- ARGV is how the board has to stand between stores, the prefix, and the jobs.
--
-- A job that another program holds stays, and one that is no longer where our record has it:
-- the answer is how many of either there are, and one of them.
local call, sub, band = redis.call, string.sub, bit.band
if (call('HGET', KEYS[1], 'moved') or '') ~= ARGV[1] then return {0} end
local held, changed, aHeld, aChanged = 0, 0, '', ''

-- taken reports whether the owner's key of a job says other than our record.
local function taken(id, raw, flags, at)
  local key = call('GET', ARGV[2] .. id .. '.owned')
  if not key or key == HOLDER then return false end
  if band(flags, 1) == 0 then return true end
  local token, _, _, by = struct.unpack(CLAIM, raw, at)
  local modified = call('GET', ARGV[2] .. id .. '.last_modified')
  return key ~= by or not modified or sub(modified, -16) ~= sub(token, 17)
end

for n = 3, #ARGV do
  local id = ARGV[n]
  local raw = call('HGET', KEYS[2], id)
  if raw then
    local _, flags, _, _, _, _, _, _, _, _, at = struct.unpack(META, raw)
    local place = band(flags, 8) ~= 0 and KEYS[4] or KEYS[3]
    if call('HEXISTS', place, id) == 0 then
      changed, aChanged = changed + 1, id
    elseif taken(id, raw, flags, at) then
      held, aHeld = held + 1, id
    else
      call('HDEL', place, id)
      call('DEL', ARGV[2] .. id .. '.owned', ARGV[2] .. id .. '.last_modified', ARGV[2] .. 'boardd:attached.' .. id)
      call('HDEL', KEYS[2], id)
    end
  end
end
return {1, held, aHeld, changed, aChanged}
