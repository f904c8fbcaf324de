-- The last four stays of a board on a server, of 16 bytes each, with one that begins now;
-- see stays.go. Two hosts may note the same one.
local function stays(before, server, position)
  before = before or ''
  if #before % 16 ~= 0 then before = '' end
  if string.sub(before, -16, -9) == server then return before end
  return string.sub(before .. server .. struct.pack('>I8', position), -64)
end
