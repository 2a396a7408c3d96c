-- recover: push what a node remembers, after a loss of data or at its own start.
--
-- ARGV  4 a fresh random epoch   5 hold-down, µs   6 how long a heartbeat counts as alive, µs
--       7 last (1: the node's push is complete)
--       8.. per entry: entry, mark, since, fingerprint ("" where it is not known)
-- Answer  OK, then the epoch, how long to wait, µs (0: no recovery is running), and the entries
--         whose marks were refused: more than an hour ahead of this server's clock
--
-- A recovery is of one identity: another identity starts anew, a second node's discovery does
-- not restart it. It ends when every node with a live heartbeat has pushed, at the latest after
-- the hold-down. Without heartbeats (FLUSHALL, first start) it takes the full hold-down: a first
-- start cannot be told from a flush. Marks and fences only rise.

local fresh, hold_down, alive = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local recovering = meta[4]

local starts = recovering ~= identity
  and (recovering or meta[1] ~= identity or seen > last_fence)
if starts then
  redis.call('DEL', heard)
  redis.call('HSET', marks, 'recovering', identity, 'epoch', fresh,
             'hold_down', int(now + hold_down))
  recovering, meta[2] = identity, fresh
end

if seen > last_fence then
  last_fence = seen
  redis.call('HSET', marks, 'fence', int(last_fence))
end

local refused = {}
for i = 8, #ARGV, 4 do
  local entry, mark, since = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2])
  if mark > now + 3600000000 then
    refused[#refused + 1] = entry
  else
    local record = read_record(entry)
      or {mark = 0, since = 0, fence = 0, runs = 0, fingerprint = ARGV[i + 3]}
    record.mark, record.since = math.max(record.mark, mark), math.max(record.since, since)
    if record.fingerprint == '' then record.fingerprint = ARGV[i + 3] end
    write_record(entry, record)
  end
end

if not recovering then return answer('OK', meta[2], '0', refused) end

if ARGV[7] == '1' then redis.call('SADD', heard, node) end
-- No longer than the hold-down from now: the clock may have been set back.
local ends = math.min(tonumber(redis.call('HGET', marks, 'hold_down')), now + hold_down)
redis.call('HSET', marks, 'hold_down', int(ends))
local living = redis.call('ZRANGEBYSCORE', nodes, int(now - alive), '+inf')
local all_heard = #living > 0
for _, other in ipairs(living) do
  if redis.call('SISMEMBER', heard, other) == 0 then all_heard = false end
end
if now < ends and not all_heard then
  return answer('OK', meta[2], int(ends - now), refused)
end
redis.call('HSET', marks, 'identity', identity)
redis.call('HDEL', marks, 'recovering', 'hold_down')
redis.call('DEL', heard)
return answer('OK', meta[2], '0', refused)
