-- The ops on one job that is there, or was.

-- permitClaim looks at the precondition on the claim alone, and returns a
-- refusal or nil.
local function permitClaim(o, j)
  local must = o.must
  local held = j.claim or j.foreign
  local live = j.live or j.foreign
  if must == HELD_BY_TOKEN then
    if not j.live or j.token ~= o.token then return LEASE_LOST, 'the claim of this token has ended' end
  elseif must == LAPSED then
    if not j.claim or j.token ~= o.token then return LEASE_LOST, 'the claim of this token has ended' end
    if j.live then
      return PRECONDITION, 'the lease has not run out', math.max(lasts(j.id), 0)
    end
  elseif must == HELD_BY_OWNER or must == HELD then
    if not held or must == HELD_BY_OWNER and not live then return NOT_CLAIMED, 'nobody holds the job' end
    if o.owner ~= '' and o.owner ~= j.by then return NOT_OWNER, 'somebody else holds the job' end
  elseif must == FREE and live then
    return ALREADY_CLAIMED, 'somebody holds the job'
  end
end

-- tells says how the op's token ended its claim, where that is known.
local function tells(o, kind, why)
  if not o.how then return why end
  return (kind ~= LEASE_LOST and why .. '; ' or '') .. 'the claim of this token has ended: ' .. o.how
end

-- byToken reports whether an op ends the claim of its token.
local function byToken(o)
  return (o.must == HELD_BY_TOKEN or o.must == LAPSED) and o.kind ~= UPDATE and o.kind ~= EXTEND
end

local function permit(o, j)
  if not j then
    local raw = call('HGET', ENDED, o.id)
    local e = raw and parseEnded(raw)
    local kind, why = NOT_FOUND, 'there is no such job on the board'
    if e and visible(e) and (o.must == HELD_BY_TOKEN or o.must == LAPSED) and e.token == o.token then
      kind = LEASE_LOST
      why = byToken(o) and 'the claim of this token ended the job in another way' -- and is no repetition
        or 'the claim of this token has ended: its holder ended the job'
    end
    return refuse(kind, o.id, nil, tells(o, kind, why))
  end
  local kind, message, left = permitClaim(o, j)
  if kind then return refuse(kind, o.id, j, tells(o, kind, message), left) end
  if j.trashed then return refuse(NOT_FOUND, o.id, j, 'the job is in the trash, not on the board') end
  if o.version ~= 0 and o.version ~= j.version then return refuse(ABORTED, o.id, j, 'the job was changed meanwhile') end
  if o.kind == RELEASE and not (j.claim or j.foreign) then return refuse(NOT_CLAIMED, o.id, j, 'nobody holds the job') end
  if o.after and (j.claim or j.foreign) then return refuse(ALREADY_CLAIMED, o.id, j, 'somebody holds the job') end
end

-- A stamp remembers one op, so that its retry is answered in the same way: an
-- ending by the nonce of its token, everything else by its request.
local function stampKey(o)
  if o.stamp == nil then
    if o.kind == EXTEND then
      o.stamp = false
    elseif byToken(o) then
      o.stamp = o.id .. sub(o.token, 17)
    else
      o.stamp = o.request ~= NONE and o.id .. o.request
    end
  end
  return o.stamp
end

-- how says how a claim ended, as transition.Stamp does.
local function how(kind, must, outcome)
  if must == LAPSED then return 'its lease ran out' end
  if kind == RELEASE then return 'its holder gave the job back' end
  if kind == SET_ASIDE then
    return outcome > 0 and 'its holder gave up the last attempt at the job' or 'its holder put the job into the trash'
  end
  return 'its holder ended the job as ' .. (({'CONSUMED', 'CANCELED', 'FAILED'})[outcome] or '')
end

local function repeated(o)
  local key = stampKey(o)
  local raw = key and call('HGET', STAMPS, key)
  if not raw then return nil end
  local p, kind, must, outcome, token, version, at, notbefore = get(STAMP, raw)
  if at + window <= now then return nil end
  local same = kind == o.kind and outcome == o.outcome
  if byToken(o) then
    if token ~= o.token then return nil end
    if not same or must ~= o.must then
      o.how = how(kind, must, outcome)
      return nil
    end
  elseif not same then
    return nil
  end
  return result(0, 1, p, version, at, notbefore, 0, 0, '', '')
end

-- done remembers an op that was carried out and answers it.
local function done(o, version, notbefore, ended)
  local key = stampKey(o)
  local token = byToken(o) and o.token or NONE .. NONE
  if key or ended then
    remember(key or o.id .. NONE,
      key and pack(STAMP, position, o.kind, o.must, o.outcome, token, version, now, notbefore), ended)
  end
  return result(0, 0, position, version, now, notbefore, 0, 0, '', '')
end

-- writable fails unless all can be written that any op of that sort may write
-- of a job, and remember of itself.
local function writable(o, j)
  if stampKey(o) then sound('HLEN', STAMPS) end
  if #o.attach > 0 then sound('HLEN', akey(o.id)) end
  if j and j.claim then countable(j.extra) end
end

-- write changes what an op may change of any job, but not its owner key.
local function write(o, j)
  if o.status then j.status = o.status end
  for n = 1, #o.attach, 3 do
    if o.attach[n + 1] then
      call('HDEL', akey(j.id), o.attach[n])
    else
      call('HSET', akey(j.id), o.attach[n], o.attach[n + 2])
      j.attached = true
    end
  end
  if o.hold > 0 then
    j.held, j.notbefore = o.hold == 4, 0
    if o.hold == 2 then j.notbefore = o.holdtime elseif o.hold == 3 then j.notbefore = now + o.holdtime end
  end
end

local function notBefore(o, j) return o.hold > 0 and j.notbefore or 0 end

-- endClaim takes the claim off a job, in TaskFlow's keys as well, and returns
-- who had it.
local function endClaim(j)
  local owner = (j.claim or j.foreign) and j.by or ''
  unclaim(j)
  return owner
end

local change_ = {}

change_[EXTEND] = function(o, j)
  local lease = o.lease
  if o.most > 0 then -- there is some left while the lease runs, or the clock has jumped
    lease = shorter(lease, math.max(o.most - math.floor(math.max(now - j.since, 0) / 1000), 1))
  end
  if lease > 0 then call('PEXPIRE', okey(j.id), num(lease)) else call('PERSIST', okey(j.id)) end
  j.noexpiry, j.deadline = lease == 0, lease > 0 and now + lease * 1000 or 0
  j.version = j.version - 1 -- change raises it again: an extension does not
  change(j, o.event, o.reason, j.by)
  return result(0, 0, position, j.version, now, 0, 0, lease, '', '')
end

change_[UPDATE] = function(o, j)
  if nomemory and grows(o, j) then return refuse(QUOTA_EXCEEDED, o.id, j, NO_MEMORY) end
  writable(o, j)
  if o.after then
    countable(j.limits)
    change_.follows(o)
  end
  write(o, j)
  if o.hold > 0 then hold(j) end
  change(j, o.event, o.reason, (j.claim or j.foreign) and j.by or '')
  local r = done(o, j.version, notBefore(o, j))
  return o.after and change_[o.after.kind](o.after, j) or r
end

change_[RELEASE] = function(o, j)
  writable(o, j)
  local owner = endClaim(j)
  write(o, j)
  hold(j)
  j.lm = datetime()
  call('SET', mkey(j.id), j.lm)
  change(j, o.event, o.reason, owner)
  return done(o, j.version, notBefore(o, j))
end

change_[REMOVE] = function(o, j)
  local owner = (j.claim or j.foreign) and j.by or ''
  writable(o, j)
  removable(j, o.keep)
  if o.keep and band(o.keep.flags, 2) ~= 0 then sound('HLEN', akey(j.id)) end
  write(o, j)
  if o.keep then
    o.keep.size = 0
    if band(o.keep.flags, 2) ~= 0 and j.attached then
      for _, data in ipairs(call('HVALS', akey(j.id))) do o.keep.size = o.keep.size + #data end
    end
  end
  local token = (o.must == HELD_BY_TOKEN or o.must == LAPSED) and o.token
  local version = finish(j, o.event, o.reason, owner, o.outcome, token, o.keep, o.at)
  call('DEL', okey(j.id), mkey(j.id))
  call('HDEL', LISTINGS, j.id)
  return done(o, version, 0, true)
end

change_[SET_ASIDE] = function(o, j)
  writable(o, j)
  countable(j.limits)
  sound('HLEN', TRASH)
  sound('ZCARD', TRASHBY)
  local owner = endClaim(j)
  raise(j.limits, -1)
  group_.stand(j.limits, 't', 1)
  write(o, j)
  call('HSET', TRASH, j.id, call('HGET', LISTINGS, j.id))
  call('HDEL', LISTINGS, j.id)
  call('DEL', okey(j.id), mkey(j.id))
  j.trashed, j.ended, open = true, o.at or now, open - 1
  change(j, o.event, o.reason, owner)
  call('ZADD', TRASHBY, num(position), j.id)
  return done(o, j.version, notBefore(o, j))
end

change_[RESTORE] = function(o, j)
  if not j or not j.trashed then return refuse(NOT_FOUND, o.id, j, 'there is no such job in the trash') end
  if o.version ~= 0 and o.version ~= j.version then return refuse(ABORTED, o.id, j, 'the job was changed meanwhile') end
  local name, by = key_.taken(o)
  if name then return key_.refuse(name, by) end
  writable(o, j)
  countable(j.limits)
  sound('ZCARD', TRASHBY)
  if #o.keys > 0 then sound('HLEN', TAKEN) end
  key_.take(o)
  group_.stand(j.limits, 't', -1)
  raise(j.limits, 1) -- it was on the board before: no limit keeps it off
  write(o, j)
  call('HSET', LISTINGS, j.id, call('HGET', TRASH, j.id))
  call('HDEL', TRASH, j.id)
  call('ZREM', TRASHBY, j.id)
  j.trashed, j.ended, open = false, 0, open + 1
  hold(j)
  change(j, o.event, o.reason, '', shown(j.id))
  return done(o, j.version, notBefore(o, j))
end

change_[PURGE] = function(o, j)
  local version, e = j and j.version, nil
  if not j then
    local raw = call('HGET', ENDED, o.id)
    e = raw and parseEnded(raw)
    if e and visible(e) then version = e.version else e = nil end
  end
  if not e and not (j and j.trashed) then
    return refuse(NOT_FOUND, o.id, j, 'there is no such job in the trash or among the ended ones')
  end
  if o.version ~= 0 and o.version ~= version then
    return refuse(ABORTED, o.id, j, 'the job was changed meanwhile')
  end
  writable(o, nil)
  sound('ZCARD', TRASHBY)
  if e then wipeable(o.id) end
  if not e then countable(j.limits) end
  if e then
    wipe(o.id)
  else
    group_.stand(j.limits, 't', -1)
    group_.stand(j.limits, 'p', 1)
    call('HDEL', TRASH, j.id)
    call('ZREM', TRASHBY, j.id)
    call('HDEL', JOBS, j.id)
    if j.attached or #o.attach > 0 then call('DEL', akey(j.id)) end
  end
  position = position + 1
  emit(o.event, UNKNOWN, PURGED, o.id, o.reason, '', '', '')
  return done(o, version + 1, 0)
end

local function apply(o)
  local j
  if byToken(o) then
    j = reconcile(o.id)
    -- A claim that stands was not ended by this op before.
    local again = not (j and j.claim and j.token == o.token) and repeated(o)
    if again then return again end
  else
    local again = repeated(o)
    if again then return again end
    j = reconcile(o.id)
  end
  if o.kind ~= RESTORE and o.kind ~= PURGE then
    local refused = permit(o, j)
    if refused then return refused end
  end
  local why, text = mayUse(j)
  if why then return refuse(why, o.id, j, text) end
  return change_[o.kind](o, j)
end
