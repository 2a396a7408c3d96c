-- store: add entries to those that are kept in Redis, or change them.
--
-- KEYS  13 gone   14 present   zset   entry → when a node that has it last said so, µs
-- ARGV  5 how long a settled grant is kept, µs
--       6.. per entry: entry, its document, the revision that it must have ("0": it must be new),
--       fingerprint, 0|1 each: run_on_start, once; what to note of it; takes_phase and its seed, as
--       in register; its remainder
-- Answer  OK, then {answer, revision} per entry
--   DONE     stored under that revision
--   CHANGED  it has that revision (0: it is not there), or its remainder is another one: nothing
--            was done
--
-- An entry is registered with its storing, so that it is sent from its first tick on, whenever
-- nodes hear of it. A changed timetable catches up nothing: its remainder is counted as before
-- registration.

local gone, present, keep = KEYS[13], KEYS[14], tonumber(ARGV[5])
local refused = refusal_of_operator() or foreign_feed(gone) or foreign(present, 'zset')
  or cannot_close()
if refused then return refused end

local function register(entry, fingerprint, run_on_start, once, is_new, remainder, takes_phase,
                        seed_at, phase)
  local record = read_record(entry)
  if takes_phase == '1' and record and not record.unreadable and not is_new then
    fingerprint = with_phase_of(record, fingerprint)
  end
  if not record and seed_at ~= '' then
    begin_at_seed(entry, nil, fingerprint, seed_at, phase, '0')
  elseif not record then
    make_known(entry, fingerprint, run_on_start, once, now)
  elseif not record.unreadable and (is_new or record.fingerprint ~= fingerprint) then
    if is_new then record.runs = 0 end  -- what an old copy knows of a removed one of its name
    if remainder then finish(entry, record, remainder, 'skipped:before_registration', keep) end
    make_known_anew(entry, record, fingerprint, now)
  end
  redis.call('ZADD', present, int(now), entry)
end

local answers = {}
local i = 6
while i <= #ARGV do
  local entry, document, expected, fingerprint, run_on_start, once, detail, takes_phase, seed_at, phase =
    unpack(ARGV, i, i + 9)
  local remainder
  remainder, i = read_remainder(i + 11)
  local stored = redis.call('ZSCORE', changes, 'e:' .. entry) or '0'
  if tonumber(stored) ~= tonumber(expected)
      or (remainder and not holds(entry, read_record(entry), remainder)) then
    answers[#answers + 1] = {'CHANGED', int(tonumber(stored))}
  else
    -- First, since the revision is noted with the last fence, and its remainder takes some.
    register(entry, fingerprint, run_on_start, once, expected == '0', remainder, takes_phase, seed_at,
             phase)
    local revision = next_revision()
    put(gone, 'e', entry, revision, int(revision) .. ' ' .. document)
    note_deed(entry, expected == '0' and 'added' or 'changed', detail, remainder)
    answers[#answers + 1] = {'DONE', int(revision)}
  end
end
return answer('OK', answers)
