-- registration: an entry becomes known, or known anew. Shared by register and store.
--
-- Unknown entry         mark = since = now: nothing of the past is sent. One that was stored within
--                       the last minute, and whose record a copy lacks, is known from then on
-- once                  the same, but mark = 0: an entry of one instant that has passed is claimed
--                       like any that is due, and skipped as before registration; so it is told
-- run_on_start          a tick "now" is opened, unowned, its lease over, for whoever comes next;
--                       once per entry ever registered, since only an unknown entry gets it. It is
--                       a run. Where all data was lost with all who remembered the entry, it has
--                       never been registered

local function open_now(entry, record)
  local member = int(now) .. ':' .. entry
  write_grant(member, {owner = '-', fence = next_fence(), attempt = 0, previous = record.mark,
                       waited = '0'})
  redis.call('ZADD', open, int(now), member)
  redis.call('HSET', marks, 'fence', int(last_fence))
  record.mark, record.runs = now, 1
end

-- From when on an entry counts that is stored under a revision, which is an instant, or that is not
-- stored: a copy may lack its record, or have its timetable of before, if that is not long ago. Of
-- one that was stored longer ago nobody knows what was sent since.
local function known_from(revision)
  local stored = tonumber(revision)
  return stored and now - stored <= 60000000 and math.min(now, stored) or now
end

local function make_known(entry, fingerprint, run_on_start, once, from)
  local record = {mark = once == '1' and 0 or from, since = from, fence = 0, runs = 0,
                  fingerprint = fingerprint}
  if run_on_start == '1' then open_now(entry, record) end
  write_record(entry, record)
end

-- A changed timetable catches up nothing from before it was changed; the mark stays.
local function make_known_anew(entry, record, fingerprint, from)
  record.since, record.fingerprint = math.max(record.since, from), fingerprint
  write_record(entry, record)
end
