-- Keys: names that at most one job of the board has. TAKEN has for each whose it is,
-- whether while that job is on the board, until when whatever becomes of it, and the number
-- with which it was taken. Nothing is written to it when a job ends: whether a job is on the
-- board is looked up when somebody wants its key.
local key_ = {} -- a script has room for 200 local names

function key_.entry(name)
  local raw = call('HGET', TAKEN, name)
  if not raw then return nil end
  if #raw ~= 53 then error({err = 'CORRUPT the key ' .. sub(name, 1, 100) .. ' has ' .. #raw .. ' bytes where 53 have to be'}) end
  local e, flag = {}, nil
  e.job, flag, e.til, e.number = get('>c36BI8I8', raw)
  e.open = flag == 1
  return e
end

function key_.onBoard(id) return call('HEXISTS', LISTINGS, id) == 1 end

-- taken returns the first key that the op cannot take, and the job that has it.
function key_.taken(o)
  local replaced = o.replaces and o.replaces.id
  for _, k in ipairs(o.keys) do
    local e = key_.entry(k.name)
    if e then
      local had = e.til > now or e.open and key_.onBoard(e.job)
      if had and e.job ~= o.id and e.job ~= replaced or k.number > 0 and k.number <= e.number then return k.name, e.job end
    end
  end
end

-- take gives a job its keys. Some others are looked at, from anywhere, and dropped if
-- they say nothing any more, so that those of ended jobs do not pile up. Redis before 6.2
-- cannot choose them.
function key_.take(o)
  if #o.keys == 0 then return end
  for _, k in ipairs(o.keys) do
    local e = key_.entry(k.name)
    local til = k.lasts > 0 and now + k.lasts or e and e.job == o.id and e.til or 0
    call('HSET', TAKEN, k.name, pack('>c36BI8I8', o.id, k.open, til, math.max(k.number, e and e.number or 0)))
  end
  local some = redis.pcall('HRANDFIELD', TAKEN, 2 * #o.keys)
  if some.err then return end
  for _, name in ipairs(some) do
    local known, e = pcall(key_.entry, name)
    if known and e and e.job ~= o.id and e.til <= now and e.number == 0 and not (e.open and key_.onBoard(e.job)) then
      call('HDEL', TAKEN, name)
    end
  end
end

-- refuse answers an op that would take a key which another job has.
function key_.refuse(name, by)
  local known, j = pcall(reconcile, by)
  return result(TAKEN_BY, 0, 0, 0, 0, 0, 0, 0, name, by, (known and found(by, j) or '\000') .. pack('>I2I2', 0, 0))
end
