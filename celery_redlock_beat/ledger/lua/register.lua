-- register: make entries known, and answer what the ledger holds of them.
--
-- KEYS  13 present   zset   entry → when a node that has it last said so, µs
--       14 beats
-- ARGV  5 how long an entry may be missing while nodes live, µs
--       6.. per entry: entry, fingerprint, 0|1 each: again, run_on_start, once; the revision under
--       which it is stored ("" for none); 0|1: takes_phase; of its seed the instant, µs, the phase,
--       µs ("" for none), and 0|1: again
-- Answer  OK, then one text per entry: "mark since fence runs fingerprint", "" if unreadable,
--         "CHANGED" if it is stored under another revision, and nothing was done
--
-- Unknown entry         as told in registration
-- Other fingerprint     since = now, the mark stays: a changed timetable catches up nothing
-- again                 the same, for an entry that was removed or disabled meanwhile
-- missing               the same: nodes lived, and none of them had it (a deploy brings it back);
--                       while no node lives, nothing goes missing; nor does what is stored, which
--                       is there until it is removed

local present, may_miss = KEYS[13], tonumber(ARGV[5])
local refused = refusal() or foreign(present, 'zset') or foreign(nodes, 'zset')
if refused then return refused end

local heartbeat = last_heartbeat()

local function was_missing(entry)
  local seen = tonumber(redis.call('ZSCORE', present, entry) or '')
  return seen and heartbeat - seen > may_miss
end

local function register(entry, fingerprint, again, run_on_start, once, revision, takes_phase,
                        seed_at, seed_phase, seed_again)
  if revision ~= '' and not is_stored_as(entry, tonumber(revision)) then return 'CHANGED' end
  local record = read_record(entry)
  local begins = seed_at ~= ''
    and begin_at_seed(entry, record, fingerprint, seed_at, seed_phase, seed_again, KEYS[14])
  if takes_phase == '1' and record and not record.unreadable then
    fingerprint = with_phase_of(record, fingerprint)
  end
  if begins then
    -- Where the other scheduler stopped.
  elseif not record then
    make_known(entry, fingerprint, run_on_start, once, known_from(revision))
  elseif record.unreadable then
    -- It stays as it is: the claim says so.
  elseif again == '1' or (revision == '' and was_missing(entry))
      or (record.fingerprint ~= fingerprint and record.fingerprint ~= '') then
    make_known_anew(entry, record, fingerprint, known_from(revision))
  elseif record.fingerprint == '' then
    -- A mark that was pushed by a node without this entry: its timetable is not known to differ.
    record.fingerprint = fingerprint
    write_record(entry, record)
  end
  redis.call('ZADD', present, int(now), entry)
  return record and record.unreadable and '' or redis.call('HGET', marks, 'e:' .. entry)
end

local records = {}
for i = 6, #ARGV, 10 do records[#records + 1] = register(unpack(ARGV, i, i + 9)) end
return answer('OK', records)
