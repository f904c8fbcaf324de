-- The ops as they come, see op.go, and the end of the script.

local EMPTY = {} -- a list that nobody adds to

local function limitsAt(raw, at)
  local n
  n, at = get('>I2', raw, at)
  if n == 0 then return EMPTY, at end
  local list = {}
  for _ = 1, n do
    list[#list + 1], list[#list + 2], list[#list + 3], at = get('>I2c0i8i8', raw, at)
  end
  return list, at
end

local function readClaim(o, raw, at)
  local n, remember_, more
  o.count, o.lease, o.parts, remember_, more, n, at = get('>I2I8BBBI2', raw, at)
  o.remember, o.more, o.candidates = remember_ == 1, more == 1, {}
  for _ = 1, n do
    local id, nonce, version, most, has, status, limits, rates
    id, nonce, version, most, has, status, at = get('>c36c16I8I8BI4c0', raw, at)
    limits, at = limitsAt(raw, at)
    rates, at = limitsAt(raw, at)
    o.candidates[#o.candidates + 1] = {
      id = id, nonce = nonce, version = version, most = most, status = has == 1 and status or nil, limits = limits, rates = rates,
    }
  end
end

local function readKeys(o, raw, at)
  local n
  n, at = get('>B', raw, at)
  o.keys = EMPTY
  if n == 0 then return at end
  o.keys = {}
  for _ = 1, n do
    local k = {}
    k.name, k.open, k.lasts, k.number, at = get('>I2c0BI8I8', raw, at)
    o.keys[#o.keys + 1] = k
  end
  return at
end

local function readPost(o, raw, at, read)
  local replaces, _, other
  replaces, at = get('>B', raw, at)
  if replaces == 1 then
    _, other, at = get('>c36I4c0', raw, at)
    o.replaces = read(other)
  end
  o.digest, o.head, o.tail, o.bare, at = get('>c16I4c0I4c0I4c0', raw, at)
  o.limits, at = limitsAt(raw, at)
  at = readKeys(o, raw, at)
  o.emptied, at = get('>I2c0', raw, at)
  return at
end

-- group_.readImport reads what an op of a move has behind all else; others end there.
function group_.readImport(o, raw, at, read)
  if at > #raw or get('>B', raw, at) == 0 then return end
  local after
  o.created, o.move, after, at = get('>I8c16I4c0', raw, at + 1)
  if after ~= '' then
    o.after = read(after)
    o.after.at = get('>I8', raw, at)
  end
end

local function readRemove(o, raw, at)
  local keep, flags, data
  o.outcome, keep, flags, data = get('>BI8BI4c0', raw, at)
  if keep > 0 then o.keep = {keep = keep, flags = flags, data = data} end
end

local read
function read(raw)
  local kind, id, request, must, version, event, hold_, holdtime, has, n, token, owner, reason, status, at =
    get('>Bc36c16BI8BBI8BI2I2c0I2c0I2c0I4c0', raw)
  local o = {
    kind = kind, id = id, request = request, must = must, version = version, event = event, hold = hold_, holdtime = holdtime,
    token = token, owner = owner, reason = reason, status = has == 1 and status or nil, outcome = 0, attach = n > 0 and {} or EMPTY,
  }
  for _ = 1, n do
    local name, delete, data
    name, delete, data, at = get('>Bc0BI4c0', raw, at)
    o.attach[#o.attach + 1], o.attach[#o.attach + 2], o.attach[#o.attach + 3] = name, delete == 1, data
  end
  if o.kind == CLAIM_OP then readClaim(o, raw, at)
  elseif o.kind == POST then group_.readImport(o, raw, readPost(o, raw, at, read), read)
  elseif o.kind == REMOVE then readRemove(o, raw, at)
  elseif o.kind == RESTORE then group_.readImport(o, raw, readKeys(o, raw, at), read)
  elseif o.kind == SET_ASIDE then
    o.outcome, at = get('>B', raw, at)
    group_.readImport(o, raw, at, read)
  elseif o.kind == UPDATE or o.kind == PURGE then group_.readImport(o, raw, at, read)
  elseif o.kind == group_.TALLY then
    o.group, o.what, at = get('>I2c0B', raw, at)
    group_.readImport(o, raw, at, read)
  elseif o.kind == group_.HELD then
    o.lease, at = get('>I8', raw, at)
    o.limits = limitsAt(raw, at)
  elseif o.kind == EXTEND then o.lease, o.most = get('>I8I8', raw, at) end
  return o
end

-- gone reports whether the board has gone to another store. Then what other programs do here
-- is not about it any more.
function group_.gone()
  local stands = sub(group_.passage, 1, 1)
  return stands == 'L' or stands == 'E'
end

-- refuses returns why the board does not take an op as it stands between stores: kind and
-- message, see transition.Passage.
function group_.refuses(o)
  local passage, mine = group_.passage, o.move and o.move ~= NONE
  local stands = sub(passage, 1, 1)
  if o.kind == group_.TALLY and o.what == 0 then -- it changes nothing
    if group_.gone() then return group_.UNAVAILABLE, group_.GONE end
    return
  end
  if mine and passage == 'R' .. o.move then
    if o.after and o.after.kind == group_.HELD and sub(o.after.token, 1, 8) ~= GENERATION then return PRECONDITION, group_.REIGN end
  elseif mine and (stands == '' or stands == 'R') then
    return PRECONDITION, group_.ENDEDMOVE
  elseif passage ~= '' then
    return group_.UNAVAILABLE, stands == 'R' and group_.RECEIVING or group_.FROZEN
  end
end

local function run(raw)
  local quick = group_.passage == '' and usual_[byte(raw)]
  local answer = quick and quick(raw)
  if answer then return answer end
  local o = read(raw)
  if o.kind ~= SETTLE and o.kind ~= VERDICT then
    local why, text = group_.refuses(o)
    if why then return result(why, 0, 0, 0, 0, 0, 0, 0, text, '') end
  end
  if (o.kind == SETTLE or o.kind == VERDICT) and group_.gone() then return result(0, 0, position, 0, now, 0, 0, 0, '', '') end
  if o.kind == CLAIM_OP then return claim(o) end
  if o.kind == POST then return post(o) end
  if o.kind == group_.TALLY then return result(0, 0, 0, 0, 0, 0, 0, 0, group_.tally(o), '') end
  if o.kind == SETTLE then
    local j = reconcile(o.id)
    if j and not j.trashed then lease(j) end
    if j and j.unread then return result(UNREAD, 0, 0, 0, 0, 0, 0, 0, o.id, '') end
    return result(0, 0, position, 0, now, 0, 0, 0, '', '')
  end
  if o.kind == VERDICT then
    verdict(o)
    return result(0, 0, position, 0, now, 0, 0, 0, '', '')
  end
  return apply(o)
end

local before = {epoch, claimed, open, finals, bytes}
local results = {}
for n = 7, #ARGV do
  -- One op that meets a key of a type that nobody expects must not take the
  -- others with it.
  local ok, answer = pcall(run, ARGV[n])
  if not ok then
    answer = result(TROUBLE, 0, 0, 0, 0, 0, 0, 0, failure(answer), '')
  end
  results[#results + 1] = answer
end
flush()
pcall(trim, 8 + 2 * #results) -- if a key has another type, all that is too old stays
writeLimits()

if position >= first or before[4] ~= finals or before[1] ~= epoch then
  if not head[1] then call('HSET', HEAD, 'generation', num(generation), 'id', ARGV[4], 'created', num(now), 'server', SERVER) end
  call('HSET', HEAD, 'position', num(position), 'epoch', num(epoch), 'claimed', num(claimed), 'open', num(open),
    'finals', num(finals), 'bytes', num(bytes), 'posts', num(posts))
end
if told > 0 then
  call('XADD', EVENTS, 'MINID', '~', num(math.max(position - maxevents, 0)), num(position) .. '-0',
    'f', num(first), 'e', table.concat(events))
  call('PUBLISH', CHANNEL, num(position))
end
return {'DONE', generation, position, now, told, results}
