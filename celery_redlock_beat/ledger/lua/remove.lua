-- remove: take entries from those that are kept in Redis. When it has answered, nothing of them is
-- enqueued any more: whoever holds a grant has the wrong fence.
--
-- KEYS  13 gone   14 present
-- ARGV  5 how long a settled grant is kept, µs
--       6.. per entry: entry, the revision that it must have, what to note of it, 0|1: the code has
--       an entry of its name; its remainder, with all of its open ticks
-- Answer  OK, then {answer, revision} per entry
--   DONE     removed at that revision; with its pause and its record, unless they are the code's
--   CHANGED  it has that revision (0: it is not there, or by hand), or its remainder is another one:
--            nothing was done

local gone, present, keep = KEYS[13], KEYS[14], tonumber(ARGV[5])
local refused = refusal_of_operator() or foreign_feed(gone) or foreign(present, 'zset')
  or cannot_close()
if refused then return refused end

local function is_all_that_is_open(entry, remainder)
  return #open_of(entry) == (remainder and #remainder.closing or 0)
end

-- Nobody may ask for it any more: what it was asked for is of no use. A mark that is ahead of the
-- clock stays, so that no tick up to it comes back with another entry of this name.
local function forget(entry, record)
  if record and not record.unreadable and record.mark <= now then
    redis.call('HDEL', marks, 'e:' .. entry, 's:' .. entry, 'x:' .. entry, 'z:' .. entry)
  elseif record and not record.unreadable then
    write_record(entry, record)
  end
  redis.call('ZREM', present, entry)
end

local answers = {}
local i = 6
while i <= #ARGV do
  local entry, expected, detail, is_hidden = unpack(ARGV, i, i + 3)
  local remainder
  remainder, i = read_remainder(i + 4)
  local stored = redis.call('ZSCORE', changes, 'e:' .. entry) or '0'
  local record = read_record(entry)
  local is_there = stored ~= '0' or redis.call('HEXISTS', entries, entry) == 1
  if not is_there or tonumber(stored) ~= tonumber(expected)
      or (remainder and not holds(entry, record, remainder))
      or (is_hidden == '0' and not is_all_that_is_open(entry, remainder)) then
    answers[#answers + 1] = {'CHANGED', int(tonumber(stored))}
  else
    if remainder then finish(entry, record, remainder, 'skipped:removed', keep) end
    -- Each at a revision of its own: where a list is cut off, the next one begins after the last.
    if is_hidden == '0' and redis.call('HEXISTS', paused, entry) == 1 then
      drop(gone, 'p', entry, next_revision())
    end
    local revision = next_revision()
    drop(gone, 'e', entry, revision)
    note_deed(entry, 'removed', detail, remainder)
    if is_hidden == '0' then
      forget(entry, record)
      redis.pcall('HDEL', latest, entry)
    end
    answers[#answers + 1] = {'DONE', int(revision)}
  end
end
return answer('OK', answers)
