-- fire: send an entry's message once more, beside its schedule, and once per id.
--
-- KEYS  13 fired  zset  id of a message → until when it is remembered, µs
--       14.. the key or channel of each command
-- ARGV  5 PUSH | RESERVE | DONE | FAILED   6 entry   7 the id of its message   8 how long it is
--       remembered, µs   9 0|1: also while the entry is paused   10 what to note of it
--       11.. per command: LPUSH | PUBLISH | PEXPIRE, its argument
-- Answer  OK, then
--   DONE       pushed or noted, and counted; or reserved; or, after FAILED, forgotten
--   ALREADY    a message of this id was sent, or is being sent
--   PAUSED     the entry is paused
--   WRONGTYPE  followed by the key: a queue's key is not a list; nothing was pushed
--
-- PUSH sends in one step. On other brokers: RESERVE, publish, then DONE or FAILED.

local fired = KEYS[13]
local step, entry, id, keep, forced, detail = unpack(ARGV, 5, 10)
local refused = refusal_of_operator() or foreign(fired, 'zset') or foreign(totals, 'hash')
if refused then return refused end

if step == 'FAILED' then
  redis.call('ZREM', fired, id)
  return answer('OK', 'DONE')
end
if step ~= 'DONE' then
  local kept = tonumber(redis.call('ZSCORE', fired, id) or '0')
  if kept > now then return answer('OK', 'ALREADY') end
  if forced ~= '1' and is_held_back(entry) then return answer('OK', 'PAUSED') end
end
for i = 14, #KEYS do
  local kind = ARGV[11 + 2 * (i - 14)] == 'LPUSH' and redis.call('TYPE', KEYS[i]).ok
  if kind and kind ~= 'list' and kind ~= 'none' then return answer('OK', 'WRONGTYPE', KEYS[i]) end
end
-- What cannot be pushed must not be remembered as sent: scripts have no rollback.
if step ~= 'RESERVE' then
  count_one('fired', 1)
  for i = 14, #KEYS do
    redis.call(ARGV[11 + 2 * (i - 14)], KEYS[i], ARGV[12 + 2 * (i - 14)])
  end
  note_deed(entry, 'fired', detail)
end
redis.call('ZREMRANGEBYSCORE', fired, '-inf', int(now))
redis.call('ZADD', fired, int(now + tonumber(keep)), id)
return answer('OK', 'DONE')
