-- recover: push what a node remembers, after a loss of data or at its own start.
--
-- KEYS  13 gone
-- ARGV  5 a fresh random epoch   6 hold-down, µs   7 lease, µs   8 how long a settled grant is
--       kept, µs   9 last (1: the push is complete)   10.. rows, in any order but MARK first:
--         MARK     entry, mark, since, closed, sure, fingerprint ("" where it is not known), open:
--                  ticks up to "closed" that are not, separated by commas; runs
--         SETTLED  entry, tick, fence, previous, outcome, n, then n times: reason, number passed over
--         HELD     entry, tick, fence, attempt, previous, deadline, waited
--         FEED     e | p, name, revision, text, 0|1: it is gone
--         DOUBT    entry, mark, n, then n ticks
-- Answer  OK, then the epoch; how long to wait, µs (0: no recovery is running, or it is over but
--         for the doubts); the entries whose marks were refused, being more than an hour ahead of
--         this server's clock; {entry, mark} for those that an operator repaired; the keys that
--         had been lost; {entry, floor, mark} in doubt; {entry, tick} counted as in doubt;
--         {entry, tick} for those held grants that are not in force here; the revision up to which
--         this copy has the feed; and since when the ledger is one that began empty, with nobody
--         who remembered anything, µs (0: it is not)
--
-- A recovery is of one identity: another identity starts anew, a second node's discovery does
-- not restart it. It takes the whole hold-down, by which every node that is awake has noticed: that
-- all known nodes were heard proves nothing, since a copy may lack the last one that joined. A
-- first start cannot be told from a flush. The answers do not depend on the order of the pushes:
--
-- MARK     Marks, since and fence rise to the maximum. closed: all ticks up to it are settled, but
--          the open ones; sure: all up to it are, and their messages are not lost with this data.
--          runs: as they were told with the mark; a mark that this copy lacks brings its runs along,
--          the most that anyone was told. Whatever is closed here is among them, and stays a run.
--          A node that saw nothing since an operator's repair is told the repaired mark instead.
-- SETTLED  A tick that anyone knows settled, or tried, is closed, whatever this copy says, and
--          counted unless this copy had closed it, by its own mark.
-- HELD     A grant never tried is reopened under its own fence, unless the tick was closed, or
--          granted again. Only while a recovery runs: later, others may have settled it.
-- FEED     A stored entry or a pause is restored, and what is gone is gone, unless something later
--          is known of it; when nodes have been heard, they all ask for the whole feed anew. A copy lacks what came last, so a node tells what came after the revision
--          that it was answered, ascending: what fails on the way leaves a copy of the same kind.
-- DOUBT    Ticks that are neither open nor known settled are closed as in doubt, and counted.
--
-- When all is heard, what is open and was vouched closed is closed. In doubt is then what lies
-- above the mark that this copy had before the first unfinished recovery, and above what is sure,
-- of the last hour; and what those open ticks had passed over.

local HOUR = 3600000000
local MOST_DOUBTS = 500

local gone = KEYS[13]
local refused = disorder() or foreign(heard, 'hash') or cannot_close()
if refused then return refused end

local fresh, hold_down, lease, keep = ARGV[5], tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local is_last = ARGV[9] == '1'
local recovering, lost = meta[4], lost_keys()
-- It must not keep what comes from code from being sent.
local has_feed = not foreign_feed(gone)

-- Where only the key of the open ticks was lost, the grants still tell which they were.
local function rebuild_open()
  local all = redis.call('HGETALL', grants)
  for i = 1, #all, 2 do
    if string.sub(all[i + 1], 1, 5) == 'open ' then
      redis.call('ZADD', open, 'NX', int(now + lease), all[i])
    end
  end
end

-- What the feed tells of a key that was lost is not there, and must be told again.
local function forget_feed()
  redis.call('HSET', marks, 'revision', '0', 'pruned', '0')
  if not has_feed then return end
  for _, member in ipairs(redis.call('ZRANGE', changes, 0, -1)) do
    local kind = string.sub(member, 1, 1)
    if (kind == 'e' and not keepers.entries) or (kind == 'p' and not keepers.paused) then
      redis.call('ZREM', changes, member)
    end
  end
  redis.call('HSET', entries, KEEPER, '1')
end

if #lost > 0 or (recovering ~= identity
    and (recovering or meta[1] ~= identity or seen > last_fence)) then
  if not keepers.open then rebuild_open() end
  redis.call('ZADD', open, '+inf', KEEPER)
  redis.call('HSET', grants, KEEPER, '1')
  redis.call('HSET', paused, KEEPER, '1')
  if #lost > 0 then forget_feed() end
  if #lost == 5 then redis.call('HSET', marks, 'began', int(now)) end
  -- What is in heard stays: it is true, and reckons from what this copy had the first time.
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
  local closed, floor, mark, before = string.match(row, '^(%d+) (%d+) (%d+) (%d+)$')
  return closed and {closed = tonumber(closed), floor = tonumber(floor), mark = tonumber(mark),
          before = tonumber(before)}
end

local function vouch(entry, known)
  redis.call('HSET', heard, 'e:' .. entry, table.concat(
    {int(known.closed), int(known.floor), int(known.mark), int(known.before)}, ' '))
end

-- Whether a node vouched that this tick is settled.
local function is_vouched_closed(entry, tick)
  local known = vouched_for(entry)
  if known and tonumber(tick) <= known.closed then return true end
  for closed, open_ticks in
      string.gmatch(redis.call('HGET', heard, 'x:' .. entry) or '', '(%d+)>([%d,]*)') do
    if tonumber(tick) <= tonumber(closed)
        and not string.find(',' .. open_ticks .. ',', ',' .. tick .. ',', 1, true) then
      return true
    end
  end
end

-- Whether this copy had closed a tick that it has no grant of: by its own mark.
local function was_closed_here(entry, tick)
  local known = vouched_for(entry)
  return known and tonumber(tick) <= known.before
    and not redis.call('ZSCORE', open, tick .. ':' .. entry)
end

local function raise_mark(entry, mark, since, fingerprint, runs)
  local record = read_record(entry) or {mark = 0, since = 0, fence = 0, runs = 0, fingerprint = ''}
  if record.unreadable then return nil end
  local before, known = record.mark, vouched_for(entry)
  -- A copy that has the mark has its runs, and knows what was skipped since.
  -- Unless it has lost that since.
  local had = math.min(known and known.before or before, before)
  if mark > had then record.runs = math.max(record.runs, runs) end
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
  local entry, mark, since, closed, sure, fingerprint, still_open, runs = unpack(ARGV, i, i + 7)
  mark = tonumber(mark)
  local repair = tonumber(redis.call('HGET', marks, 'x:' .. entry) or '')
  local record = repair and seen < repair and read_record(entry)
  if record and record.mark then
    repaired[#repaired + 1] = {entry, int(record.mark)}
  elseif mark > now + HOUR then
    too_far[#too_far + 1] = entry
  else
    local before, raised = raise_mark(entry, mark, tonumber(since), fingerprint, tonumber(runs))
    if before then
      local known = vouched_for(entry) or {closed = 0, floor = before, before = before}
      if still_open ~= '' then
        local said, more = redis.call('HGET', heard, 'x:' .. entry) or '', closed .. '>' .. still_open
        if not string.find(said .. ' ', more .. ' ', 1, true) then
          redis.call('HSET', heard, 'x:' .. entry, said .. ' ' .. more)
        end
        closed = '0'
      end
      vouch(entry, {closed = math.max(known.closed, tonumber(closed)), mark = raised.mark,
                    floor = math.max(known.floor, tonumber(sure), raised.since),
                    before = known.before})
    end
  end
  return i + 8
end

-- What a tick passed over that this copy's mark lies behind, and that nobody counted with it.
local function doubt_what_it_passed(member, previous)
  redis.call('HSET', heard, 'd:' .. member, int(previous))
end

function rows.SETTLED(i)
  local entry, tick, fence, previous, outcome = unpack(ARGV, i, i + 4)
  local member, last = tick .. ':' .. entry, i + 5 + 2 * tonumber(ARGV[i + 5])
  local grant, known = read_grant(member), vouched_for(entry)
  if not grant and was_closed_here(entry, tick) then return last + 1 end
  if not grant or grant.open then
    -- Above the mark of this copy, what it passed over is in doubt like all else there.
    local is_here, passed = known and tonumber(tick) <= known.before, {}
    if is_here and grant and grant.previous ~= tonumber(previous) then
      doubt_what_it_passed(member, grant.previous)
    elseif is_here then
      for k = i + 6, last do passed[#passed + 1] = ARGV[k] end
    end
    count(outcome, passed)
    close(member, tonumber(fence), outcome, keep,
      {attempt = grant and grant.attempt, previous = tonumber(previous), passed = passed})
  end
  return last + 1
end

local held = {}

function rows.HELD(i)
  local entry, tick, fence, attempt, previous, deadline, waited = unpack(ARGV, i, i + 6)
  local member, grant = tick .. ':' .. entry, read_grant(tick .. ':' .. entry)
  fence = tonumber(fence)
  local is_ours = not grant and not was_closed_here(entry, tick)
  if recovering and (is_ours or (grant and grant.open and grant.fence < fence)) then
    write_grant(member, {owner = node, fence = fence, attempt = tonumber(attempt),
                         previous = tonumber(previous), waited = waited})
    redis.call('ZADD', open, int(math.min(tonumber(deadline), now + lease)), member)
    raise_mark(entry, tonumber(tick), 0, '', 0)
  end
  held[#held + 1] = {entry, tick, fence}
  return i + 7
end

local pruned = tonumber(redis.call('HGET', marks, 'pruned') or '0') or 0

function rows.FEED(i)
  local kind, name, revision, text, is_gone = unpack(ARGV, i, i + 4)
  revision = tonumber(revision)
  -- Below the highest revision nobody would hear of it, but at the end of a recovery.
  local is_heard = recovering or revision > (tonumber(meta[6] or '') or 0)
  -- It answers to what this server said of the feed, and not another one before.
  if not (has_feed and is_heard and epoch == meta[2]) then return i + 5 end
  if revision > math.max(known_revision(gone, kind, name), pruned) then
    if is_gone == '1' then drop(gone, kind, name, revision)
    else put(gone, kind, name, revision, text) end
  end
  raise_revision(revision)
  return i + 5
end

-- How long the recovery goes on, unless it is over: no longer than the hold-down from now, since
-- the clock may have been set back.
local left = 0
if recovering then
  local noted = tonumber(redis.call('HGET', marks, 'hold_down') or '') or 0
  local ends = math.min(noted, now + hold_down)
  redis.call('HSET', marks, 'hold_down', int(ends))
  left = math.max(0, ends - now)
end

-- What an open tick passed over is counted when it is closed, and not in doubt.
local function is_passed_over(entry, tick)
  for _, span in ipairs(open_spans()[entry] or {}) do
    if span[1] < tick and tick < span[2] then return true end
  end
end

function rows.DOUBT(i)
  local entry, mark, last = ARGV[i], tonumber(ARGV[i + 1]), i + 2 + tonumber(ARGV[i + 2])
  local known = epoch == meta[2] and left == 0 and vouched_for(entry)
  for k = i + 3, known and last or 0 do
    local member = ARGV[k] .. ':' .. entry
    if not read_grant(member) and not redis.call('ZSCORE', open, member)
        and not is_passed_over(entry, tonumber(ARGV[k])) then
      count(IN_DOUBT, {})
      close(member, 0, IN_DOUBT, keep, {})
      in_doubt[#in_doubt + 1] = {entry, ARGV[k]}
    end
  end
  if known then
    redis.call('HDEL', heard, 'd:' .. int(mark) .. ':' .. entry)
    known.floor = math.max(known.floor, mark)
    vouch(entry, known)
  end
  return last + 1
end

local function told(wait, doubts)
  local not_in_force = {}
  for _, each in ipairs(held) do
    local grant = read_grant(each[2] .. ':' .. each[1])
    if not (grant and grant.open and grant.fence == each[3]) then
      not_in_force[#not_in_force + 1] = {each[1], each[2]}
    end
  end
  local revision, began = unpack(redis.call('HMGET', marks, 'revision', 'began'))
  return answer('OK', meta[2], int(wait), too_far, repaired, lost, doubts or {}, in_doubt,
                not_in_force, int(tonumber(revision or '') or 0), int(tonumber(began or '') or 0))
end

local row = 10
-- Somebody remembers.
if row <= #ARGV then redis.call('HDEL', marks, 'began') end
while row <= #ARGV do row = rows[ARGV[row]](row + 1) end

if left > 0 then return told(left) end
if not is_last then return told(0) end

if redis.call('TYPE', heard).ok == 'hash' then
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf')) do
    local tick, entry = string.match(member, '^(%d+):(.*)$')
    if entry and is_vouched_closed(entry, tick) then
      local grant = read_grant(member)
      count(IN_DOUBT, {})
      close(member, grant and grant.fence or 0, IN_DOUBT, keep,
        {attempt = grant and grant.attempt, previous = grant and grant.previous})
      in_doubt[#in_doubt + 1] = {entry, tick}
      if grant and grant.open then doubt_what_it_passed(member, grant.previous) end
    end
  end
end
local doubts, vouched = {}, redis.call('HGETALL', heard)
for i = 1, #vouched, 2 do
  local entry = string.match(vouched[i], '^e:(.*)$')
  local floor, mark = string.match(vouched[i + 1], '^%d+ (%d+) (%d+) %d+$')
  if entry and #doubts < MOST_DOUBTS then
    floor = math.max(tonumber(floor), now - HOUR)
    if floor < tonumber(mark) then doubts[#doubts + 1] = {entry, int(floor), mark} end
  end
  local tick, passing = string.match(vouched[i], '^d:(%d+):(.*)$')
  if passing then doubts[#doubts + 1] = {passing, vouched[i + 1], tick} end
end
if #doubts > 0 then return told(0, doubts) end
redis.call('DEL', heard)
-- What nobody told again may be there all the same.
for _, key in ipairs(has_feed and {changes, gone} or {}) do
  raise_revision(tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2] or '0'))
end
redis.call('HSET', marks, 'identity', identity)
redis.call('HDEL', marks, 'recovering', 'hold_down')
return told(0)
