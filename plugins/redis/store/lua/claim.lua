-- take claims one candidate, and returns the job, or why not: kind, message, job. One that
-- nobody has is in the answer at once, and its grant is what is returned.
local function take(o, c, out)
  local one = usual_.free(o, c, out)
  if one then return nil, one end
  local j = reconcile(c.id, o.parts ~= 0)
  if not j or j.trashed then return NOT_FOUND, 'there is no such job on the board', j end
  if j.live and sub(j.token, 17) == c.nonce then return nil, nil, j end -- by an earlier try of this op
  if j.live or j.foreign then return ALREADY_CLAIMED, 'somebody holds the job', j end
  if c.version ~= 0 and c.version ~= j.version then return ABORTED, 'the job was changed meanwhile', j end
  if waits(j) then return NOT_ELIGIBLE, 'the job is held back', j end
  local key = full(c.limits, j.claim and j.extra or '') -- a claim that lapsed counts no longer
  if key then return QUOTA_EXCEEDED, key, j end
  key = key_.paced(c.rates)
  if key then return QUOTA_EXCEEDED, key, j end
  local why, text = mayUse(j)
  if why then return why, text, j end
  if j.claim then countable(j.extra) end
  if j.attached and o.parts ~= 0 then sound('HLEN', akey(j.id)) end
  unclaim(j)
  epoch, claimed = epoch + 1, claimed + 1
  j.lease = shorter(o.lease, c.most)
  j.claim, j.live, j.noexpiry = true, true, j.lease == 0
  j.token = GENERATION .. pack('>I8', epoch) .. c.nonce
  j.since, j.deadline, j.by = now, j.lease > 0 and now + j.lease * 1000 or 0, o.owner
  j.extra = counted(c.limits)
  raise(j.extra, 1)
  key_.pace(c.rates)
  if c.status then j.status = c.status end
  if j.lease > 0 then
    call('SET', okey(j.id), o.owner, 'PX', num(j.lease))
  else
    call('SET', okey(j.id), o.owner)
  end
  j.left = j.lease > 0 and j.lease or -1
  j.key, j.lm = o.owner, datetime(c.nonce)
  call('SET', mkey(j.id), j.lm)
  change(j, o.event, o.reason, o.owner)
  j.granted = true
  return nil, nil, j
end

local function grant(id, token, lease, version, p, at)
  return pack(GRANT, id, token, lease, version, p, at)
end

local GIVEN = 128

-- answerAgain gives a remembered answer, unless the op adds to it. From then on nothing is
-- added: its op has GIVEN on top. A program that does not know that bit passes over it.
local function answerAgain(o, raw)
  local p, op, at, n, from = get('>I8BI8I2', raw)
  if at + window <= now then return nil end
  if op < GIVEN then
    if o.more then return nil end
    sound('HLEN', STAMPS)
    call('HSET', STAMPS, o.id .. o.request, pack('>I8BI8I2', p, op + GIVEN, at, n) .. sub(raw, from))
  end
  local out = {pack('>I2', n)}
  for _ = 1, n do
    local one = sub(raw, from, from + GRANT_SIZE - 1)
    from = from + GRANT_SIZE
    out[#out + 1] = one
    if o.parts == 0 then
      out[#out + 1] = '\000'
    else
      local id = sub(one, 1, 36)
      local known, j = pcall(reconcile, id)
      if known and j then standing(out, j, o.parts) else out[#out + 1] = known and found(id) or '\000' end
    end
  end
  return result(0, 1, p, 0, at, 0, 0, 0, '', '', '\000' .. table.concat(out) .. pack('>I2', 0))
end

-- rememberAnswer adds claims to the answer that is kept under the request.
local function rememberAnswer(o, claims)
  local key = o.id .. o.request
  local raw = call('HGET', STAMPS, key)
  local p, _, at, n, from
  if raw then p, _, at, n, from = get('>I8BI8I2', raw) end
  if not raw or at + window <= now then
    remember(key, pack('>I8BI8I2', position, CLAIM_OP, now, #claims) .. table.concat(claims))
    return
  end
  local kept = sub(raw, from)
  for _, one in ipairs(claims) do
    local known = false
    for k = 1, #kept, GRANT_SIZE do known = known or sub(kept, k + 36, k + 67) == sub(one, 37, 68) end
    if not known then kept, n = kept .. one, n + 1 end
  end
  call('HSET', STAMPS, key, pack('>I8BI8I2', p, CLAIM_OP, at, n) .. kept)
end

local function claim(o)
  if o.remember then
    local raw = call('HGET', STAMPS, o.id .. o.request)
    local again = raw and answerAgain(o, raw)
    if again then return again end
  end
  if o.remember then sound('HLEN', STAMPS) end
  local out, claims, passed = {'', ''}, {}, {} -- the first pieces are known at the end
  for _, c in ipairs(o.candidates) do
    if #claims == o.count then break end
    -- One that fails must not hide those that were claimed before it. What is
    -- not about this job would meet the next one, too.
    local ok, kind, message, j = pcall(take, o, c, out)
    if not ok then
      kind, message, j = CORRUPT, failure(kind), nil
      if not aboutKeys(message) then
        if #claims == 0 then error({err = message}) end
        break
      end
    end
    if kind == UNREAD then -- the same op comes again, and finds what it claimed
      return result(UNREAD, 0, #claims, 0, 0, 0, 0, 0, message, '')
    elseif kind then
      local owner = kind == ALREADY_CLAIMED and j.by or ''
      local seen, shape = pcall(found, c.id, j)
      passed[#passed + 1] = pack('>c36BI2c0I2c0', c.id, kind, #owner, owner, #message, message) .. (seen and shape or '\000')
    elseif message then
      claims[#claims + 1] = message
    else
      local lease = j.lease
      if not j.granted then lease = math.max(lasts(j.id), 0) end
      local one = grant(j.id, j.token, lease, j.version, j.position, j.since)
      claims[#claims + 1] = one
      out[#out + 1] = one
      if o.parts == 0 then out[#out + 1] = '\000' else standing(out, j, o.parts) end
    end
  end
  if o.remember and #claims > 0 then rememberAnswer(o, claims) end
  out[1], out[2] = result(0, 0, position, 0, now, 0, 0, 0, '', '', ''), pack('>BI2', 0, #claims)
  out[#out + 1] = pack('>I2', #passed) .. table.concat(passed)
  return out
end
