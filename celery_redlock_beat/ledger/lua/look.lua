-- look: tell all that is known of entries, in one moment; it changes nothing.
--
-- ARGV  5.. entries
-- Answer  OK, then per entry: its record, its pause and the revision of that, the revision under
--         which it is stored and its text, its last outcome, the ticks that shall be skipped ("" each
--         for none), and {tick, owner, fence, attempt, previous, end of the lease} per open tick

local refused = disorder()
if refused then return refused end

local function opened(entry)
  local rows = {}
  for _, member in ipairs(open_of(entry)) do
    local tick = string.match(member, '^%d+')
    local grant = grant_of(member, tonumber(tick))
    if grant and grant.open then
      rows[#rows + 1] = {tick, grant.owner, int(grant.fence), int(grant.attempt), int(grant.previous),
                         int(tonumber(redis.call('ZSCORE', open, member) or '0'))}
    end
  end
  return rows
end

local function text_of(key, field)
  local text = redis.pcall('HGET', key, field)
  return type(text) == 'string' and text or ''
end

-- What holds it back, whatever somebody wrote: also nothing is a pause.
local function pause_of(entry)
  local text = redis.pcall('HGET', paused, entry)
  return type(text) == 'string' and (text ~= '' and text or ' ') or ''
end

-- The feed's, not that in the text, which somebody may have written by hand.
local function revision_of(member)
  local revision = redis.pcall('ZSCORE', changes, member)
  return type(revision) == 'string' and int(tonumber(revision)) or ''
end

local looks = {}
for i = 5, #ARGV do
  local entry = ARGV[i]
  looks[#looks + 1] = {text_of(marks, 'e:' .. entry), pause_of(entry),
    revision_of('p:' .. entry), revision_of('e:' .. entry), text_of(entries, entry),
    text_of(latest, entry), text_of(marks, 's:' .. entry), opened(entry)}
end
return answer('OK', looks)
