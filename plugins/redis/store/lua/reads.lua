-- The reads of a transaction, for a Redis that is too full to take one: ARGV is
-- for each command how many words it has, and the words.
local out, at = {}, 1
while at <= #ARGV do
  local n = tonumber(ARGV[at])
  out[#out + 1] = redis.call(unpack(ARGV, at + 1, at + n))
  at = at + n + 1
end
return out
