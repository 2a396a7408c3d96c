-- recover: push what a node remembers, after a loss of data or at its own start.
--
-- ARGV  4 a fresh random epoch   5 hold-down, µs   6 how long a heartbeat counts as alive, µs
--       7 lease, µs   8 how long a settled grant is kept, µs   9 last (1: the push is complete)
--       10.. rows, in any order but MARK first:
--         MARK     entry, mark, since, closed, sure, fingerprint ("" where it is not known)
--         SETTLED  entry, tick, fence, outcome, n, then n times: reason, number passed over
--         HELD     entry, tick, fence, attempt, previous, deadline, waited
--         PAUSED   entry, revision, note
--         DOUBT    entry, mark, n, then n ticks
-- Answer  OK, then the epoch; how long to wait, µs (0: no recovery is running, or it is over but
--         for the doubts); the entries whose marks were refused, being more than an hour ahead of
--         this server's clock; {entry, mark} for those that an operator repaired; the keys that
--         had been lost; {entry, floor, mark} in doubt; {entry, tick} counted as in doubt
--
-- A recovery is of one identity: another identity starts anew, a second node's discovery does
-- not restart it. It ends when every node with a live heartbeat has pushed, at the latest after
-- the hold-down. Without heartbeats (FLUSHALL, first start) it takes the full hold-down: a first
-- start cannot be told from a flush. The answers do not depend on the order of the pushes:
--
-- MARK     Marks, since and fence rise to the maximum. closed: all ticks up to it are settled;
--          sure: the same, and this server would have their messages if it had them ever.
--          From a node that saw nothing since an operator's repair, it is told the repaired mark.
-- SETTLED  A tick that anyone knows settled, or tried, is closed, whatever this copy says.
-- HELD     A grant never tried is reopened under its own fence, unless the tick was closed, or
--          granted again. Only while a recovery runs: later, others may have settled it.
-- PAUSED   A pause is restored, unless a later pause or resume is known.
-- DOUBT    Ticks that are neither open nor known settled are closed as in doubt, and counted.
--
-- When all is heard, what is open and was vouched closed is closed. In doubt is then what lies
-- above the mark that this copy had, and above what is sure, of the last hour; and what those
-- open ticks had passed over.

local HOUR = 3600000000
local MOST_DOUBTS = 500

local refused = disorder() or foreign(heard, 'hash') or foreign(nodes, 'zset') or cannot_close()
if refused then return refused end

local fresh, hold_down, alive, lease = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local keep, is_last = tonumber(ARGV[8]), ARGV[9] == '1'
local recovering, lost = meta[4], lost_keys()

-- Where only the key of the open ticks was lost, the grants still tell which they were.
local function rebuild_open()
  local all = redis.call('HGETALL', grants)
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 1, 5) == 'open ' then
      redis.call('ZADD', open, 'NX', int(now + lease), all[i])
    end
  end
end

if #lost > 0 or (recovering ~= identity
    and (recovering or meta[1] ~= identity or seen > last_fence)) then
  if not keepers.open then rebuild_open() end
  redis.call('ZADD', open, '+inf', KEEPER)
  redis.call('HSET', grants, KEEPER, '1')
  redis.call('HSET', paused, KEEPER, '1')
  redis.call('DEL', heard)
  redis.call('HSET', marks, 'format', FORMAT, 'recovering', identity, 'epoch', fresh,
             'hold_down', int(now + hold_down))
  recovering, meta[2] = identity, fresh
end

if seen > last_fence then
  last_fence = seen
  redis.call('HSET', marks, 'fence', int(last_fence))
end

local too_far, repaired, in_doubt = {}, {}, {}

local function vouched_for(entry)
  local row = redis.call('HGET', heard, 'e:' .. entry)
  if not row then return nil end
  local closed, floor, mark = string.match(row, '^(%d+) (%d+) (%d+)$')
  return {closed = tonumber(closed), floor = tonumber(floor), mark = tonumber(mark)}
end

local function vouch(entry, known)
  redis.call('HSET', heard, 'e:' .. entry,
             table.concat({int(known.closed), int(known.floor), int(known.mark)}, ' '))
end

local function raise_mark(entry, mark, since, fingerprint)
  local record = read_record(entry) or {mark = 0, since = 0, fence = 0, runs = 0, fingerprint = ''}
  if record.unreadable then return nil end
  local before = record.mark
  record.mark, record.since = math.max(record.mark, mark), math.max(record.since, since)
  if record.fingerprint == '' then record.fingerprint = fingerprint end
  write_record(entry, record)
  return before, record
end

local spans
local function open_spans()
  if spans then return spans end
  spans = {}
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf')) do
    local tick, entry = string.match(member, '^(%d+):(.*)$')
    local grant = entry and read_grant(member)
    if grant and grant.open then
      spans[entry] = spans[entry] or {}
      table.insert(spans[entry], {grant.previous, tonumber(tick)})
    end
  end
  return spans
end

-- Each takes the row that begins at i, and returns where the next one does.
local rows = {}

function rows.MARK(i)
  local entry, mark, since, closed, sure, fingerprint = unpack(ARGV, i, i + 5)
  mark = tonumber(mark)
  local repair = tonumber(redis.call('HGET', marks, 'x:' .. entry) or '')
  local record = repair and seen < repair and read_record(entry)
  if record and record.mark then
    repaired[#repaired + 1] = {entry, int(record.mark)}
  elseif mark > now + HOUR then
    too_far[#too_far + 1] = entry
  else
    local before, raised = raise_mark(entry, mark, tonumber(since), fingerprint)
    if before then
      local known = vouched_for(entry) or {closed = 0, floor = before}
      vouch(entry, {closed = math.max(known.closed, tonumber(closed)), mark = raised.mark,
                    floor = math.max(known.floor, tonumber(sure), raised.since)})
    end
  end
  return i + 6
end

function rows.SETTLED(i)
  local entry, tick, fence, outcome = unpack(ARGV, i, i + 3)
  local member, last = tick .. ':' .. entry, i + 4 + 2 * tonumber(ARGV[i + 4])
  local grant = read_grant(member)
  if not grant or grant.open then
    -- What it passed over lies above the mark of a copy that never saw the grant: in doubt.
    local passed = {}
    for k = i + 5, grant and last or 0 do passed[#passed + 1] = ARGV[k] end
    close(entry, member, tonumber(fence), outcome, passed, keep)
  end
  return last + 1
end

function rows.HELD(i)
  local entry, tick, fence, attempt, previous, deadline, waited = unpack(ARGV, i, i + 6)
  local member, grant = tick .. ':' .. entry, read_grant(tick .. ':' .. entry)
  fence = tonumber(fence)
  if recovering and (not grant or (grant.open and grant.fence < fence)) then
    write_grant(member, {owner = node, fence = fence, attempt = tonumber(attempt),
                         previous = tonumber(previous), waited = waited})
    redis.call('ZADD', open, int(math.min(tonumber(deadline), now + lease)), member)
    raise_mark(entry, tonumber(tick), 0, '')
  end
  return i + 7
end

function rows.PAUSED(i)
  local entry, revision, note = unpack(ARGV, i, i + 2)
  local known = string.match(redis.call('HGET', paused, entry) or '', '^%d+')
  local resumed = redis.call('HGET', marks, 'r:' .. entry)
  if tonumber(revision) > math.max(tonumber(known) or 0, tonumber(resumed) or 0) then
    redis.call('HSET', paused, entry, revision .. ' ' .. note)
  end
  return i + 3
end

-- What an open tick passed over is counted when it is closed, and not in doubt.
local function is_passed_over(entry, tick)
  for _, span in ipairs(open_spans()[entry] or {}) do
    if span[1] < tick and tick < span[2] then return true end
  end
end

function rows.DOUBT(i)
  local entry, mark, last = ARGV[i], tonumber(ARGV[i + 1]), i + 2 + tonumber(ARGV[i + 2])
  local known = vouched_for(entry)
  for k = i + 3, known and last or 0 do
    local member = ARGV[k] .. ':' .. entry
    if not read_grant(member) and not redis.call('ZSCORE', open, member)
        and not is_passed_over(entry, tonumber(ARGV[k])) then
      close(entry, member, 0, IN_DOUBT, {}, keep)
      in_doubt[#in_doubt + 1] = {entry, ARGV[k]}
    end
  end
  if known then
    vouch(entry, {closed = known.closed, floor = math.max(known.floor, mark), mark = known.mark})
  end
  return last + 1
end

local function told(wait, doubts)
  return answer('OK', meta[2], int(wait), too_far, repaired, lost, doubts or {}, in_doubt)
end

local row = 10
while row <= #ARGV do row = rows[ARGV[row]](row + 1) end

if recovering then
  if is_last then redis.call('HSET', heard, 'n:' .. node, '1') end
  -- No longer than the hold-down from now: the clock may have been set back.
  local noted = tonumber(redis.call('HGET', marks, 'hold_down') or '') or 0
  local ends = math.min(noted, now + hold_down)
  redis.call('HSET', marks, 'hold_down', int(ends))
  local living = redis.call('ZRANGEBYSCORE', nodes, int(now - alive), '+inf')
  local all_heard = #living > 0
  for _, other in ipairs(living) do
    if redis.call('HEXISTS', heard, 'n:' .. other) == 0 then all_heard = false end
  end
  if now < ends and not all_heard then return told(ends - now) end
end
if not is_last then return told(0) end

local doubts, vouched = {}, redis.call('HGETALL', heard)
for i = 1, #vouched, 2 do
  local entry = string.match(vouched[i], '^e:(.*)$')
  local floor, mark = string.match(vouched[i + 1], '^%d+ (%d+) (%d+)$')
  if entry and #doubts < MOST_DOUBTS then
    floor = math.max(tonumber(floor), now - HOUR)
    if floor < tonumber(mark) then doubts[#doubts + 1] = {entry, int(floor), mark} end
  end
end
if #vouched > 0 then
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf')) do
    local tick, entry = string.match(member, '^(%d+):(.*)$')
    local known = entry and vouched_for(entry)
    if known and tonumber(tick) <= known.closed then
      local grant = read_grant(member)
      close(entry, member, grant and grant.fence or 0, IN_DOUBT, {}, keep)
      in_doubt[#in_doubt + 1] = {entry, tick}
      -- Nobody told what it passed over, and this copy's mark lies behind that.
      if grant and grant.open then doubts[#doubts + 1] = {entry, int(grant.previous), tick} end
    end
  end
end
if #doubts > 0 then return told(0, doubts) end
redis.call('DEL', heard)
redis.call('HSET', marks, 'identity', identity)
redis.call('HDEL', marks, 'recovering', 'hold_down')
return told(0)
