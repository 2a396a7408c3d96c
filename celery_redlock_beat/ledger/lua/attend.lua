-- attend: tell that this node still has these entries, so that they do not go missing.
--
-- KEYS  13 present   zset   entry → when a node that has it last said so, µs
-- ARGV  5.. entries, one at least
-- Answer  OK

local refused = refusal() or foreign(KEYS[13], 'zset')
if refused then return refused end

local pairs_to_add = {}
for i = 5, #ARGV do
  pairs_to_add[#pairs_to_add + 1] = int(now)
  pairs_to_add[#pairs_to_add + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[13], unpack(pairs_to_add))
return answer('OK')
