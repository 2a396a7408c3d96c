-- depart: tell that this node has left, so that nobody waits for it or misses it.
--
-- KEYS  13 beats
-- ARGV  5 what it last tells of itself, as JSON
-- Answer  OK
--
-- Its heartbeat stays: since when an entry is missing is reckoned from the last one.

local refused = refusal() or foreign(KEYS[13], 'hash')
if refused then return refused end

redis.call('HSET', KEYS[13], node, ARGV[5])
return answer('OK')
