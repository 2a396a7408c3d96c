-- claim: ask for ticks, tell that this node lives, and hear of orphans.
--
-- KEYS  13 beats    hash   node → what it tells of itself, as JSON
-- ARGV  5 lease, µs   6 orphan cursor   7 most orphans   8 what the node tells of itself, or ""
--       9.. per tick: entry, tick, due_at, expected mark, limit, the revision under which the
--       entry is stored; "" each for none
-- Answer  OK, then {verdict, mark, wait, runs} per tick, and with a grant its fence, attempt,
--         previous, deadline, waited, unwanted; or, where the entry is paused, the pause;
--         {entry, tick, free_since, attempt} per orphan, the next cursor, the least end of a
--         lease that is still ahead ("" for none), and {"<tick>:<entry>", previous} per open tick
--         ("" for too many to name): what is neither open, nor passed over by an open tick, nor
--         above its mark is settled, and nodes remember that; the highest revision of the feed, and
--         1 where stored entries or pauses were written or deleted past it, by hand
--
-- Found                     Verdict
-- stored under another one   CHANGED    the entry was changed or removed: the node must hear of it
-- record or grant not ours  UNREADABLE    nothing is written over it
-- no record, no grant       UNREGISTERED
-- entry paused              PAUSED     with its pause; changes nothing, counts nothing, also when
--                                      its time is over: a pause ends only by the verb resume
-- due_at > now              EARLY      with the wait; no tolerance
-- open, lease alive, mine   MINE       the reply was lost
-- open, lease alive         HELD       with the wait
-- open, lease over          GRANTED    new fence, attempt + 1, the first grant's previous mark
-- settled, mark lost        SETTLED    the grant is still known: mark and runs rise to it again
-- tick <= mark              SETTLED
-- mark is not the expected  SETTLED    compare-and-set: someone computed another instant
-- limit, a tick is open     HELD       with the wait; it may be skipped, and then is no run
-- runs >= limit             FINISHED
-- otherwise                 GRANTED    mark = tick, runs + 1, the previous mark remembered
--
-- Runs rise with the mark, in one write, before anything is sent: whoever is told a mark is told
-- how many messages there may be up to it, whatever becomes of the tick. So what a node remembers
-- is never too little, and two ticks that are open at once count as two.
--
-- Orphans come oldest first from the cursor, a rank that wraps, so that some that nobody can
-- finish do not hide the others.

local refused = refusal() or foreign(nodes, 'zset')
if refused then return refused end

local MOST_NAMED = 32
local DAY = 86400000000
local beats = KEYS[13]
local lease, cursor, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])

redis.call('ZADD', nodes, int(now), node)
for _, silent in ipairs(redis.call('ZRANGEBYSCORE', nodes, '-inf', int(now - DAY))) do
  redis.call('ZREM', nodes, silent)
  redis.pcall('HDEL', beats, silent)
end
redis.call('PEXPIRE', nodes, int(DAY / 1000))
if ARGV[8] ~= '' then
  redis.pcall('HSET', beats, node, ARGV[8])
  redis.pcall('PEXPIRE', beats, int(DAY / 1000))
end

-- A lease that ends later than any would was given by a clock that has been set back. It is over.
local farthest = int(now + lease + 600000000)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', open, farthest, '+inf', 'LIMIT', 0, 100)) do
  if member ~= KEEPER then redis.call('ZADD', open, int(now), member) end
end

local function refuse(verdict, record, wait)
  return {verdict, int(record.mark), int(wait or 0), int(record.runs)}
end

local function grant_to_me(verdict, member, record, grant, deadline)
  if verdict == 'GRANTED' then
    grant.owner, grant.fence, grant.attempt = node, next_fence(), grant.attempt + 1
    write_grant(member, grant)
    redis.call('ZADD', open, int(deadline), member)
  end
  return {verdict, int(record.mark), '0', int(record.runs), int(grant.fence), int(grant.attempt),
          int(grant.previous), int(deadline), grant.waited, grant.unwanted or '0'}
end

-- What stands against one more tick of an entry that may have so many runs. The open one is its
-- mark, unless an operator raised that.
local function beyond(limit, entry, record)
  local ends = redis.call('ZSCORE', open, int(record.mark) .. ':' .. entry)
  local other = not ends and record.runs >= limit and open_of(entry)[1]
  if other then ends = redis.call('ZSCORE', open, other) end
  if ends then return refuse('HELD', record, math.max(0, tonumber(ends) - now)) end
  if record.runs >= limit then return refuse('FINISHED', record) end
end

-- Told once, until there is another outcome.
local function note_unreadable(entry, tick)
  local known = redis.pcall('HGET', latest, entry)
  if type(known) == 'string' and string.find(known, ' unreadable ', 1, true) then return end
  note(entry, tick, 'unreadable', {})
end

-- Whether an operator wants a tick to be skipped.
local function is_unwanted(entry, tick)
  local ticks = redis.call('HGET', marks, 's:' .. entry)
  return ticks and string.find(ticks, ' ' .. int(tick) .. ' ', 1, true) and '1' or '0'
end

local function ask(entry, tick, due_at, expected, limit, revision)
  local member = int(tick) .. ':' .. entry
  local grant, record = grant_of(member, tick), read_record(entry)
  if revision and not is_stored_as(entry, revision) then return {'CHANGED', '-1', '0', '0'} end
  if (record and record.unreadable) or (grant and grant.unreadable) then
    note_unreadable(entry, tick)
    return {'UNREADABLE', '-1', '0', '0'}
  end
  if not record then
    if not grant then return {'UNREGISTERED', '-1', '0', '0'} end
    record = {mark = 0, since = now, fence = 0, runs = 0, fingerprint = ''}
  end
  local pause = redis.call('HGET', paused, entry)
  if pause then return {'PAUSED', int(record.mark), '0', int(record.runs), pause} end
  if due_at > now then return refuse('EARLY', record, due_at - now) end
  if grant and tick > record.mark then
    -- Its run was lost with its mark, unless an operator set the mark back.
    local lost = redis.call('HEXISTS', marks, 'x:' .. entry) == 0
    record.mark, record.runs = tick, record.runs + (lost and 1 or 0)
    write_record(entry, record)
  end
  if grant and grant.open then
    local deadline = tonumber(redis.call('ZSCORE', open, member) or '0')
    grant.unwanted = is_unwanted(entry, tick)
    if deadline <= now then
      return grant_to_me('GRANTED', member, record, grant, now + lease)
    elseif grant.owner == node then
      return grant_to_me('MINE', member, record, grant, deadline)
    end
    return refuse('HELD', record, deadline - now)
  end
  if tick <= record.mark or (expected and expected ~= record.mark) then
    return refuse('SETTLED', record)
  end
  local refusal = limit and beyond(limit, entry, record)
  if refusal then return refusal end
  local first = {attempt = 0, previous = record.mark, waited = '0',
                 unwanted = is_unwanted(entry, tick)}
  record.mark, record.runs = tick, record.runs + 1
  local granted = grant_to_me('GRANTED', member, record, first, now + lease)
  record.fence = first.fence
  write_record(entry, record)
  return granted
end

local answers = {}
for i = 9, #ARGV, 6 do
  local tick, due_at, expected, limit, revision = unpack(ARGV, i + 1, i + 5)
  answers[#answers + 1] = ask(ARGV[i], tonumber(tick), tonumber(due_at), tonumber(expected),
                              tonumber(limit), tonumber(revision))
end
if last_fence > tonumber(meta[3] or '0') then redis.call('HSET', marks, 'fence', int(last_fence)) end

local orphans = {}
local free = redis.call('ZRANGEBYSCORE', open, '-inf', int(now), 'WITHSCORES', 'LIMIT', cursor, most)
for i = 1, #free, 2 do
  local tick, entry = string.match(free[i], '^(%d+):(.*)$')
  local grant = entry and grant_of(free[i], tonumber(tick))
  if grant and grant.open and not is_held_back(entry) then
    orphans[#orphans + 1] = {entry, tick, int(math.max(0, tonumber(free[i + 1]))), int(grant.attempt)}
  end
end
local next_cursor = #free < 2 * most and 0 or cursor + most

local ahead =
  redis.call('ZRANGEBYSCORE', open, '(' .. int(now), '(+inf', 'WITHSCORES', 'LIMIT', 0, 1)
local named = redis.call('ZCARD', open) <= MOST_NAMED + 1 and {} or ''
for _, member in ipairs(named ~= '' and redis.call('ZRANGEBYSCORE', open, '-inf', '(+inf') or {}) do
  local tick, grant = string.match(member, '^(%d+):'), read_grant(member)
  if tick then
    named[#named + 1] = {member, int(grant and grant.open and grant.previous or tonumber(tick) - 1)}
  end
end
-- Without their keepers.
local there = {redis.pcall('HLEN', entries), redis.pcall('HLEN', paused), redis.pcall('ZCARD', changes)}
local is_stirred = type(there[1]) ~= 'number' or type(there[3]) ~= 'number'
  or there[1] + there[2] - 2 ~= there[3]
return answer('OK', answers, orphans, int(next_cursor), ahead[2] and int(tonumber(ahead[2])) or '',
              named, int(tonumber(meta[6] or '0') or 0), is_stirred and '1' or '0')
