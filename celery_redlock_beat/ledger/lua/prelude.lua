-- What every verb shares: the keys, the clock, the records, the guard. Prepended to each script.
--
-- KEYS  1 marks   hash   "e:<entry>" → "mark since fence runs fingerprint", where runs are the
--                        ticks that were granted, and not skipped; also, so that losing the key
--                        loses them too: format, identity, epoch, fence, recovering,
--                        hold_down, "x:<entry>" → the fence at which an operator set its mark,
--                        "s:<entry>" → its ticks that shall be skipped, between spaces;
--                        "z:<entry>" → where another scheduler stopped, µs; revision,
--                        the highest of the feed; pruned, up to which what is gone was forgotten;
--                        began, when it was empty and nobody remembered anything, µs
--       2 open    zset   "<tick>:<entry>" → end of its lease, µs
--       3 grants  hash   "<tick>:<entry>" → "open owner fence attempt previous waited"
--                                         | "done fence outcome"
--       4 settled zset   "<tick>:<entry>" → when its "done" grant may be forgotten, µs
--       5 totals  hash   "sent" | "skipped:<reason>" | "in_doubt:<reason>" → count
--       6 paused  hash   entry → "revision until json", until in µs, 0 for ever
--       7 nodes   zset   node → last heartbeat, µs
--       8 heard   hash   of the running recovery, what nodes vouched for: "e:<entry>" →
--                        "closed floor mark before", "x:<entry>" → what is closed above an open
--                        tick, as "closed>open,open" per node, "d:<tick>:<entry>" → the mark from
--                        which on the ticks up to that one are in doubt
--       9 last    hash   entry → "at tick outcome node fence attempt lateness", its last outcome
--      10 history stream outcomes in the order in which they came about; capped
--      11 entries hash   stored entries: name → "revision json"
--      12 changes zset   the feed: "e:<name>" of each stored entry and "p:<name>" of each pause →
--                        the revision at which it became what it is
-- ARGV  1 node, or who asks   2 the epoch it pushed under   3 the highest fence it has ever seen
--       4 how many outcomes the history keeps, about
--
-- open, grants, paused and entries hold a keeper, an empty name that nothing else has: where it is
-- gone, the key was deleted or evicted, and what nodes remember must be heard as after any other
-- loss.
--
-- Every answer begins with a status, the server's time in µs and the last fence:
--   OK          the verb's own answer follows
--   RECOVERING  nothing was done: the server is not the one that this node pushed to (another
--               identity, a lower fence, another epoch), it lost a key, or a recovery is running
--   FOREIGN     nothing was done: a key of ours, which follows, holds another type than ours
--   FORMAT      nothing was done: the records are in another format, which follows
--
-- TIME is read once: it stands still within a script on Redis 8 and Valkey, but not before.
-- Numbers become text through int(): ".." keeps 14 digits of a float.

local FORMAT = '1'
local KEEPER = ''
local IN_DOUBT = 'in_doubt:data_loss'

local marks, open, grants, settled, totals, paused, nodes, heard, latest, history, entries, changes =
  unpack(KEYS, 1, 12)
local node, epoch, seen, most_kept = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

local function int(number)
  return string.format('%.0f', number)
end

-- Where INFO is refused (ACL, some managed services) the fence alone decides.
local function server_identity()
  local info = redis.pcall('INFO', 'replication')
  return type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or 'unknown'
end

local function is_error(reply)
  return type(reply) == 'table' and reply.err
end

local meta = redis.pcall('HMGET', marks, 'identity', 'epoch', 'fence', 'recovering', 'format',
                         'revision')
local keepers = {open = redis.pcall('ZSCORE', open, KEEPER),
                 grants = redis.pcall('HGET', grants, KEEPER),
                 paused = redis.pcall('HGET', paused, KEEPER),
                 -- Where it holds another type, it is not lost: what comes from code goes on.
                 entries = redis.pcall('HGET', entries, KEEPER)}
local last_fence = tonumber(meta[3] or '') or 0
if not (last_fence >= 0 and last_fence < 2 ^ 53) then last_fence = 0 end  -- nor is that a number
local identity = server_identity()

local function answer(status, ...)
  return {status, int(now), int(last_fence), ...}
end

-- What is amiss with a key that a script is going to write to: scripts have no rollback.
local function foreign(key, kind)
  local found = redis.call('TYPE', key).ok
  return found ~= kind and found ~= 'none' and answer('FOREIGN', key, found, kind) or nil
end

local function disorder()
  for key, reply in pairs({[marks] = meta, [open] = keepers.open, [grants] = keepers.grants,
                           [paused] = keepers.paused}) do
    if is_error(reply) then return foreign(key, key == open and 'zset' or 'hash') or reply end
  end
  if meta[5] and meta[5] ~= FORMAT then return answer('FORMAT', meta[5]) end
end

local function lost_keys()
  local lost = {}
  if not (meta[1] or meta[4]) then lost[1] = 'marks' end
  for _, name in ipairs({'open', 'grants', 'paused', 'entries'}) do
    if not keepers[name] then lost[#lost + 1] = name end
  end
  return lost
end

local function must_recover()
  return meta[4] or meta[1] ~= identity or meta[2] ~= epoch or seen > last_fence
    or not (keepers.open and keepers.grants and keepers.paused and keepers.entries)
end

-- The answer that this call gets instead of its own, if there is one.
local function refusal()
  return disorder() or (must_recover() and answer('RECOVERING')) or nil
end

-- An operator has pushed nothing, and must wait while nodes do.
local function refusal_of_operator()
  return disorder()
    or ((meta[4] or meta[1] ~= identity or #lost_keys() > 0) and answer('RECOVERING')) or nil
end

-- Rises with every grant and every change, also over numbers that a failover lost.
local function next_fence()
  last_fence = math.max(last_fence, now) + 1
  return last_fence
end

-- Nothing that cannot be read is written over: it is told, and left to an operator.
local function read_record(entry)
  local text = redis.call('HGET', marks, 'e:' .. entry)
  if not text then return nil end
  local mark, since, fence, runs, fingerprint =
    string.match(text, '^(%d+) (%d+) (%d+) (%d+) (.*)$')
  if not mark then return {unreadable = true} end
  return {mark = tonumber(mark), since = tonumber(since), fence = tonumber(fence),
          runs = tonumber(runs), fingerprint = fingerprint}
end

local function write_record(entry, record)
  redis.call('HSET', marks, 'e:' .. entry, table.concat(
    {int(record.mark), int(record.since), int(record.fence), int(record.runs),
     record.fingerprint}, ' '))
end

local function read_grant(member)
  local text = redis.call('HGET', grants, member)
  if not text then return nil end
  local owner, fence, attempt, previous, waited =
    string.match(text, '^open (%S+) (%d+) (%d+) (%d+) (%d)$')
  if owner then
    return {open = true, owner = owner, fence = tonumber(fence), attempt = tonumber(attempt),
            previous = tonumber(previous), waited = waited}
  end
  local done = string.match(text, '^done (%d+) ')
  return done and {open = false, fence = tonumber(done)} or {unreadable = true}
end

-- Where the key of the grants was lost, an open tick begins anew, and nothing is counted with it; an
-- attempt was made, for all that is known.
local function grant_of(member, tick)
  local grant = read_grant(member)
  if grant or not redis.call('ZSCORE', open, member) then return grant end
  return {open = true, owner = '-', fence = 0, attempt = 1, previous = tick, waited = '0'}
end

local function write_grant(member, grant)
  redis.call('HSET', grants, member, table.concat(
    {'open', grant.owner, int(grant.fence), int(grant.attempt), int(grant.previous),
     grant.waited}, ' '))
end

-- The open ticks of an entry; all are looked through, once in a call at most.
local open_by_entry
local function open_of(entry)
  if not open_by_entry then
    open_by_entry = {}
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf')) do
      local of = string.match(member, '^%d+:(.*)$')
      if of then
        open_by_entry[of] = open_by_entry[of] or {}
        table.insert(open_by_entry[of], member)
      end
    end
  end
  return open_by_entry[entry] or {}
end

-- Write down what came about, for those who ask later. It must stop nothing: where it is refused,
-- it is not written, and doctor tells. what: fence, attempt, previous, late, passed, detail.
local function write_history(entry, tick, outcome, what)
  if most_kept == 0 then return end
  local passed = {}
  for i = 1, #(what.passed or {}), 2 do
    passed[#passed + 1] = what.passed[i] .. ' ' .. what.passed[i + 1]
  end
  redis.pcall('XADD', history, 'MAXLEN', '~', most_kept, '*', 'entry', entry, 'tick', int(tick),
    'outcome', outcome, 'node', node, 'fence', int(what.fence or 0), 'attempt',
    int(what.attempt or 0), 'previous', int(what.previous or tick), 'late', int(what.late or 0),
    'passed', table.concat(passed, ','), 'detail', what.detail or '')
end

-- What became of a tick. what: also due_at.
local function note(entry, tick, outcome, what)
  what.late = now - (what.due_at or tick)
  redis.pcall('HSET', latest, entry, table.concat({int(now), int(tick), outcome, node,
    int(what.fence or 0), int(what.attempt or 0), int(what.late)}, ' '))
  write_history(entry, tick, outcome, what)
end

-- What an operator did, with the ticks that it ended, or is going to.
local function note_deed(entry, deed, detail, remainder)
  local of = remainder or {mark = now, upto = now, passed = {}}
  write_history(entry, of.upto, deed, {previous = of.mark, passed = of.passed, detail = detail})
end

-- Whether an entry is paused and its time is not over: then whoever asks for a tick ends the pause.
local function is_held_back(entry)
  local pause = redis.call('HGET', paused, entry)
  local ends = pause and tonumber(string.match(pause, '^%d+ (%d+)') or '0')
  return pause and (ends == 0 or ends > now)
end

local function is_stored_as(entry, revision)
  local stored = redis.pcall('ZSCORE', changes, 'e:' .. entry)
  return type(stored) == 'string' and tonumber(stored) == revision
end

-- "Done already" is answered only from the settled grant, and only to the fence that settled it.
local function may_close(member, fence)
  local grant = read_grant(member)
  if not grant or grant.fence ~= fence then return 'STALE' end
  return grant.open and 'DONE' or 'ALREADY', grant
end

-- A total that is no number is an operator's to mend: it must not stop what it counts.
local function count_one(outcome, number)
  local reply = redis.pcall('HINCRBY', totals, outcome, number)
  if is_error(reply) and not string.find(reply.err, 'not an integer', 1, true)
      and not string.find(reply.err, 'overflow', 1, true) then
    redis.call('HINCRBY', totals, outcome, number)
  end
end

-- Count an outcome and, here and nowhere else, what lay between the previous mark and the tick,
-- so that it is counted once whatever replies are lost. passed: {reason, number, ...}. It is the
-- first write of whatever closes a tick: a user who may not count may not close.
local function count(outcome, passed)
  count_one(outcome, 1)
  for i = 1, #passed, 2 do count_one('skipped:' .. passed[i], passed[i + 1]) end
end

-- Close an open tick that was counted. what: more to note of it.
local function close(member, fence, outcome, keep, what)
  redis.call('ZREM', open, member)
  redis.call('HSET', grants, member, table.concat({'done', int(fence), outcome}, ' '))
  redis.call('ZADD', settled, int(now + keep), member)
  -- Two are swept for each one kept: the settled grants cannot pile up.
  for _, old in ipairs(redis.call('ZRANGEBYSCORE', settled, '-inf', int(now), 'LIMIT', 0, 2)) do
    redis.call('HDEL', grants, old)
    redis.call('ZREM', settled, old)
  end
  local tick, entry = string.match(member, '^(%d+):(.*)$')
  what.fence = fence
  note(entry, tonumber(tick), outcome, what)
end

local function cannot_close()
  return foreign(settled, 'zset') or foreign(totals, 'hash')
end
