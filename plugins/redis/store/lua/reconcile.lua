-- reconcile returns the job as it stands, or nil, after it has put into boardd's
-- own records what other programs did to it since.

-- gone reconciles a job that is not on the board.
local function gone(j, new)
  local id = j.id
  if call('HEXISTS', TRASH, id) == 0 then
    if new then return nil end
    if not j.trashed then -- TaskFlow consumed it
      removable(j)
      finish(j, FOREIGN, 'another program took the job off the board', j.by or '', CONSUMED)
      remember(id .. NONE, nil, true)
      return nil
    end
    sound('ZCARD', TRASHBY)
    countable(j.limits)
    group_.stand(j.limits, 't', -1)
    group_.stand(j.limits, 'p', 1)
    position = position + 1
    call('HDEL', JOBS, id)
    call('ZREM', TRASHBY, id)
    if j.attached then call('DEL', akey(id)) end
    emit(FOREIGN, UNKNOWN, PURGED, id, 'another program took the job out of the trash', '', '', '')
    return nil
  end
  if not j.trashed then
    local owner = j.by or ''
    sound('ZCARD', TRASHBY)
    countable(j.limits)
    if j.claim then countable(j.extra) end
    if not new then
      raise(j.limits, -1)
      group_.stand(j.limits, 't', 1)
      open = open - 1
    end
    unclaim(j)
    j.trashed, j.ended = true, now
    j.unread = j.unread or new
    change(j, FOREIGN, 'another program put the job into the trash', owner)
    call('ZADD', TRASHBY, num(position), id)
  end
  return j
end

-- ours reports whether the claim of the meta still stands. TaskFlow writes
-- last_modified anew with every claim and every abandon, so that the nonce there
-- says that none came in between; its owner key is gone when the lease ran out.
local function ours(j)
  if not j.lm or sub(j.lm, -16) ~= sub(j.token, 17) then return false end
  if sub(j.token, 1, 8) ~= GENERATION then -- granted before the store lost something
    j.stale = true
    return false
  end
  j.live = j.key == j.by
  return j.live or not j.key or j.key == HOLDER
end

-- claims reconciles who holds a job on the board, and returns what is new of it.
local function claims(j)
  local why
  if j.claim and not ours(j) then
    why = j.stale and CLAIM_OF_BEFORE or 'another program ended the claim'
    countable(j.extra)
    if j.stale and j.key == j.by then
      call('DEL', okey(j.id))
      j.key = nil
    end
    unclaim(j)
  end
  if j.claim then return nil end
  if j.key and j.key ~= HOLDER then
    local lm = j.lm or ''
    if not j.foreign or j.by ~= j.key or j.extra ~= lm then
      if not j.foreign then claimed = claimed + 1 end
      local left = lasts(j.id)
      j.foreign, j.noexpiry = true, left < 0
      j.token, j.since, j.by, j.extra = NONE .. NONE, now, sub(j.key, 1, 65535), sub(lm, 1, 65535)
      j.deadline = left < 0 and 0 or now + left * 1000
      why = 'another program claimed the job'
    end
  elseif j.foreign then
    why = "another program's claim ended"
    unclaim(j)
  end
  return why
end

-- It reads the posting as well if that will be shown.
local function reconcile(id, shows)
  local raw = call('HGET', JOBS, id)
  local known, j, new = true, nil, not raw
  if raw then known, j = pcall(parse, id, raw) else j = fresh(id) end
  if not known then error({err = 'CORRUPT what boardd keeps of the job cannot be read'}) end
  if shows then
    j.posting = call('HGET', LISTINGS, id) or nil
    if not j.posting then return gone(j, new) end
  elseif call('HEXISTS', LISTINGS, id) == 0 then
    return gone(j, new)
  end
  local keys = call('MGET', okey(id), mkey(id))
  j.key, j.lm = keys[1], keys[2]
  local why, posting
  if j.trashed then
    sound('ZCARD', TRASHBY)
    countable(j.limits)
  end
  if new then call('HINCRBY', HEAD, 'settled', 1) end
  if new or j.trashed then
    why, posting = new and 'another program posted the job' or 'another program put the job back', shown(id)
    if j.trashed then
      raise(j.limits, 1)
      group_.stand(j.limits, 't', -1)
      call('ZREM', TRASHBY, id)
    end
    j.trashed, j.ended, j.unread, open = false, 0, true, open + 1
  end
  local by = j.by
  why = claims(j) or why
  if why then change(j, FOREIGN, why, j.by or by or '', posting) end
  if not j.key and not j.claim and waits(j) then hold(j) end
  return j
end

-- lease follows a lease whose end another program moved: TaskFlow's
-- extend_expiry does that whoever holds the job. The claim stands, with its token.
local function lease(j)
  if not (j.claim and j.live or j.foreign) then return end
  local left = lasts(j.id)
  if left == -2 then return end
  local noexpiry, deadline = left < 0, left < 0 and 0 or now + left * 1000
  if noexpiry == (j.noexpiry or false) and math.abs(deadline - j.deadline) <= LEASE_TOLERANCE then return end
  local longer = noexpiry or not j.noexpiry and deadline > j.deadline
  j.noexpiry, j.deadline = noexpiry, deadline
  j.version = j.version - 1 -- change raises it again: an extension does not
  if longer then
    change(j, EXTENDED, 'another program extended the lease', j.by)
  else
    change(j, FOREIGN, 'another program shortened the lease', j.by)
  end
end

-- A posting that another program wrote is unread until a host has read it: only
-- Go knows what TaskFlow takes. An op that would change such a job answers so
-- before it does, and is sent again together with what the host found, which
-- counts for the very bytes that it read.
local unreadable = {}

local function verdict(o)
  local j = reconcile(o.id)
  if not j or not j.unread then return end
  local posting = call('HGET', j.trashed and TRASH or LISTINGS, o.id)
  if not posting or redis.sha1hex(posting) ~= sub(o.reason, 1, 40) then return end
  if #o.reason > 40 then
    unreadable[o.id] = sub(o.reason, 41)
  else
    j.unread = nil
    save(j)
  end
end

-- mayUse returns why a job's posting keeps an op from being carried out, or nil.
local function mayUse(j)
  if not j or not j.unread then return nil end
  if unreadable[j.id] then return CORRUPT, unreadable[j.id] end
  return UNREAD, j.id
end
