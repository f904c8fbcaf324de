-- Answers, in the format that answer.go reads. One is a text, or a list of pieces that Go
-- puts together: Lua goes through every byte of each text that it makes.

-- failure is what a pcall caught, as text: an error of Redis has its code first,
-- which versions before 7 put behind the script's name.
local function failure(caught)
  if type(caught) == 'table' then caught = caught.err or '' end
  return sub((string.gsub(tostring(caught), '^@?user_script: ?%d+: %-?', '')), 1, 1000)
end

-- aboutKeys reports whether a failure is by what lies in some key.
local function aboutKeys(text)
  return string.find(text, '^WRONGTYPE') or string.find(text, '^CORRUPT') or not string.find(text, '^%u+ ')
end

local TAIL = pack('>BI2I2', 0, 0, 0) -- no record, no claims, none passed over

local function result(kind, repeated, p, version, at, notbefore, left, lease, message, owner, tail)
  if not tail and #message + #owner == 0 then -- as most of them are: one string less
    return pack('>BBI8I8I8I8I8I8I4BI4', kind, repeated, p, version, at, notbefore, left, lease, 0, 0, 0)
  end
  return pack('>BBI8I8I8I8I8I8I2c0I2c0', kind, repeated, p, version, at, notbefore, left, lease, #message, message, #owner, owner)
    .. (tail or TAIL)
end

local NOTHING = '\000\000\000\000' -- the length of what is not there
local NO_KEYS = string.rep(NOTHING, 4) -- no owner or time, no past, no final record, none attached

-- standing adds a job on the board or in the trash to the pieces of an answer. posting is
-- given where it is known.
local function standing(out, j, parts, posting)
  posting = posting or j.posting or call('HGET', j.trashed and TRASH or LISTINGS, j.id) or ''
  local key, lm, left = '', '', -2
  if not j.trashed then
    key, lm = j.key or '', j.lm or ''
    left = j.key and (j.left or lasts(j.id)) or -2
  end
  local n = #out
  out[n + 1], out[n + 2] = pack('>BBi8I4', 1, j.trashed and TRASHED or OPEN, left, #posting), posting
  out[n + 3], out[n + 4] = pack('>I4', #j.meta), j.meta
  if band(parts, 2) == 0 or not j.attached then
    out[n + 5] = #key + #lm == 0 and NO_KEYS or pack('>I2c0I2c0I4I4I4', #key, key, #lm, lm, 0, 0, 0)
    return
  end
  local all = call('HGETALL', akey(j.id))
  out[n + 5] = pack('>I2c0I2c0I4I4I4', #key, key, #lm, lm, 0, 0, #all / 2)
  for k = 1, #all, 2 do out[#out + 1] = pack('>I2c0I4c0', #all[k], all[k], #all[k + 1], all[k + 1]) end
end

local function standingText(j)
  local out = {}
  standing(out, j, 0)
  return table.concat(out)
end

-- How many bytes of records may still be shown with refusals, so that a batch of
-- refusals is bounded: later ones come without.
local room = 4194304
local function shortened(record)
  room = room - #record
  return room < 0 and '\000' or record
end

-- found is whatever is known of a job, or a zero byte. j is the job if it stands.
local function found(id, j)
  if room < 0 then return '\000' end
  if j then return shortened(standingText(j)) end
  local e, raw = endedOf(id)
  if not e or not visible(e) then return '\000' end
  local final = finals > 0 and call('HGET', FINALS, id) or ''
  return shortened(pack('>BBi8I4I4I2I2I4c0I4c0I4', 1, COMPLETE, -2, 0, 0, 0, 0, #raw, raw, #final, final, 0))
end

local function refuse(kind, id, j, message, left)
  local owner = j and (j.claim or j.foreign) and j.by or ''
  return result(kind, 0, 0, 0, 0, 0, left or 0, 0, message, owner, found(id, j) .. pack('>I2I2', 0, 0))
end
