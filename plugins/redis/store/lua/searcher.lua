-- One server at a time searches a board. It says again and again that it does,
-- for ARGV[2] more milliseconds each time; with 0 it leaves off.
local call = redis.call
local who = call('GET', KEYS[1])
if who and who ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then
  call('DEL', KEYS[1])
  return 0
end
call('PEXPIRE', KEYS[1], ARGV[2]) -- lets the next one through where Redis is full, see memory.lua
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
