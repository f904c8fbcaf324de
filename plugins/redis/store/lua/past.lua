-- What is left of jobs that ended, and what is remembered of ops for their
-- retries. ORDER has everything that is remembered for a window, oldest first;
-- STAMPS the answers; ENDED a record of each job that is Complete; FINALS what
-- is kept beyond that, in the order of FINALSBY, until the times of FINALSDUE.

-- What goes into ORDER and ENDEDBY is written at the end, all at once: no op
-- asks for it.
local order, endedby = {}, {}

local function remember(key, blob, ended)
  if blob then call('HSET', STAMPS, key, blob) end
  if blob or ended then order[#order + 1] = pack('>I8I8B', now, position, ended and 1 or 0) .. key end
end

local function parseEnded(raw)
  if #raw < PAST_SIZE then error({err = 'CORRUPT what is kept of the job, which ended, cannot be read'}) end
  local e = {}
  e.flags, e.outcome, e.version, e.position, e.at, e.till, e.digest, e.token = get(PAST, raw)
  return e
end

local function saveEnded(id, e)
  local raw = pack(PAST, e.flags, e.outcome, e.version, e.position, e.at, e.till, e.digest, e.token)
  call('HSET', ENDED, id, raw)
  return raw
end

-- visible reports whether a job that ended is still to be seen: the clean-up may
-- be behind.
local function visible(e)
  return band(e.flags, 1) ~= 0 and e.at + window > now or band(e.flags, 2) ~= 0 and e.till > now
end

-- endedOf returns what is kept of a job that ended, for who can do without it.
local function endedOf(id)
  local raw = call('HGET', ENDED, id)
  if raw and #raw >= PAST_SIZE then return parseEnded(raw), raw end
end

local function bury(id)
  call('HDEL', ENDED, id)
  call('ZREM', ENDEDBY, id)
end

-- dropFinal takes a final record away; the tombstone stays.
local function dropFinal(id)
  local raw = call('HGET', FINALS, id)
  call('ZREM', FINALSBY, id)
  call('ZREM', FINALSDUE, id)
  if not raw then return end
  call('HDEL', FINALS, id)
  local size, kept = 0, 3 -- of what cannot be read
  if #raw >= 9 then size, kept = get('>I8B', raw) end
  finals, bytes = finals - 1, bytes - size
  if band(kept, 2) ~= 0 then call('DEL', akey(id)) end
  local e = endedOf(id)
  if e then e.flags = band(e.flags, 1) end
  if not e or e.flags == 0 then bury(id) else saveEnded(id, e) end
end

-- wipe removes all that is left of a job that ended.
local function wipe(id)
  if finals > 0 then dropFinal(id) end
  bury(id)
end

-- removable fails unless all can be written that wipe and finish write.
local function removable(j, keep)
  sound('HLEN', ENDED)
  sound('ZCARD', ENDEDBY)
  if finals > 0 or keep then
    sound('HLEN', FINALS)
    sound('ZCARD', FINALSBY, FINALSDUE)
  end
  if j then
    countable(j.limits)
    if j.claim then countable(j.extra) end
  end
end

-- wipeable fails unless wipe can take all away that is left of a job.
local function wipeable(id)
  removable(nil)
  local raw = finals > 0 and call('HGET', FINALS, id)
  if raw and #raw < 9 then error({err = 'CORRUPT the record of the job, which ended, cannot be read'}) end
end

local function flush()
  if #order > 0 then call('RPUSH', ORDER, unpack(order)) end
  if #endedby > 0 then call('ZADD', ENDEDBY, unpack(endedby)) end
end

-- forget drops what the given items of ORDER stand for.
local function forget(items)
  local keys, gone, ended, buried = {}, {}, {}, {}
  for n, item in ipairs(items) do keys[n] = sub(item, 18) end
  local stamps = call('HMGET', STAMPS, unpack(keys))
  for n, item in ipairs(items) do
    local _, p, flag = get('>I8I8B', item)
    if stamps[n] and get('>I8', stamps[n]) == p then gone[#gone + 1] = keys[n] end
    if flag == 1 then ended[#ended + 1] = {sub(keys[n], 1, 36), p} end
  end
  if #gone > 0 then call('HDEL', STAMPS, unpack(gone)) end
  for _, one in ipairs(ended) do
    local e = endedOf(one[1])
    if e and e.position == one[2] then
      e.flags = band(e.flags, 2)
      if e.flags == 0 then buried[#buried + 1] = one[1] else saveEnded(one[1], e) end
    end
  end
  if #buried > 0 then
    call('HDEL', ENDED, unpack(buried))
    call('ZREM', ENDEDBY, unpack(buried))
  end
end

-- mayDrop reports whether all keys of a final record were declared.
local function mayDrop(id) return MAYDROP == '*' or string.find(MAYDROP, id, 1, true) end

-- trim forgets up to n things that are too old or too many.
local function trim(n)
  local oldest, count = call('LINDEX', ORDER, 0), remembered + #order
  if oldest and (count > maxstamps or get('>I8', oldest) + window <= now) then
    local items, out = call('LRANGE', ORDER, 0, n - 1), {}
    for _, item in ipairs(items) do
      if get('>I8', item) + window > now and count - #out <= maxstamps then break end
      out[#out + 1] = item
    end
    if #out > 0 then
      removable(nil)
      sound('HLEN', STAMPS)
      call('LTRIM', ORDER, #out, -1)
      forget(out)
      n = n - #out
    end
  end
  if n > 0 and finals > 0 then removable(nil) end
  while n > 0 and finals > 0 and (maxfinals > 0 and finals > maxfinals or maxbytes > 0 and bytes > maxbytes) do
    local oldest = call('ZRANGE', FINALSBY, 0, 0)[1]
    if not oldest or not mayDrop(oldest) then break end
    dropFinal(oldest)
    n = n - 1
  end
  if n > 0 and finals > 0 then
    for _, id in ipairs(call('ZRANGEBYSCORE', FINALSDUE, '-inf', num(now), 'LIMIT', 0, n)) do
      if mayDrop(id) then dropFinal(id) end
    end
  end
end

-- finish takes a job off the board for good. keep is the final record, or nil.
-- The job is removable. at is when it ended, if not now.
local function finish(j, event, reason, owner, outcome, token, keep, at)
  if not j.trashed then
    raise(j.limits, -1)
    group_.stand(j.limits, group_.letter(outcome), 1)
    open = open - 1
  end
  unclaim(j)
  position = position + 1
  local flags, till, version = keep and 3 or 1, keep and now + keep.keep or 0, j.version + 1
  if keep then
    local posting = band(keep.flags, 1) ~= 0 and call('HGET', LISTINGS, j.id) or ''
    local size = #keep.data + #j.status + #posting + keep.size
    finals, bytes = finals + 1, bytes + size
    call('HSET', FINALS, j.id, pack(FINAL, size, keep.flags, #j.status, j.status, #keep.data, keep.data, #posting, posting))
    call('ZADD', FINALSBY, num(position), j.id)
    call('ZADD', FINALSDUE, num(till), j.id)
  end
  if j.attached and not (keep and band(keep.flags, 2) ~= 0) then call('DEL', akey(j.id)) end
  local raw = pack(PAST, flags, outcome, version, position, at or now, till, j.digest, token or NONE .. NONE)
  call('HSET', ENDED, j.id, raw)
  endedby[#endedby + 1] = num(position)
  endedby[#endedby + 1] = j.id
  call('HDEL', JOBS, j.id)
  emit(event, COMPLETE, outcome, j.id, reason, owner, raw, '')
  return version
end
