-- follows fails unless all can be written that the job of an import went through. What its
-- post counts is countable.
function change_.follows(o)
  writable(o.after, nil)
  if o.after.kind == group_.HELD then
    countable(counted(o.after.limits))
  elseif o.after.kind == REMOVE then
    removable(nil, o.after.keep)
    sound('HLEN', akey(o.id))
  else
    sound('HLEN', TRASH)
    sound('ZCARD', TRASHBY)
  end
end

-- A claim of another store, with its token, and its whole lease from now on.
change_[group_.HELD] = function(o, j)
  claimed = claimed + 1
  j.claim, j.live, j.noexpiry = true, true, o.lease == 0
  j.token, j.by, j.since = o.token, o.owner, o.at
  j.deadline = o.lease > 0 and now + o.lease * 1000 or 0
  j.extra = counted(o.limits)
  raise(j.extra, 1)
  if o.lease > 0 then
    call('SET', okey(j.id), o.owner, 'PX', num(o.lease))
  else
    call('SET', okey(j.id), o.owner)
  end
  j.key, j.lm = o.owner, datetime(sub(o.token, 17))
  call('SET', mkey(j.id), j.lm)
  change(j, o.event, o.reason, o.owner)
  return result(0, 0, position, j.version, now, 0, 0, 0, '', '')
end

-- imported carries that out, and answers the import.
function change_.imported(o, j)
  local r = change_[o.after.kind](o.after, j)
  local p, version, at = get('>I8I8I8', r, 3)
  local stands = o.after.kind ~= REMOVE and standingText(j) or found(o.id)
  return result(0, 0, p, version, at, o.after.kind ~= REMOVE and notBefore(o, j) or 0, 0, 0, '', '', stands .. pack('>I2I2', 0, 0))
end

-- number returns the number of a post. It fails where another program wrote none.
function change_.number()
  local number = redis.pcall('INCRBY', SEQUENCE, 1)
  if type(number) == 'table' then
    local text = failure(number)
    error({err = (string.find(text, '^ERR ') and 'CORRUPT the sequence: ' or '') .. text})
  end
  return number
end

-- post puts a job on the board: the posting is head, the time, tail, and the
-- sequence number, which only the store knows.
local function post(o)
  local j = reconcile(o.id)
  local raw = not j and call('HGET', ENDED, o.id)
  local e = raw and parseEnded(raw)
  if j or e and visible(e) then
    local stands = j or e
    local shape = found(o.id, j) .. pack('>I2I2', 0, 0)
    if stands.digest ~= o.digest then
      return result(ALREADY_EXISTS, 0, 0, 0, 0, 0, 0, 0, 'another posting has this uuid', '', shape)
    end
    return result(0, 1, stands.position, stands.version, 0, 0, 0, 0, '', '', shape)
  end
  local name, by = key_.taken(o)
  if name then return key_.refuse(name, by) end
  local other = o.replaces and reconcile(o.replaces.id)
  if o.replaces then
    local refused = permit(o.replaces, other)
    if refused then return refused end
    local why, text = mayUse(other)
    if why then return refuse(why, other.id, other, text) end
  end
  if o.emptied ~= '' then
    local n = countAt(o.emptied)
    if n ~= group_.CLOSED then return result(group_.EARLY, 0, 0, 0, 0, 0, 0, 0, num(n), '') end
  end
  local key = not o.created and full(o.limits, other and other.limits or '')
  if key then return result(QUOTA_EXCEEDED, 0, 0, 0, 0, 0, 0, 0, key, '') end
  if nomemory then return result(QUOTA_EXCEEDED, 0, 0, 0, 0, 0, 0, 0, NO_MEMORY, '') end
  if open >= maxindexed and not other and not o.created then -- a board that moves here has what it has
    return result(QUOTA_EXCEEDED, 0, 0, 0, 0, 0, 0, 0, fmt(TOO_MANY, open, maxindexed), '')
  end
  if e then wipeable(o.id) end
  writable(o, nil)
  if o.after then change_.follows(o) end
  if #o.keys > 0 then sound('HLEN', TAKEN) end
  j = fresh(o.id)
  j.digest, j.limits = o.digest, counted(o.limits)
  countable(j.limits)
  local number = change_.number() -- the first write
  if other then apply(o.replaces) end -- nothing refuses it now; what fails does so before it writes
  if e then wipe(o.id) end
  raise(j.limits, 1)
  if o.emptied ~= '' then counts[o.emptied] = countAt(o.emptied) + group_.CLOSED end
  key_.take(o)
  local sequence, created = cmsgpack.pack(number), o.created and datetimeOf(o.created) or datetime()
  call('HSET', LISTINGS, o.id, o.head .. created .. o.tail .. sequence)
  open, posts = open + 1, posts + 1
  write(o, j)
  hold(j)
  local bare = o.head .. created .. o.bare .. sequence
  change(j, o.event, o.reason, '', bare)
  if o.after then return change_.imported(o, j) end
  local out = {result(0, 0, position, j.version, now, notBefore(o, j), 0, 0, '', '', '')}
  standing(out, j, 0, bare)
  out[#out + 1] = NOTHING -- no claims, none passed over
  return out
end
