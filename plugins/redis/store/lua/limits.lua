-- Limits. A job and a claim keep what they count as a string of keys with their
-- weights; LIMITS has the count of each key. It is read once for each key, and
-- written at the end, so that counting can't fail in the middle of an op.
local stood, counts = {}, {}

-- countAt returns the count of a key. It fails where that is no number.
local function countAt(key)
  if not counts[key] then
    local raw = call('HGET', LIMITS, key)
    local n = tonumber(raw or 0)
    if not n then error({err = 'CORRUPT the limit ' .. sub(key, 1, 100) .. ' stands at ' .. sub(raw, 1, 40) .. ', which is no number'}) end
    stood[key], counts[key] = n, n
  end
  return counts[key]
end

-- countable fails unless all of some limits can be counted.
local function countable(limits)
  local at = 1
  while at <= #limits do
    local key, _
    key, _, at = get('>I2c0i8', limits, at)
    countAt(key)
  end
end

-- full returns the key of the first limit that would be exceeded, or nil. freed
-- is what is counted now and will not be.
local function full(list, freed)
  local sum, less = {}, {}
  local at = 1
  while at <= #freed do
    local key, weight
    key, weight, at = get('>I2c0i8', freed, at)
    less[key] = (less[key] or 0) + weight
  end
  for n = 1, #list, 3 do
    local key = list[n]
    local stands = sum[key] or countAt(key) - (less[key] or 0)
    stands = stands + list[n + 1]
    sum[key] = stands
    if stands > list[n + 2] then return key end
  end
end

-- counted is what is kept of a list of limits.
local function counted(list)
  if #list == 0 then return '' end
  local out = {}
  for n = 1, #list, 3 do out[#out + 1] = pack('>I2c0i8', #list[n], list[n], list[n + 1]) end
  return table.concat(out)
end

-- raise counts limits, or with sign -1 takes them back. They are countable.
local function raise(limits, sign)
  local at = 1
  while at <= #limits do
    local key, weight
    key, weight, at = get('>I2c0i8', limits, at)
    counts[key] = countAt(key) + sign * weight
  end
end

-- writeLimits writes the counts that changed, after all ops.
local function writeLimits()
  local set, gone = {}, {}
  for key, n in pairs(counts) do
    if n ~= stood[key] then
      if n == 0 then
        gone[#gone + 1] = key
      else
        set[#set + 1] = key
        set[#set + 1] = num(n)
      end
    end
  end
  -- One op alone may have thousands of limits.
  for from = 1, #set, 1000 do call('HSET', LIMITS, unpack(set, from, math.min(from + 999, #set))) end
  for from = 1, #gone, 1000 do call('HDEL', LIMITS, unpack(gone, from, math.min(from + 999, #gone))) end
end
