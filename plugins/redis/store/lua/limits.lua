-- Limits. A job and a claim keep what they count as a string of keys with their
-- weights; LIMITS has what each key stands at.

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
    local stands = sum[key] or tonumber(call('HGET', LIMITS, key) or 0) - (less[key] or 0)
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

-- raise counts limits, or with sign -1 takes them back.
local function raise(limits, sign)
  local at = 1
  while at <= #limits do
    local key, weight
    key, weight, at = get('>I2c0i8', limits, at)
    if call('HINCRBY', LIMITS, key, num(sign * weight)) == 0 then call('HDEL', LIMITS, key) end
  end
end
