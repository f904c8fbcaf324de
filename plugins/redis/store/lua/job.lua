-- A job is its posting in LISTINGS or TRASH, its owner and last_modified keys,
-- all three TaskFlow's, and beside them what boardd keeps of it in JOBS: its
-- meta, in the format that meta.go reads too.

local function okey(id) return PREFIX .. id .. '.owned' end
local function mkey(id) return PREFIX .. id .. '.last_modified' end
local function akey(id) return PREFIX .. 'boardd:attached.' .. id end

-- lasts returns how many milliseconds an owner's key that is there will be there, negative
-- if it does not end. In its last millisecond Redis says 0.
local function lasts(id)
  local left = call('PTTL', okey(id))
  return left == 0 and 1 or left
end

-- parse reads a meta. All names that a job may have are given at once, so that its table
-- need not grow.
local function parse(id, raw)
  local _, flags, version, position_, modified, notbefore, ended, digest, status, limits, at = get(META, raw)
  local claim, foreign, noexpiry, token, since, deadline, by, extra
  if band(flags, 3) ~= 0 then
    claim, foreign, noexpiry = band(flags, 1) ~= 0, band(flags, 2) ~= 0, band(flags, 16) ~= 0
    token, since, deadline, by, extra = get(CLAIM, raw, at)
  end
  return {
    id = id, meta = raw, version = version, position = position_, modified = modified, notbefore = notbefore, ended = ended,
    digest = digest, status = status, limits = limits, held = band(flags, 4) ~= 0, trashed = band(flags, 8) ~= 0,
    attached = band(flags, 32) ~= 0, unread = band(flags, 128) ~= 0, claim = claim, foreign = foreign, noexpiry = noexpiry,
    token = token, since = since, deadline = deadline, by = by, extra = extra, key = nil, lm = nil, posting = nil, left = nil, live = nil,
  }
end

-- save writes the meta and returns it.
local function save(j)
  local flags = (j.claim and 1 or 0) + (j.foreign and 2 or 0) + (j.held and 4 or 0) + (j.trashed and 8 or 0)
    + (j.noexpiry and 16 or 0) + (j.attached and 32 or 0) + (j.notbefore > 0 and 64 or 0)
    + (j.unread and 128 or 0)
  local raw
  if j.claim or j.foreign then
    raw = pack(CLAIMED, 1, flags, j.version, j.position, j.modified, j.notbefore, j.ended, j.digest, #j.status, j.status,
      #j.limits, j.limits, j.token, j.since, j.deadline, #j.by, j.by, #j.extra, j.extra)
  else
    raw = pack(META, 1, flags, j.version, j.position, j.modified, j.notbefore, j.ended, j.digest, #j.status, j.status,
      #j.limits, j.limits)
  end
  call('HSET', JOBS, j.id, raw)
  j.meta = raw
  return raw
end

local function fresh(id)
  return {id = id, version = 0, position = 0, modified = 0, notbefore = 0, ended = 0, digest = NONE, status = '', limits = ''}
end

-- change gives a change its place in the board's history and tells watchers.
-- posting is for a job that comes onto the board.
local function change(j, event, reason, owner, posting)
  position = position + 1
  j.version = j.version + 1
  j.position, j.modified = position, now
  emit(event, j.trashed and TRASHED or OPEN, 0, j.id, reason, owner, save(j), posting or '')
end

-- shown is the posting for watchers, if it is not too large: else they fetch it.
local function shown(id)
  if call('HSTRLEN', LISTINGS, id) > 4096 then return '' end
  return call('HGET', LISTINGS, id) or ''
end

-- shorter is a lease that may go on for rest; either is 0 where it has no end.
local function shorter(lease, rest)
  if rest > 0 and (lease == 0 or rest < lease) then return rest end
  return lease
end

local function waits(j) return j.held or j.notbefore > now end

-- unclaim takes the claim off a job, in what boardd keeps of it. What it counts
-- is countable. A head that was taken away does not count the claims of before.
local function unclaim(j)
  if j.claim then raise(j.extra, -1) end
  if j.claim or j.foreign then claimed = math.max(claimed - 1, 0) end
  j.claim, j.foreign, j.live, j.noexpiry, j.token = nil, nil, nil, nil, nil
end

-- hold puts the owner key where the job's hold wants it, so that TaskFlow takes
-- the job for claimed. A claim that stands goes first.
local function hold(j)
  if j.live or j.foreign then return end
  if j.held then
    call('SET', okey(j.id), HOLDER)
    j.key = HOLDER
  elseif j.notbefore > now then
    call('SET', okey(j.id), HOLDER, 'PX', num(math.ceil((j.notbefore - now) / 1000)))
    j.key = HOLDER
  elseif j.key then
    call('DEL', okey(j.id))
    j.key = nil
  end
end
