-- enqueue: push a message and settle its tick as sent, in one step or not at all.
--
-- KEYS  9.. the key or channel of each command
-- ARGV  4 how long a settled grant is kept, µs   5 entry   6 tick   7 fence
--       8 n, then n times: reason, number passed over
--       then per command: LPUSH | PUBLISH | PEXPIRE, its argument
-- Answer  OK, then
--   DONE       pushed, closed and counted
--   ALREADY    this very fence settled it before
--   STALE      another grant is in force, or nobody remembers: nothing was pushed
--   PAUSED     the entry is paused: nothing was pushed, the tick stays open
--   WRONGTYPE  followed by the key: a queue's key is not a list; nothing was pushed
--
-- Scripts have no rollback: types and fence are looked at first, then it counts, pushes, settles.

local refused = refusal() or cannot_close()
if refused then return refused end

local keep, entry, fence = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[7])
local member = ARGV[6] .. ':' .. entry
local last = 8 + 2 * tonumber(ARGV[8])
local passed = {}
for i = 9, last do passed[#passed + 1] = ARGV[i] end

local closing = may_close(member, fence)
if closing ~= 'DONE' then return answer('OK', closing) end
if redis.call('HEXISTS', paused, entry) == 1 then return answer('OK', 'PAUSED') end

for i = 9, #KEYS do
  local kind = ARGV[last + 2 * (i - 8) - 1] == 'LPUSH' and redis.call('TYPE', KEYS[i]).ok
  if kind and kind ~= 'list' and kind ~= 'none' then return answer('OK', 'WRONGTYPE', KEYS[i]) end
end
count('sent', passed)
for i = 9, #KEYS do
  redis.call(ARGV[last + 2 * (i - 8) - 1], KEYS[i], ARGV[last + 2 * (i - 8)])
end
close(member, fence, 'sent', keep)
return answer('OK', closing)
