-- registration: an entry becomes known, or known anew. Shared by register, store and seed.
--
-- Unknown entry         mark = since = now: nothing of the past is sent. One that was stored within
--                       the last minute, and whose record a copy lacks, is known from then on
-- once                  the same, but mark = 0: an entry of one instant that has passed is claimed
--                       like any that is due, and skipped as before registration; so it is told
-- run_on_start          a tick "now" is opened, unowned, its lease over, for whoever comes next;
--                       once per entry ever registered, since only an unknown entry gets it. It is
--                       a run. Where all data was lost with all who remembered the entry, it has
--                       never been registered
-- Seed                  Another scheduler sent it up to an instant, and nothing later:
--                       mark = since = that, no later than now. Where it is known already, so it
--                       becomes as long as nothing was claimed of it and no node lives, which might
--                       have counted on; else, if the other one has sent again, its mark rises.
--                       It never falls below another seed
-- takes_phase           An interval that says no phase, "interval:<period>+0", goes on with that of
--                       its seed, "interval:<period>~<phase>", until its period is another one

-- No later than now: one that is ahead was heard before the clock was set back.
local function last_heartbeat()
  return math.min(now, tonumber(redis.call('ZREVRANGE', nodes, 0, 0, 'WITHSCORES')[2] or '0'))
end

-- One that told in beats that it has left does not.
local function node_lives(beats)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', nodes, int(now - 30000000), '+inf')) do
    local told = redis.pcall('HGET', beats, id)
    if type(told) ~= 'string' or not string.find(told, '"left":%s*true') then return true end
  end
end

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

-- What the fingerprint of an entry becomes that goes on with the phase of its seed.
local function going_on(fingerprint, phase)
  return (string.gsub(fingerprint, '(interval:%d+)%+0', '%1~' .. phase, 1))
end

local function with_phase_of(record, fingerprint)
  local period, phase = string.match(record.fingerprint, 'interval:(%d+)~(%d+)')
  if period and string.find(fingerprint, 'interval:' .. period .. '+0', 1, true) then
    return going_on(fingerprint, phase)
  end
  return fingerprint
end

local function was_never_claimed(entry, record)
  return record.fence == 0 and record.runs == 0 and record.mark == record.since
    and redis.call('HEXISTS', marks, 'x:' .. entry) == 0
end

local function is_newer_seed(entry, at)
  return at > (tonumber(redis.call('HGET', marks, 'z:' .. entry) or '') or 0)
end

-- What is open up to an instant the other scheduler has sent, or passed over: it is to be skipped.
local function skip_open(entry, upto)
  local ticks = {redis.call('HGET', marks, 's:' .. entry) or ' '}
  for _, member in ipairs(open_of(entry)) do
    local tick = string.match(member, '^%d+')
    if tonumber(tick) <= upto then ticks[#ticks + 1] = tick .. ' ' end
  end
  if #ticks > 1 then redis.call('HSET', marks, 's:' .. entry, table.concat(ticks)) end
end

-- How an entry would come to begin at a seed, or nil if it stays as it is.
local function way_to_seed(entry, record, at, again, beats)
  if not record then return 'NEW' end
  if record.unreadable then return nil end
  local is_untouched = was_never_claimed(entry, record) and is_newer_seed(entry, at)
  if is_untouched and not node_lives(beats) then return 'UNTOUCHED' end
  return again == '1' and at > record.mark and 'AGAIN' or nil
end

-- Let an entry begin where another scheduler stopped; whether it does so from now on.
local function begin_at_seed(entry, record, fingerprint, at, phase, again, beats)
  at = math.min(now, tonumber(at))
  local way = way_to_seed(entry, record, at, again, beats)
  if not way then return false end
  if phase ~= '' then fingerprint = going_on(fingerprint, phase) end
  if way == 'NEW' then
    make_known(entry, fingerprint, '0', '0', at)
  elseif way == 'UNTOUCHED' then
    record.mark, record.since, record.fingerprint = at, at, fingerprint
    write_record(entry, record)
  else
    skip_open(entry, at)
    record.mark = at
    make_known_anew(entry, record, fingerprint, at)
  end
  redis.call('HSET', marks, 'z:' .. entry, int(at))
  return true
end
