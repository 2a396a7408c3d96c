-- register: make entries known, and answer what the ledger holds of them.
--
-- KEYS  9 present   zset   entry → when a node that has it last said so, µs
-- ARGV  4 how long an entry may be missing while nodes live, µs
--       5.. per entry: entry, fingerprint, again (0|1), run_on_start (0|1)
-- Answer  OK, then one text per entry: "mark since fence runs fingerprint", "" if unreadable
--
-- Unknown entry         mark = since = now: nothing of the past is sent
-- Other fingerprint     since = now, the mark stays: a changed timetable catches up nothing
-- again                 the same, for an entry that was removed or disabled meanwhile
-- missing               the same: nodes lived, and none of them had it (a deploy brings it back);
--                       while no node lives, nothing goes missing
-- run_on_start          a tick "now" is opened, unowned, its lease over, for whoever comes next;
--                       once per entry ever registered, since only an unknown entry gets it

local present, may_miss = KEYS[9], tonumber(ARGV[4])
local refused = refusal() or foreign(present, 'zset') or foreign(nodes, 'zset')
if refused then return refused end

-- No later than now: one that is ahead was heard before the clock was set back.
local beat = math.min(now, tonumber(redis.call('ZREVRANGE', nodes, 0, 0, 'WITHSCORES')[2] or '0'))

local function was_missing(entry)
  local seen = tonumber(redis.call('ZSCORE', present, entry) or '')
  return seen and beat - seen > may_miss
end

local records = {}
for i = 5, #ARGV, 4 do
  local entry, fingerprint, again, run_on_start = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local record = read_record(entry)
  if not record then
    record = {mark = now, since = now, fence = 0, runs = 0, fingerprint = fingerprint}
    if run_on_start == '1' then
      local member = int(now) .. ':' .. entry
      write_grant(member, {owner = '-', fence = next_fence(), attempt = 0, previous = now,
                           waited = '0'})
      redis.call('ZADD', open, int(now), member)
      redis.call('HSET', marks, 'fence', int(last_fence))
    end
    write_record(entry, record)
  elseif record.unreadable then
    -- It stays as it is: the claim says so.
  elseif again == '1' or was_missing(entry)
      or (record.fingerprint ~= fingerprint and record.fingerprint ~= '') then
    record.since, record.fingerprint = math.max(record.since, now), fingerprint
    write_record(entry, record)
  elseif record.fingerprint == '' then
    -- A mark that was pushed by a node without this entry: its timetable is not known to differ.
    record.fingerprint = fingerprint
    write_record(entry, record)
  end
  redis.call('ZADD', present, int(now), entry)
  records[#records + 1] = record.unreadable and '' or redis.call('HGET', marks, 'e:' .. entry)
end
return answer('OK', records)
