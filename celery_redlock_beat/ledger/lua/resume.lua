-- resume: end pauses; the only verb that does, also for those whose time is over.
--
-- KEYS  13 gone
-- ARGV  5 how long a settled grant is kept, µs
--       6.. per entry: entry, the revision of its pause, what to note of it, its remainder ("" where
--       what it holds is to be caught up, or cannot be read)
-- Answer  OK, then {answer, revision} per entry
--   DONE     resumed at that revision
--   CHANGED  its pause has that revision (0: it is not paused, or by hand), or its remainder is another one:
--            nothing was done
--
-- With its remainder, the mark rises, and the ticks between are skipped as paused: what a resumed
-- entry catches up begins with its end. Open ticks with a living lease stay open: whoever holds
-- them may be sending.

local gone, keep = KEYS[13], tonumber(ARGV[5])
local refused = refusal_of_operator() or foreign_feed(gone) or cannot_close()
if refused then return refused end

local function leaves_what_is_held(entry, remainder)
  for _, each in ipairs(remainder.closing) do
    local ends = redis.call('ZSCORE', open, each.tick .. ':' .. entry)
    if not ends or tonumber(ends) > now then return false end
  end
  return true
end

local answers = {}
local i = 6
while i <= #ARGV do
  local entry, expected, detail = unpack(ARGV, i, i + 2)
  local remainder
  remainder, i = read_remainder(i + 3)
  local stored = redis.call('ZSCORE', changes, 'p:' .. entry) or '0'
  local record = read_record(entry)
  local is_there = stored ~= '0' or redis.call('HEXISTS', paused, entry) == 1
  if not is_there or tonumber(stored) ~= tonumber(expected)
      or (remainder and not (holds(entry, record, remainder)
                             and leaves_what_is_held(entry, remainder))) then
    answers[#answers + 1] = {'CHANGED', int(tonumber(stored))}
  else
    if remainder then
      finish(entry, record, remainder, 'skipped:paused', keep)
      record.since = math.max(record.since, remainder.upto)
      write_record(entry, record)
    end
    local revision = next_revision()
    drop(gone, 'p', entry, revision)
    note_deed(entry, 'resumed', detail, remainder)
    answers[#answers + 1] = {'DONE', int(revision)}
  end
end
return answer('OK', answers)
