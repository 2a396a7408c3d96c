-- repair: set an entry's mark, also downwards, on behalf of an operator; the only verb that may.
--
-- KEYS  9 audit  stream  what was repaired, by whom and why; capped
-- ARGV  4 a fresh random epoch   5 entry   6 mark   7 who   8 why
-- Answer  OK, then the text of the record before ("" for none)
--
-- Nodes remember the old mark. So the epoch changes, and each of them pushes anew; the mark of a
-- node that has seen no fence since the repair is answered with the repaired one.

local refused = disorder() or foreign(KEYS[9], 'stream')
if refused then return refused end
if meta[4] or meta[1] ~= identity or #lost_keys() > 0 then return answer('RECOVERING') end

local fresh, entry, mark, who, why = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local before = redis.call('HGET', marks, 'e:' .. entry) or ''
local record = read_record(entry)
if not record or record.unreadable then
  record = {since = mark, fence = 0, runs = 0, fingerprint = ''}
end
record.mark, record.since = mark, math.min(record.since, mark)

local fence = int(next_fence())
redis.call('HSET', marks, 'fence', fence, 'x:' .. entry, fence, 'epoch', fresh)
write_record(entry, record)
redis.call('XADD', KEYS[9], 'MAXLEN', '~', 1000, '*', 'at', int(now), 'who', who, 'entry', entry,
           'from', before, 'to', int(mark), 'why', why)
return answer('OK', before)
