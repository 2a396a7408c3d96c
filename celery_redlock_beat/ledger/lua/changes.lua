-- changes: tell what was stored, removed, paused and resumed after a revision.
--
-- KEYS  13 gone
-- ARGV  5 the revision up to which the node knows it   6 at most so many   7 1: it goes on with what
--       is told from the very beginning
-- Answer  OK, then the revision up to which it knows it now; 1 if there is more; 1 if it was told
--         from the very beginning, since what is gone is not remembered for as long; and
--         {"e:<name>" | "p:<name>", revision, text, 0|1: it is gone} per change, ascending
--
-- What somebody wrote into the keys by hand gets a revision here, and what somebody deleted is gone:
-- so that nodes and keys agree. The revision in a text proves nothing: it may be that of a copy, and
-- older than what nodes have heard. Nothing is deleted for being unreadable.

local gone = KEYS[13]
local refused = refusal() or foreign_feed(gone)
if refused then return refused end

local since, most = tonumber(ARGV[5]), tonumber(ARGV[6])

local function adopt(kind)
  for _, name in ipairs(redis.call('HKEYS', key_of(kind))) do
    if name ~= KEEPER and not redis.call('ZSCORE', changes, kind .. ':' .. name) then
      redis.call('ZADD', changes, int(next_revision()), kind .. ':' .. name)
      redis.call('ZREM', gone, kind .. ':' .. name)
    end
  end
end

if redis.call('HLEN', entries) + redis.call('HLEN', paused) - 2 ~= redis.call('ZCARD', changes) then
  for _, member in ipairs(redis.call('ZRANGE', changes, 0, -1)) do
    local kind, name = string.match(member, '^([ep]):(.*)$')
    if kind and redis.call('HEXISTS', key_of(kind), name) == 0 then
      drop(gone, kind, name, next_revision())
    elseif not kind then
      redis.call('ZREM', changes, member)
    end
  end
  adopt('e')
  adopt('p')
end

local pruned = tonumber(redis.call('HGET', marks, 'pruned') or '0') or 0
local is_whole = ARGV[7] == '1' or since < pruned
if ARGV[7] ~= '1' and is_whole then since = 0 end

local function after(key)
  return redis.call('ZRANGEBYSCORE', key, '(' .. int(since), '+inf', 'WITHSCORES', 'LIMIT', 0, most)
end

-- Of two lists that may both be cut off, only up to where the first one ends.
local function end_of(list)
  return #list == 2 * most and tonumber(list[#list]) or math.huge
end

local there, away = after(changes), after(gone)
local ends = math.min(end_of(there), end_of(away))
local told = {}
local function tell(list, is_gone)
  for i = 1, #list, 2 do
    local kind, name = string.match(list[i], '^([ep]):(.*)$')
    if kind and tonumber(list[i + 1]) <= ends then
      local text = is_gone == '0' and redis.call('HGET', key_of(kind), name)
      told[#told + 1] = {list[i], int(tonumber(list[i + 1])), text or '', text and '0' or '1'}
    end
  end
end
tell(there, '0')
tell(away, '1')
table.sort(told, function(one, other) return tonumber(one[2]) < tonumber(other[2]) end)

local highest = tonumber(redis.call('HGET', marks, 'revision') or '0') or 0
local is_more = ends < math.huge
return answer('OK', int(is_more and ends or math.max(highest, since)), is_more and '1' or '0',
              is_whole and '1' or '0', told)
