-- Keys: names that at most one job of the board has. TAKEN has for each whose it is,
-- whether while that job is on the board, until when whatever becomes of it, and the number
-- with which it was taken. Nothing is written to it when a job ends: whether a job is on the
-- board is looked up when somebody wants its key.
local key_ = {} -- a script has room for 200 local names
key_.nobody, key_.rate = '00000000-0000-0000-0000-000000000000', '\000rate\000'

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
  key_.sweep(2 * #o.keys, o.id)
end

function key_.sweep(most, id)
  local some = redis.pcall('HRANDFIELD', TAKEN, most)
  if some.err then return end
  for _, name in ipairs(some) do
    local known, e = pcall(key_.entry, name)
    if known and e and e.job ~= id and e.til <= now and (e.number == 0 or e.job == key_.nobody) and not (e.open and key_.onBoard(e.job)) then
      call('HDEL', TAKEN, name)
    end
  end
end

-- paced returns the key of the first of some rates that grants no more claims now. A list
-- has the name, the period and the most of each. The count of a rate is kept as the number
-- of a key that is nobody's, and lasts until the end of the period.
function key_.paced(rates)
  for n = 1, #rates, 3 do
    local e = key_.entry(rates[n])
    if e and e.til >= key_.ends(rates[n + 1]) and e.number >= rates[n + 2] then return sub(rates[n], #key_.rate + 1) end
  end
end

-- ends returns the end of the present period.
function key_.ends(per) return now - now % per + per end

-- pace counts a claim in its rates.
function key_.pace(rates)
  for n = 1, #rates, 3 do
    local e, til, number = key_.entry(rates[n]), key_.ends(rates[n + 1]), 1
    if e and e.til >= til then til, number = e.til, e.number + 1 end
    call('HSET', TAKEN, rates[n], pack('>c36BI8I8', key_.nobody, 0, til, number))
  end
  if #rates > 0 then key_.sweep(2 * #rates / 3) end
end

-- refuse answers an op that would take a key which another job has.
function key_.refuse(name, by)
  local known, j = pcall(reconcile, by)
  return result(TAKEN_BY, 0, 0, 0, 0, 0, 0, 0, name, by, (known and found(by, j) or '\000') .. pack('>I2I2', 0, 0))
end
