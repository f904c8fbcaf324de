-- One call of this script carries out a list of ops on one board, each atomic
-- by itself. It is put together from the files in this folder, in the order that
-- script.go names; what is in capitals and not set here comes from Go.
--
-- KEYS are those of the board, see keys.go. ARGV is the prefix of the jobs' own
-- keys, the board's numbers, the channel that wakes watchers, a name for a board
-- that is new, the server that the host has looked at, the final records that may
-- be cleaned up (their uuids, or a star), and then the ops, each packed into one
-- string.
--
-- The rules: time is read once. Everything is checked before the first write of
-- an op: Redis takes no write back, so one that fails in the middle would leave
-- half of the op behind, and counters that fit no key. Nothing costs more on a
-- larger board. Numbers stay below 2^53.
local call, pack, get = redis.call, struct.pack, struct.unpack
local sub, fmt, floor, band = string.sub, string.format, math.floor, bit.band

local HEAD, JOBS, LISTINGS, TRASH, SEQUENCE, STAMPS, ORDER, ENDED, ENDEDBY, FINALS, FINALSBY, FINALSDUE, LIMITS, TRASHBY, EVENTS, TAKEN =
  unpack(KEYS, 1, 16)
local PREFIX, CHANNEL, SERVER, MAYDROP = ARGV[1], ARGV[3], ARGV[5], ARGV[6]
local generation, known, window, maxstamps, maxfinals, maxbytes, maxevents, maxindexed = get('>I8I8I8I8I8I8I8I8', ARGV[2])
local GENERATION = sub(ARGV[2], 1, 8)

-- Redis writes a large number that comes as a number with an exponent.
local function num(n) return fmt('%.0f', n) end

-- What the board counts: see head in keys.go. It is read here and written once
-- at the end.
local head = call('HMGET', HEAD, 'generation', 'position', 'epoch', 'claimed', 'open', 'finals', 'bytes', 'posts', 'server', 'moved')
for n = 1, 8 do
  if head[n] and not tonumber(head[n]) then
    return redis.error_reply('CORRUPT the head of the board says ' .. sub(head[n], 1, 40) .. ' where a number has to be')
  end
end
local position, epoch = tonumber(head[2] or 0), tonumber(head[3] or 0)
local claimed, open = tonumber(head[4] or 0), tonumber(head[5] or 0)
local finals, bytes, posts = tonumber(head[6] or 0), tonumber(head[7] or 0), tonumber(head[8] or 0)
if not head[1] then -- a new board, or one whose head was taken away: its stream goes on
  local last = call('XREVRANGE', EVENTS, '+', '-', 'COUNT', 1)[1]
  if last then position = tonumber(string.match(last[1], '^%d+')) end
  epoch = position -- no claim has a higher epoch than its position
end
local first = position + 1
group_.passage = head[10] or '' -- see move.lua

-- A host whose knowledge of the board is out of date has to look again: the
-- generation was raised, or the store has lost changes that this host has seen, or
-- another host uses the board on a server that this one has not looked at yet.
if tonumber(head[1] or 1) ~= generation or position < known 
  or (head[9] or '') ~= '' and SERVER ~= '' and head[9] ~= SERVER then
  return {'LOOK', tonumber(head[1] or 1), position}
end

local time = call('TIME')
local seconds = tonumber(time[1])
local now = seconds * 1000000 + tonumber(time[2])

-- The time as TaskFlow writes it: a msgpack extension of type 1. A nonce is one
-- key more, which its reader passes over.
-- begin datetime
local datetime, datetimeOf -- of now, and of another time in microseconds
do
  local function fields(seconds, micro)
    local days = floor(seconds / 86400)
    local rest = seconds - days * 86400
    local z = days + 719468 -- since the first of March of year 0
    local era = floor(z / 146097)
    local doe = z - era * 146097
    local yoe = floor((doe - floor(doe / 1460) + floor(doe / 36524) - floor(doe / 146096)) / 365)
    local doy = doe - (365 * yoe + floor(yoe / 4) - floor(yoe / 100))
    local m = floor((5 * doy + 2) / 153)
    local month = m < 10 and m + 3 or m - 9
    local p = cmsgpack.pack
    return '\163day' .. p(doy - floor((153 * m + 2) / 5) + 1) .. '\165month' .. p(month)
      .. '\164year' .. p(yoe + era * 400 + (month <= 2 and 1 or 0)) .. '\164hour' .. p(floor(rest / 3600))
      .. '\166minute' .. p(floor(rest / 60) % 60) .. '\166second' .. p(rest % 60)
      .. '\171microsecond' .. p(micro)
  end

  function datetimeOf(at)
    local written = fields(floor(at / 1000000), at % 1000000)
    return '\199' .. string.char(#written + 1) .. '\001\135' .. written
  end

  local moment, before -- of now, and what is before a nonce
  function datetime(nonce)
    if not moment then
      local written = fields(seconds, tonumber(time[2]))
      moment = '\199' .. string.char(#written + 1) .. '\001\135' .. written
      before = '\199' .. string.char(#written + 25) .. '\001\136' .. written .. '\165nonce\196\016'
    end
    return nonce and before .. nonce or moment
  end
end
-- end datetime

-- What watchers are told, in order and in pieces, which are put together once: Lua goes
-- through every byte of each text that it makes.
local events, told = {}, 0
local function emit(event, state, outcome, id, reason, owner, meta, posting)
  local size = 67 + #reason + #owner + #meta + #posting -- of what follows
  events[told + 1] = pack('>I4BBBc36I8I8I2c0I2c0I4', size, event, state, outcome, id, position, now,
    #reason, reason, #owner, owner, #meta)
  if #posting == 0 then
    events[told + 2], events[told + 3] = meta, '\000\000\000\000'
    told = told + 3
  else
    events[told + 2], events[told + 3], events[told + 4] = meta, pack('>I4', #posting), posting
    told = told + 4
  end
end

-- sound fails unless keys that an op is about to write have their types, or are
-- not there: command is a cheap one that reads such a type. What an op has read
-- in any case needs no further look.
local looked = {}
local sound
function sound(command, key, other)
  if not looked[key] then
    call(command, key)
    looked[key] = true
  end
  if other then sound(command, other) end
end

-- These are written at the end, when no op can be refused any more.
local remembered = call('LLEN', ORDER)
call('XRANGE', EVENTS, '+', '+') -- no entry is that late
