-- Lets requests in, or says why not. Each fits in all limits of all its enforced scopes and holds what it needs there,
-- or holds nothing. The same rules in Python: windows.py and ledger.py.
--
-- KEYS[1]  what all keys begin with
-- ARGV[1]  the time in microseconds; 0: this server's
-- ARGV[2]  requests, as JSON: [id, tokens, micro, rest, day, month, [scope, ...]]
--          a scope: [name, enforced, requests, tokens, [day micro, rest], [month micro, rest]], false for no limit
-- Answers for each request: [granted, now, [refusal, ...], [standing, ...]]
--          a refusal: [scope, limit (1 requests, 2 tokens, 3 day, 4 month), used, rest of used, wait (-1: never; for money 1: for requests under way)]
--          a standing: [scope, limit (1 or 2), used, reset]
--
-- For a scope S: q:S sorted set of the requests' ids by time; t:S sorted set of ids by time, w:S hash of id -> tokens, and `sum`;
-- u:S:PERIOD hash of the money spent (micro, rest), held (held_micro, held_rest), and `h:ID` -> [micro, rest] of each.
-- x:ID stands for a request that was given up: it holds nothing, however late it comes.
-- Money is in whole millionths of a USD and a rest in 1e-18, which stay exact where one number would not.

local MINUTE, SECOND, KEPT, REST = 60000000, 1000000, 120, 1000000000000
local prefix = KEYS[1]
local now = tonumber(ARGV[1])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * SECOND + time[2]
end

local function number(text)
  return tonumber(text or 0)
end

-- What seems to come from the future counts from now.
local function turn_back(key)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. string.format('%.0f', now), '+inf')) do
    redis.call('ZADD', key, now, id)
  end
end

-- The requests that count, after those of a minute ago are gone. A time in the future: the clock went back.
local function requests_in(key)
  local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if not newest then return 0 end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now - MINUTE)
  if number(newest) > now then turn_back(key) end
  return redis.call('ZCARD', key)
end

local function tokens_in(times, weights)
  local newest = redis.call('ZRANGE', times, -1, -1, 'WITHSCORES')[2]
  if not newest then return 0 end
  local over = now - MINUTE
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', times, '-inf', over)) do
    redis.call('HINCRBY', weights, 'sum', 0 - number(redis.call('HGET', weights, id)))
    redis.call('HDEL', weights, id)
    redis.call('ZREM', times, id)
  end
  if number(newest) > now then turn_back(times) end
  return number(redis.call('HGET', weights, 'sum'))
end

local function wait_for_request(key, used, limit)
  local excess = used + 1 - limit
  if excess <= 0 then return 0 end
  return number(redis.call('ZRANGE', key, excess - 1, excess - 1, 'WITHSCORES')[2]) + MINUTE - now
end

local function wait_for_tokens(times, weights, used, needed, limit)
  if needed > limit then return -1 end
  local excess, from = used + needed - limit, 0
  while excess > 0 do
    local some = redis.call('ZRANGE', times, from, from + 99, 'WITHSCORES')
    if #some == 0 then return 0 end
    for at = 1, #some, 2 do
      excess = excess - number(redis.call('HGET', weights, some[at]))
      if excess <= 0 then return number(some[at + 1]) + MINUTE - now end
    end
    from = from + 100
  end
  return 0
end

-- Adds to an amount in two fields; the rest stays from 0 to under a millionth.
local function add(key, micro_field, rest_field, micro, rest)
  redis.call('HINCRBY', key, micro_field, micro)
  local sum = redis.call('HINCRBY', key, rest_field, rest)
  local carried = math.floor(sum / REST)
  if carried ~= 0 then
    redis.call('HINCRBY', key, micro_field, carried)
    redis.call('HINCRBY', key, rest_field, -carried * REST)
  end
end

local function owner_lives(id)
  return redis.call('EXISTS', prefix .. 'o:' .. string.match(id, '^[^.]*')) == 1
end

-- Gives back, once a second at most, what is held for requests of processes that are no more.
local function sweep(key)
  if now - number(redis.call('HGET', key, 'swept')) < SECOND then return end
  redis.call('HSET', key, 'swept', now)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local id = string.match(field, '^h:(.*)$')
    if id and not owner_lives(id) then
      local held = cjson.decode(redis.call('HGET', key, field))
      add(key, 'held_micro', 'held_rest', 0 - held[1], 0 - held[2])
      redis.call('HDEL', key, field)
    end
  end
end

-- What is spent or held, and what is spent alone.
local function money_in(key)
  local found = redis.call('HMGET', key, 'micro', 'rest', 'held_micro', 'held_rest')
  local micro, rest = number(found[1]) + number(found[3]), number(found[2]) + number(found[4])
  return micro + math.floor(rest / REST), rest % REST, number(found[1]), number(found[2])
end

local function fits(micro, rest, more_micro, more_rest, limit)
  local sum = rest + more_rest
  micro = micro + more_micro + math.floor(sum / REST)
  return micro < limit[1] or (micro == limit[1] and sum % REST <= limit[2])
end

-- The refusals of one scope.
local function check(place, scope, tokens, micro, rest, periods)
  local found = {}
  local times, weights = prefix .. 't:' .. scope[1], prefix .. 'w:' .. scope[1]
  if scope[3] then
    local key = prefix .. 'q:' .. scope[1]
    local used = requests_in(key)
    local wait = wait_for_request(key, used, scope[3])
    if wait ~= 0 then found[#found + 1] = { place, 1, used, 0, wait } end
  end
  if scope[4] then
    local used = tokens_in(times, weights)
    local wait = wait_for_tokens(times, weights, used, tokens, scope[4])
    if wait ~= 0 then found[#found + 1] = { place, 2, used, 0, wait } end
  end
  for which = 1, 2 do
    local limit = scope[4 + which]
    if limit then
      local key = prefix .. 'u:' .. scope[1] .. ':' .. periods[which]
      local used, used_rest, spent, spent_rest = money_in(key)
      if not fits(used, used_rest, micro, rest, limit) then
        sweep(key)
        used, used_rest, spent, spent_rest = money_in(key)
      end
      if not fits(used, used_rest, micro, rest, limit) then
        local held = fits(spent, spent_rest, micro, rest, limit) and 1 or 0
        found[#found + 1] = { place, 2 + which, used, used_rest, held }
      end
    end
  end
  return found
end

local function take(scope, id, tokens, micro, rest, periods)
  if scope[3] then
    local key = prefix .. 'q:' .. scope[1]
    redis.call('ZADD', key, now, id)
    redis.call('EXPIRE', key, KEPT)
  end
  if scope[4] then
    local times, weights = prefix .. 't:' .. scope[1], prefix .. 'w:' .. scope[1]
    redis.call('ZADD', times, now, id)
    redis.call('HSET', weights, id, tokens)
    redis.call('HINCRBY', weights, 'sum', tokens)
    redis.call('EXPIRE', times, KEPT)
    redis.call('EXPIRE', weights, KEPT)
  end
  if not (scope[5] or scope[6]) then return end
  for which = 1, 2 do
    local key = prefix .. 'u:' .. scope[1] .. ':' .. periods[which]
    add(key, 'held_micro', 'held_rest', micro, rest)
    redis.call('HSET', key, 'h:' .. id, string.format('[%.0f,%.0f]', micro, rest))
    redis.call('EXPIRE', key, which == 1 and 259200 or 3456000)
  end
end

-- When the newest came that used any tokens.
local function newest_in(times, weights)
  local from = 0
  while true do
    local some = redis.call('ZREVRANGE', times, from, from + 9, 'WITHSCORES')
    if #some == 0 then return now - MINUTE end
    for at = 1, #some, 2 do
      if number(redis.call('HGET', weights, some[at])) > 0 then return number(some[at + 1]) end
    end
    from = from + 10
  end
end

local function standing(place, scope, found)
  if scope[3] then
    local key = prefix .. 'q:' .. scope[1]
    local used = requests_in(key)
    local reset = used > 0 and number(redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]) + MINUTE - now or 0
    found[#found + 1] = { place, 1, used, reset }
  end
  if scope[4] then
    local times, weights = prefix .. 't:' .. scope[1], prefix .. 'w:' .. scope[1]
    local used = tokens_in(times, weights)
    found[#found + 1] = { place, 2, used, used > 0 and newest_in(times, weights) + MINUTE - now or 0 }
  end
end

local function serve(request)
  local id, tokens, micro, rest, scopes = request[1], request[2], request[3], request[4], request[7]
  local periods = { request[5], request[6] }
  if redis.call('EXISTS', prefix .. 'x:' .. id) == 1 then return { 0, now, {}, {} } end
  local granted, refusals, standings, fitting = 1, {}, {}, {}
  for place, scope in ipairs(scopes) do
    local found = check(place, scope, tokens, micro, rest, periods)
    for _, refusal in ipairs(found) do refusals[#refusals + 1] = refusal end
    if #found == 0 then fitting[#fitting + 1] = scope end
    if #found > 0 and scope[2] then granted = 0 end
  end
  if granted == 1 then
    for _, scope in ipairs(fitting) do take(scope, id, tokens, micro, rest, periods) end
  end
  for place, scope in ipairs(scopes) do
    if scope[2] then standing(place, scope, standings) end
  end
  return { granted, now, refusals, standings }
end

local answers = {}
for at, request in ipairs(cjson.decode(ARGV[2])) do answers[at] = serve(request) end
return answers
