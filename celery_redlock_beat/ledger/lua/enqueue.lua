-- enqueue: push a message and settle its tick as sent, in one step or not at all.
--
-- KEYS  13.. the key or channel of each command
-- ARGV  5 how long a settled grant is kept, µs   6 entry   7 tick   8 fence   9 due_at
--       10 n, then n times: reason, number passed over
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

local keep, entry, fence = tonumber(ARGV[5]), ARGV[6], tonumber(ARGV[8])
local member = ARGV[7] .. ':' .. entry
local last = 10 + 2 * tonumber(ARGV[10])
local passed = {}
for i = 11, last do passed[#passed + 1] = ARGV[i] end

local closing, grant = may_close(member, fence)
if closing ~= 'DONE' then return answer('OK', closing) end
if redis.call('HEXISTS', paused, entry) == 1 then return answer('OK', 'PAUSED') end

for i = 13, #KEYS do
  local kind = ARGV[last + 2 * (i - 12) - 1] == 'LPUSH' and redis.call('TYPE', KEYS[i]).ok
  if kind and kind ~= 'list' and kind ~= 'none' then return answer('OK', 'WRONGTYPE', KEYS[i]) end
end
count('sent', passed)
for i = 13, #KEYS do
  redis.call(ARGV[last + 2 * (i - 12) - 1], KEYS[i], ARGV[last + 2 * (i - 12)])
end
close(member, fence, 'sent', keep,
  {attempt = grant.attempt, previous = grant.previous, due_at = tonumber(ARGV[9]), passed = passed})
return answer('OK', closing)
