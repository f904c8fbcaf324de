-- Limits. A job and a claim keep what they count as a string of keys with their
-- weights; LIMITS has the count of each key. It is read once for each key, and
-- written at the end, so that counting can't fail in the middle of an op.
--
-- A job's group is one of its limits, whose key begins with a zero byte and a letter for
-- where the group counts the job: see transition.GroupKey. group_.hash has those counts.
local stood, counts = {}, {}
group_.hash, group_.letters = KEYS[17], {'o', 't', 'c', 'x', 'f', 'p'}

function group_.is(key) return string.byte(key) == 0 end

-- key is where a group counts jobs that stand elsewhere.
function group_.key(key, letter) return '\0' .. letter .. sub(key, 3) end

-- countAt returns the count of a key. It fails where that is no number.
local function countAt(key)
  if not counts[key] then
    local raw = call('HGET', group_.is(key) and group_.hash or LIMITS, key)
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
    if group_.is(key) then
      for _, letter in ipairs(group_.letters) do countAt(group_.key(key, letter)) end
    end
  end
end

-- full returns the key of the first limit that would be exceeded, or nil. freed
-- is what is counted now and will not be.
local function full(list, freed)
  if #list == 0 then return nil end
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

-- stand counts jobs of a group that come to stand somewhere off the board, or with by -1
-- go from there. They are countable.
function group_.stand(limits, letter, by)
  local at = 1
  while at <= #limits do
    local key, _
    key, _, at = get('>I2c0i8', limits, at)
    if group_.is(key) then
      local other = group_.key(key, letter)
      counts[other] = countAt(other) + by
    end
  end
end

-- letter is where a group counts a job that ended so.
function group_.letter(outcome) return group_.ENDED[outcome] or 'c' end

-- tally answers with what a group counts, in the order of the letters, after it was closed
-- or forgotten: see transition.Count.
function group_.tally(o)
  local n = {}
  for i, letter in ipairs(group_.letters) do n[i] = countAt(group_.key(o.group, letter)) end
  local shown = pack('>i8i8i8i8i8i8', unpack(n))
  local open = n[1] % group_.CLOSED
  if o.what == 1 and n[1] < group_.CLOSED then counts[o.group] = n[1] + group_.CLOSED end
  if o.what == 2 and open + n[2] == 0 then
    for _, letter in ipairs(group_.letters) do counts[group_.key(o.group, letter)] = 0 end
  end
  return shown
end

-- writeLimits writes the counts that changed, after all ops.
local function writeLimits()
  for _, hash in ipairs({LIMITS, group_.hash}) do
    local set, gone = {}, {}
    for key, n in pairs(counts) do
      if n ~= stood[key] and group_.is(key) == (hash == group_.hash) then
        if n == 0 then
          gone[#gone + 1] = key
        else
          set[#set + 1] = key
          set[#set + 1] = num(n)
        end
      end
    end
    -- One op alone may have thousands of limits.
    for from = 1, #set, 1000 do call('HSET', hash, unpack(set, from, math.min(from + 999, #set))) end
    for from = 1, #gone, 1000 do call('HDEL', hash, unpack(gone, from, math.min(from + 999, #gone))) end
  end
end
