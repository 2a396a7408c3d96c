-- register: make entries known, and answer what the ledger holds of them.
--
-- ARGV  4.. per entry: entry, fingerprint, again (0|1), run_on_start (0|1)
-- Answer  OK, then one text per entry: "mark since fence runs fingerprint"
--
-- Unknown entry         mark = since = now: nothing of the past is sent
-- Other fingerprint     since = now, the mark stays: a changed timetable catches up nothing
-- again                 the same, for an entry that was removed or disabled meanwhile
-- run_on_start          a tick "now" is opened, unowned, its lease over, for whoever comes next;
--                       once per entry ever registered, since only an unknown entry gets it

if must_recover() then return answer('RECOVERING') end

local records = {}
for i = 4, #ARGV, 4 do
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
  elseif again == '1' or (record.fingerprint ~= fingerprint and record.fingerprint ~= '') then
    record.since, record.fingerprint = math.max(record.since, now), fingerprint
    write_record(entry, record)
  elseif record.fingerprint == '' then
    -- A mark that was pushed by a node without this entry: its timetable is not known to differ.
    record.fingerprint = fingerprint
    write_record(entry, record)
  end
  records[#records + 1] = redis.call('HGET', marks, 'e:' .. entry)
end
return answer('OK', records)
