-- The usual ops in the fewest steps: the post of a job that counts nothing and has no keys,
-- the claim of a job that is free, and the consuming of one by the token of its claim. Each
-- of these functions either does with an op what the general way does, to the byte, or
-- returns nil before it writes anything, and the general way has the op.
--
-- An op is usual if its fixed parts are those that usual.go packs. Texts are put together
-- from few parts, and numbers that come again and again are packed once.
local byte = string.byte

local function packed(format)
  return setmetatable({}, {__index = function(known, n)
    local text = pack(format, n)
    known[n] = text
    return text
  end})
end

local two, four, eight = packed('>I2'), packed('>I4'), packed('>I8')
local NOW = pack('>I8', now)

-- usual_ has them by the kind of the op, and free for the candidates of claims.
local usual_ = {}

usual_[POST] = function(raw)
  if sub(raw, 54, 86) ~= USUAL_POST or nomemory or open >= maxindexed then return nil end
  local id = sub(raw, 2, 37)
  local digest, before, after, bare, at = get('>c16I4c0I4c0I4c0', raw, 87)
  if sub(raw, at) ~= USUAL_POSTED then return nil end
  local there = call('HEXISTS', JOBS, id) + call('HEXISTS', LISTINGS, id) + call('HEXISTS', TRASH, id) + call('HEXISTS', ENDED, id)
  if there > 0 then return nil end
  if not looked[STAMPS] and sub(raw, 38, 53) ~= NONE then sound('HLEN', STAMPS) end
  local sequence, created = cmsgpack.pack(change_.number()), datetime()
  call('HSET', LISTINGS, id, before .. created .. after .. sequence)
  open, posts, position = open + 1, posts + 1, position + 1
  local at8 = pack('>I8', position)
  local meta = '\001\000\000\000\000\000\000\000\000\001' .. at8 .. NOW .. NONE .. digest .. '\000\000\000\000\000\000'
  call('HSET', JOBS, id, meta)
  bare = before .. created .. bare .. sequence
  events[told + 1] = four[67 + #meta + #bare] .. AS_POSTED .. id .. at8 .. NOW .. '\000\000\000\000' .. four[#meta]
  events[told + 2], events[told + 3], events[told + 4] = meta, four[#bare], bare
  told = told + 4
  return {
    '\000\000' .. at8 .. '\000\000\000\000\000\000\000\001' .. NOW .. NONE .. NOTHING .. NOTHING .. NOTHING .. AS_FREE .. four[#bare],
    bare, four[#meta] .. meta .. NO_KEYS .. NOTHING,
  }
end

-- free claims a candidate that nobody has, adds it to the answer and returns the grant.
function usual_.free(o, c, out)
  if #c.limits + #c.rates > 0 then return nil end
  local id = c.id
  local raw = call('HGET', JOBS, id)
  if not raw or #raw < 64 or byte(raw, 2) ~= 0 or sub(raw, 27, 42) ~= NONE then return nil end
  local version, status = get('>I8xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxI4', raw, 3)
  if c.version ~= 0 and c.version ~= version then return nil end
  if #raw < 64 + status or #raw ~= 64 + status + get('>I2', raw, 63 + status) then return nil end
  local posting
  if o.parts ~= 0 then posting = call('HGET', LISTINGS, id) else posting = call('HEXISTS', LISTINGS, id) == 1 end
  local key = okey(id)
  if not posting or call('EXISTS', key) == 1 then return nil end
  epoch, claimed, position = epoch + 1, claimed + 1, position + 1
  local lease, owner = shorter(o.lease, c.most), o.owner
  local token, lm, at8 = GENERATION .. pack('>I8', epoch) .. c.nonce, datetime(c.nonce), pack('>I8', position)
  if lease > 0 then call('SET', key, owner, 'PX', num(lease)) else call('SET', key, owner) end
  call('SET', mkey(id), lm)
  local name, version8 = two[#owner] .. owner, eight[version + 1]
  local meta = (lease > 0 and '\001\001' or '\001\017') .. version8 .. at8 .. NOW .. sub(raw, 27, 58)
    .. (c.status and four[#c.status] .. c.status .. sub(raw, 63 + status) or sub(raw, 59))
    .. token .. NOW .. eight[lease > 0 and now + lease * 1000 or 0] .. name .. '\000\000'
  call('HSET', JOBS, id, meta)
  events[told + 1] = four[67 + #o.reason + #owner + #meta] .. pack('>BBB', o.event, OPEN, 0) .. id .. at8 .. NOW
    .. two[#o.reason] .. o.reason .. name .. four[#meta]
  events[told + 2], events[told + 3] = meta, NOTHING
  told = told + 3
  local one, n = id .. token .. eight[lease] .. version8 .. at8 .. NOW, #out
  if o.parts == 0 then
    out[n + 1] = one .. '\000'
  else
    out[n + 1], out[n + 2] = one .. AS_OPEN .. (lease > 0 and eight[lease] or ENDLESS) .. four[#posting], posting
    out[n + 3] = four[#meta] .. meta .. name .. two[#lm] .. lm .. NOTHING .. NOTHING .. NOTHING
  end
  return one
end

usual_[REMOVE] = function(raw)
  if sub(raw, 54, 77) ~= USUAL_END or sub(raw, 110) ~= USUAL_ENDING then return nil end
  local id, token = sub(raw, 2, 37), sub(raw, 78, 109)
  if sub(token, 1, 8) ~= GENERATION then return nil end
  local meta = call('HGET', JOBS, id)
  if not meta or #meta < 64 or byte(meta, 2) ~= 1 and byte(meta, 2) ~= 17 then return nil end
  local version, digest, status = get('>I8xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxc16I4', meta, 3)
  if sub(meta, 63 + status, 96 + status) ~= '\000\000' .. token or call('HEXISTS', LISTINGS, id) == 0 then return nil end
  local key, modified, nonce = okey(id), mkey(id), sub(token, 17)
  local keys = call('MGET', key, modified)
  local owner = keys[1]
  if not owner or not keys[2] or sub(keys[2], -16) ~= nonce then return nil end
  local name = two[#owner] .. owner
  if sub(meta, 113 + status) ~= name .. '\000\000' then return nil end
  if not looked[STAMPS] then sound('HLEN', STAMPS) end
  if not looked[ENDEDBY] or finals > 0 then removable(nil) end
  open, claimed, position = open - 1, math.max(claimed - 1, 0), position + 1
  local at8, version8 = pack('>I8', position), eight[version + 1]
  local past = USUAL_PAST .. version8 .. at8 .. NOW .. '\000\000\000\000\000\000\000\000' .. digest .. token
  call('HSET', ENDED, id, past)
  endedby[#endedby + 1] = num(position)
  endedby[#endedby + 1] = id
  call('HDEL', JOBS, id)
  events[told + 1] = four[67 + #owner + #past] .. AS_CONSUMED .. id .. at8 .. NOW .. '\000\000' .. name .. four[#past]
  events[told + 2], events[told + 3] = past, NOTHING
  told = told + 3
  call('DEL', key, modified)
  call('HDEL', LISTINGS, id)
  local stamp = id .. nonce
  call('HSET', STAMPS, stamp, at8 .. USUAL_STAMP .. token .. version8 .. NOW .. '\000\000\000\000\000\000\000\000')
  order[#order + 1] = NOW .. at8 .. '\001' .. stamp
  return '\000\000' .. at8 .. version8 .. NOW .. NONE .. NONE .. '\000'
end
