-- A step of the search for what other programs did. It changes nothing: it
-- returns where the step ended, how many jobs it looked at, and the jobs whose
-- records of ours are not what lies in TaskFlow's keys. KEYS: JOBS, LISTINGS and
-- TRASH. ARGV: the prefix, the generation, what is to be searched, and for a
-- whole hash the cursor and the count, else the jobs. What is searched for most
-- of the time, claims, must cost next to nothing for a job that nobody claims.
local call, get, sub, band = redis.call, struct.unpack, string.sub, bit.band
local JOBS, LISTINGS, TRASH = unpack(KEYS)
local PREFIX, what = ARGV[1], ARGV[3]
local GENERATION = struct.pack('>I8', tonumber(ARGV[2]))
local time = call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local found, looked = {}, 0

local function isID(id)
  return #id == 36 and string.find(id, '^%x+%-%x+%-%x+%-%x+%-%x+$') and not string.find(id, '%u')
end

-- differs reports whether a job on the board, by our record, is another one by
-- TaskFlow's keys. See lua/settle.lua.
local function differs(raw, owner, lm)
  local _, flags, _, _, _, notbefore, _, _, _, _, at = get(META, raw)
  if band(flags, 3) == 0 then
    if owner then return owner ~= HOLDER end
    return band(flags, 4) ~= 0 or notbefore > now
  end
  local token, _, _, by, extra = get(CLAIM, raw, at)
  if band(flags, 2) ~= 0 then return owner ~= by or lm ~= extra end
  if sub(token, 1, 8) ~= GENERATION or not lm or sub(lm, -16) ~= sub(token, 17) then return true end
  return owner and owner ~= by and owner ~= HOLDER
end

local function compare(ids, raws)
  local keys = {}
  for n, id in ipairs(ids) do
    keys[2 * n - 1], keys[2 * n] = PREFIX .. id .. '.owned', PREFIX .. id .. '.last_modified'
  end
  if #ids == 0 then return end
  local values = call('MGET', unpack(keys))
  for n, id in ipairs(ids) do
    local raw = raws[n]
    local listed = call('HEXISTS', LISTINGS, id) == 1
    local trashed = raw and band(string.byte(raw, 2), 8) ~= 0
    local odd
    if not raw then
      odd = listed
    elseif trashed then
      odd = listed
    else
      odd = not listed or differs(raw, values[2 * n - 1], values[2 * n])
    end
    if odd then found[#found + 1] = id end
  end
  looked = looked + #ids
end

-- claims looks for claims only: at the owner keys of all free jobs at once, and
-- at each job that is claimed or waits.
local function claims(fields, from, to)
  local free, owners, ids, raws = {}, {}, {}, {}
  for n = from, to, 2 do
    local raw = fields[n + 1]
    local flags = string.byte(raw, 2)
    if band(flags, 8) == 0 then
      if band(flags, 71) == 0 then
        free[#free + 1] = fields[n]
        owners[#owners + 1] = PREFIX .. fields[n] .. '.owned'
      else
        ids[#ids + 1], raws[#raws + 1] = fields[n], raw
      end
    end
  end
  looked = looked + #free
  if #owners > 0 and call('EXISTS', unpack(owners)) > 0 then
    for n, owner in ipairs(call('MGET', unpack(owners))) do
      if owner and owner ~= HOLDER then found[#found + 1] = free[n] end
    end
  end
  if #ids == 0 then return end
  local keys = {}
  for n, id in ipairs(ids) do
    keys[2 * n - 1], keys[2 * n] = PREFIX .. id .. '.owned', PREFIX .. id .. '.last_modified'
  end
  local values = call('MGET', unpack(keys))
  for n, id in ipairs(ids) do
    if differs(raws[n], values[2 * n - 1], values[2 * n]) then found[#found + 1] = id end
  end
  looked = looked + #ids
end

if what == 'ids' then
  local ids, raws = {}, {}
  for n = 4, #ARGV do
    ids[#ids + 1] = ARGV[n]
    raws[#ids] = call('HGET', JOBS, ARGV[n])
  end
  compare(ids, raws)
  return {'0', looked, 0, found}
end

local KEY = (what == 'jobs' or what == 'claims') and JOBS or what == 'trash' and TRASH or LISTINGS
local step = call('HSCAN', KEY, ARGV[4], 'COUNT', ARGV[5])
local fields = step[2]
local strange = 0
if what == 'claims' then
  for from = 1, #fields, 1000 do claims(fields, from, math.min(from + 999, #fields)) end
elseif what == 'jobs' then
  -- MGET takes its keys from Lua's stack, so that a step is cut up.
  for from = 1, #fields, 1000 do
    local ids, raws = {}, {}
    for n = from, math.min(from + 999, #fields), 2 do
      ids[#ids + 1], raws[#raws + 1] = fields[n], fields[n + 1]
    end
    compare(ids, raws)
  end
else
  for n = 1, #fields, 2 do
    local id = fields[n]
    looked = looked + 1
    if not isID(id) then
      strange = strange + 1
    else
      local raw = call('HGET', JOBS, id)
      if not raw or (what == 'trash') ~= (band(string.byte(raw, 2), 8) ~= 0) then found[#found + 1] = id end
    end
  end
end
return {step[1], looked, strange, found}
