-- repair: set entries' marks, also downwards, on behalf of an operator; the only verb that may.
--
-- KEYS  13 audit  stream  what was repaired, by whom and why; capped
-- ARGV  5 a fresh random epoch   6 who   7 why   8.. per entry: entry, mark ("" for now)
-- Answer  OK, then {the text of the record before ("" for none), mark} per entry
--
-- Nodes remember the old marks. So the epoch changes, and each of them pushes anew; the mark of a
-- node that has seen no fence since the repair is answered with the repaired one. What is open or
-- in doubt above its mark is not any more: it is asked for anew when it is due. Runs stay what they
-- are: a message that is out cannot be called back.

local refused = disorder() or foreign(KEYS[13], 'stream') or foreign(settled, 'zset')
if refused then return refused end
if meta[4] or meta[1] ~= identity or #lost_keys() > 0 then return answer('RECOVERING') end

local fresh, who, why = ARGV[5], ARGV[6], ARGV[7]
local fence, set, told = int(next_fence()), {}, {}
redis.call('HSET', marks, 'fence', fence, 'epoch', fresh)
for i = 8, #ARGV, 2 do
  local entry, mark = ARGV[i], tonumber(ARGV[i + 1]) or now
  local before = redis.call('HGET', marks, 'e:' .. entry) or ''
  local record = read_record(entry)
  if not record or record.unreadable then
    record = {since = mark, fence = 0, runs = 0, fingerprint = ''}
  end
  record.mark, record.since = mark, math.min(record.since, mark)
  write_record(entry, record)
  redis.call('HSET', marks, 'x:' .. entry, fence)
  redis.call('XADD', KEYS[13], 'MAXLEN', '~', 1000, '*', 'at', int(now), 'who', who, 'entry', entry,
             'from', before, 'to', int(mark), 'why', why)
  set[entry] = mark
  told[#told + 1] = {before, int(mark)}
end
local function free(member)
  local tick, entry = string.match(member, '^(%d+):(.*)$')
  if tick and set[entry] and tonumber(tick) > set[entry] then
    redis.call('ZREM', open, member)
    redis.call('ZREM', settled, member)
    redis.call('HDEL', grants, member)
  end
end
for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf')) do free(member) end
local held = redis.call('HGETALL', grants)
for i = 1, #held, 2 do
  if string.match(held[i + 1], '^done %d+ ' .. IN_DOUBT .. '$') then free(held[i]) end
end
return answer('OK', told)
