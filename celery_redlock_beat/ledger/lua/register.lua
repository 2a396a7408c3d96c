-- register: make entries known, and answer what the ledger holds of them.
--
-- KEYS  9 present   zset   entry → when a node that has it last said so, µs
-- ARGV  4 how long an entry may be missing while nodes live, µs
--       5.. per entry: entry, fingerprint, and 0|1 each: again, run_on_start, once
-- Answer  OK, then one text per entry: "mark since fence runs fingerprint", "" if unreadable
--
-- Unknown entry         mark = since = now: nothing of the past is sent
-- once                  the same, but mark = 0: an entry of one instant that has passed is claimed
--                       like any that is due, and skipped as before registration; so it is told
-- Other fingerprint     since = now, the mark stays: a changed timetable catches up nothing
-- again                 the same, for an entry that was removed or disabled meanwhile
-- missing               the same: nodes lived, and none of them had it (a deploy brings it back);
--                       while no node lives, nothing goes missing
-- run_on_start          a tick "now" is opened, unowned, its lease over, for whoever comes next;
--                       once per entry ever registered, since only an unknown entry gets it. It is
--                       a run. Where all data was lost with all who remembered the entry, it has
--                       never been registered

local present, may_miss = KEYS[9], tonumber(ARGV[4])
local refused = refusal() or foreign(present, 'zset') or foreign(nodes, 'zset')
if refused then return refused end

-- No later than now: one that is ahead was heard before the clock was set back.
local beat = math.min(now, tonumber(redis.call('ZREVRANGE', nodes, 0, 0, 'WITHSCORES')[2] or '0'))

local function was_missing(entry)
  local seen = tonumber(redis.call('ZSCORE', present, entry) or '')
  return seen and beat - seen > may_miss
end

local function open_now(entry, record)
  local member = int(now) .. ':' .. entry
  write_grant(member, {owner = '-', fence = next_fence(), attempt = 0, previous = record.mark,
                       waited = '0'})
  redis.call('ZADD', open, int(now), member)
  redis.call('HSET', marks, 'fence', int(last_fence))
  record.mark, record.runs = now, 1
end

local records = {}
for i = 5, #ARGV, 5 do
  local entry, fingerprint, again, run_on_start, once = unpack(ARGV, i, i + 4)
  local record = read_record(entry)
  if not record then
    record = {mark = once == '1' and 0 or now, since = now, fence = 0, runs = 0,
              fingerprint = fingerprint}
    if run_on_start == '1' then open_now(entry, record) end
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
