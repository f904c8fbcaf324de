-- Documents of one space: DATA has them by name, and under the empty name the
-- space's version and the version up to which deletions are forgotten. NAMES has
-- the names in order, CHANGED and GONE the version of each name's last change.
-- ARGV: the channel, the name of the space, what is to be done, and to what.
local call, pack, get, fmt = redis.call, struct.pack, struct.unpack, string.format
local DATA, NAMES, CHANGED, GONE, SPACES, MOVED = unpack(KEYS)
local what, name = ARGV[3], ARGV[4]

local time = call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local version, floor = 0, 0
local space = call('HGET', DATA, '')
if space then version, floor = get('>I8I8', space) end

local raw = call('HGET', DATA, name)
local present, expires, nonce = 0, 0, ''
if raw then present, expires, nonce = get('>I8I8c16', raw) end
local old = present
if raw and expires > 0 and expires <= now then present = 0 end

-- Redis takes no write back, so all keys are looked at before the first one. The set of
-- the spaces is looked at by being written first.
for n = 2, 4 do call('ZCARD', KEYS[n]) end

-- It grows with every change, also after the whole space was dropped.
local function advance()
  version = math.max(version + 1, now)
end

local function remove(name)
  advance()
  call('HDEL', DATA, name)
  call('ZREM', NAMES, name)
  call('ZREM', CHANGED, name)
  call('ZADD', GONE, fmt('%.0f', version), name)
  local over = call('ZCARD', GONE) - 1000
  if over > 0 then
    local first = call('ZPOPMIN', GONE, math.min(over, 10))
    floor = math.max(floor, tonumber(first[#first]))
  end
end

-- sweep takes away what has expired of some other documents, from anywhere: nobody may ever
-- ask for them. It is for a put that expires, so that more goes than comes.
local function sweep()
  local some = redis.pcall('HRANDFIELD', DATA, SWEPT_DOCUMENTS)
  if some.err then return end
  for _, other in ipairs(some) do
    local raw = other ~= '' and other ~= name and call('HGET', DATA, other)
    if raw and #raw >= 32 then
      local _, til = get('>I8I8', raw)
      if til > 0 and til <= now then remove(other) end
    end
  end
end

-- done answers with the version of the document, or of the space without it.
local function done(at)
  call('HSET', DATA, '', pack('>I8I8', version, floor))
  call('PUBLISH', ARGV[1], DATA)
  return {1, at}
end

local moved = what ~= 'reap' and call('HGET', MOVED, 'moved') -- see docmove.lua
if moved then return {tonumber(moved), 0} end

if what == 'put' then
  if raw and nonce == ARGV[7] then return {1, present} end -- by an earlier try of this call
  if present ~= tonumber(ARGV[5]) then return {0, present} end
  advance()
  -- What grows is refused where Redis is full. What does not, and what is small,
  -- such as a server that says that it lives, is let through, see memory.lua.
  if #ARGV[8] <= FULL_DOCUMENT or raw and #ARGV[8] <= #raw - 32 then call('ZREM', GONE, name) end
  call('SADD', SPACES, ARGV[2])
  call('HSET', DATA, name, pack('>I8I8', version, tonumber(ARGV[6])) .. ARGV[7] .. ARGV[8])
  call('ZADD', NAMES, 0, name)
  call('ZADD', CHANGED, fmt('%.0f', version), name)
  call('ZREM', GONE, name)
  local at = version
  if tonumber(ARGV[6]) > 0 then sweep() end
  return done(at)
elseif what == 'delete' then
  if present == 0 then return {2, 0} end
  if present ~= tonumber(ARGV[5]) then return {0, present} end
  remove(name)
  return done(version)
end
-- reap: a document that has expired goes.
if raw and present == 0 and old == tonumber(ARGV[5]) then
  remove(name)
  return done(version)
end
return {0, present}
