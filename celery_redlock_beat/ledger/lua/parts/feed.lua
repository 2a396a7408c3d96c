-- feed: what is stored and what is paused, each at the revision at which it became so. Shared by
-- the verbs that change it, tell it, and restore it.
--
-- gone  zset  "e:<name>" and "p:<name>" of what was removed or resumed → at which revision
--
-- A revision is a fence: it rises with every change, also over those that a failover lost; and a
-- node that has heard of one sees by it that a copy lacks the change. What is gone is forgotten
-- after some thousand others; whoever knows less than that is told all anew.

local MOST_GONE = 10000

local function next_revision()
  local revision = next_fence()
  redis.call('HSET', marks, 'fence', int(revision), 'revision', int(revision))
  return revision
end

local function raise_revision(revision)
  if revision > (tonumber(redis.call('HGET', marks, 'revision') or '') or 0) then
    redis.call('HSET', marks, 'revision', int(revision))
  end
  -- Where the marks were lost, and the clock was set back, the next one must rise all the same.
  if revision > last_fence and revision < 2 ^ 53 then
    last_fence = revision
    redis.call('HSET', marks, 'fence', int(last_fence))
  end
end

local function key_of(kind)
  return kind == 'e' and entries or paused
end

local function put(gone, kind, name, revision, text)
  redis.call('HSET', key_of(kind), name, text)
  redis.call('ZADD', changes, int(revision), kind .. ':' .. name)
  redis.call('ZREM', gone, kind .. ':' .. name)
end

local function forget_the_oldest(gone)
  local surplus = redis.call('ZCARD', gone) - MOST_GONE
  for i, member in ipairs(surplus > 0 and redis.call('ZRANGE', gone, 0, surplus - 1) or {}) do
    if i == surplus then
      redis.call('HSET', marks, 'pruned', int(tonumber(redis.call('ZSCORE', gone, member))))
    end
    redis.call('ZREM', gone, member)
  end
end

local function drop(gone, kind, name, revision)
  redis.call('HDEL', key_of(kind), name)
  redis.call('ZREM', changes, kind .. ':' .. name)
  redis.call('ZADD', gone, int(revision), kind .. ':' .. name)
  forget_the_oldest(gone)
end

-- The highest revision at which something is known to have become what it is, or to be gone.
local function known_revision(gone, kind, name)
  local member = kind .. ':' .. name
  return math.max(tonumber(redis.call('ZSCORE', changes, member) or '') or 0,
                  tonumber(redis.call('ZSCORE', gone, member) or '') or 0)
end

local function foreign_feed(gone)
  return foreign(entries, 'hash') or foreign(changes, 'zset') or foreign(gone, 'zset')
end
