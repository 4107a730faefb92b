-- Writes what was settled, once: a batch that comes again, as its sender heard no answer, changes nothing.
--
-- KEYS[1]  what all keys begin with
-- ARGV[1]  the time in microseconds; 0: this server's
-- ARGV[2]  the batch's id
-- ARGV[3]  as JSON: { closed: [[id, day, month, reserved, used, [scope, ...]], ...],
--          released: [[id, day, month, [scope, ...]], ...], given_up: the same,
--          spent: [[scope, period, micro, rest], ...], usage: [[day, field, count], ...] }; amounts and counts are text;
--          of money, a second field and its count: the rest
-- The keys are described in reserve.lua. usage:DAY is a hash of [key, workload, model, what is counted] -> sum; usage a
-- sorted set of the days.

local SECOND, KEPT, REST, DAY = 1000000, 120, 1000000000000, 86400
local prefix = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * SECOND + time[2]
end
if not redis.call('SET', prefix .. 'b:' .. ARGV[2], 1, 'NX', 'EX', DAY) then return 0 end

local function carry(key, micro_field, rest_field)
  local rest = tonumber(redis.call('HGET', key, rest_field) or 0)
  local carried = math.floor(rest / REST)
  if carried ~= 0 then
    redis.call('HINCRBY', key, micro_field, carried)
    redis.call('HINCRBY', key, rest_field, -carried * REST)
  end
end

-- Tokens beyond those reserved count from now; those not used count no more.
local function correct(scope, id, reserved, used)
  local times, weights = prefix .. 't:' .. scope, prefix .. 'w:' .. scope
  if used > reserved then
    redis.call('ZADD', times, now, id .. ':more')
    redis.call('HSET', weights, id .. ':more', used - reserved)
    redis.call('HINCRBY', weights, 'sum', used - reserved)
    redis.call('EXPIRE', times, KEPT)
    redis.call('EXPIRE', weights, KEPT)
  elseif redis.call('HEXISTS', weights, id) == 1 then
    redis.call('HINCRBY', weights, 'sum', used - tonumber(redis.call('HGET', weights, id)))
    redis.call('HSET', weights, id, used)
  end
end

local function forget_tokens(scope, id)
  local times, weights = prefix .. 't:' .. scope, prefix .. 'w:' .. scope
  local tokens = redis.call('HGET', weights, id)
  if not tokens then return end
  redis.call('HINCRBY', weights, 'sum', 0 - tonumber(tokens))
  redis.call('HDEL', weights, id)
  redis.call('ZREM', times, id)
end

local function let_go(scope, id, period)
  local key = prefix .. 'u:' .. scope .. ':' .. period
  local held = redis.call('HGET', key, 'h:' .. id)
  if not held then return end
  held = cjson.decode(held)
  redis.call('HINCRBY', key, 'held_micro', 0 - held[1])
  redis.call('HINCRBY', key, 'held_rest', 0 - held[2])
  carry(key, 'held_micro', 'held_rest')
  redis.call('HDEL', key, 'h:' .. id)
end

local batch = cjson.decode(ARGV[3])
for _, closed in ipairs(batch.closed) do
  local id, day, month, reserved, used = closed[1], closed[2], closed[3], closed[4], closed[5]
  for _, scope in ipairs(closed[6]) do
    correct(scope, id, reserved, used)
    let_go(scope, id, day)
    let_go(scope, id, month)
  end
end
for _, released in ipairs(batch.released) do
  for _, scope in ipairs(released[4]) do
    let_go(scope, released[1], released[2])
    let_go(scope, released[1], released[3])
  end
end
-- Whether these hold anything nobody was told; nor whether they are still to come.
for _, request in ipairs(batch.given_up) do
  local id = request[1]
  redis.call('SET', prefix .. 'x:' .. id, 1, 'EX', KEPT)
  for _, scope in ipairs(request[4]) do
    redis.call('ZREM', prefix .. 'q:' .. scope, id)
    forget_tokens(scope, id)
    let_go(scope, id, request[2])
    let_go(scope, id, request[3])
  end
end
for _, spent in ipairs(batch.spent) do
  local key = prefix .. 'u:' .. spent[1] .. ':' .. spent[2]
  redis.call('HINCRBY', key, 'micro', spent[3])
  redis.call('HINCRBY', key, 'rest', spent[4])
  carry(key, 'micro', 'rest')
  redis.call('EXPIRE', key, #spent[2] > 7 and 3 * DAY or 40 * DAY)
end
for _, usage in ipairs(batch.usage) do
  local key = prefix .. 'usage:' .. usage[1]
  redis.call('ZADD', prefix .. 'usage', 0, usage[1])
  redis.call('HINCRBY', key, usage[2], usage[3])
  if usage[4] then
    redis.call('HINCRBY', key, usage[4], usage[5])
    carry(key, usage[2], usage[4])
  end
  redis.call('EXPIRE', key, 400 * DAY)
end
return 1
