-- Streams that pass through (docs/passthrough.md): the sidecar has left them, what is still to be done is done here.
-- Events go on whole: a model's other name and a chunk that the client didn't ask for can't hide in two halves.
-- What was used goes into the metadata that the access log sends to the sidecar.

local LARGEST = 1048576 -- bytes of an event that is waited for; a larger one goes on in pieces
local LARGEST_USAGE = 4096
local SHORT = 64 -- bytes that are looked at again with all that follows: the stream's end may be among them
local NOTED = 64 -- events, at most, between two notes of how many there were, for a stream that breaks off

-- JSON may have blanks around a colon. A quote inside a string is escaped, so none of these is found in what is said.
local NAME = '("model"%s*:%s*)"[^"\\]*"'
local NAME_ESCAPED = '("model"%s*:%s*)"[^"]-[^"\\]"' -- one with escapes, as x\/y
local USAGE = '"usage"%s*:%s*{'
local CHOICES = '"choices"%s*:%s*%[%s*{'

-- Where the last whole event of a text ends, 0 where none does; and whether the stream is over.
local function whole(text)
  if text:sub(-2) == "\n\n" or text:sub(-3) == "\n\r\n" then
    return #text, false
  end
  local ends = (text:match("^.*\n\r?\n()") or text:match("^.*\r\r()") or 1) - 1
  -- The last event needs no end: what is behind it is nothing.
  if text:find("^data: ?%[DONE%]", ends + 1) then
    return #text, true
  end
  return ends, false
end

-- What waits for the end of its event, in pieces: looking through all of it again at each would take for ever.
local function waiting()
  local pieces, size, tail = {}, 0, ""
  local held = {}

  function held.add(text)
    pieces[#pieces + 1] = text
    size = size + #text
    tail = (tail .. text):sub(-3)
  end

  -- Give all that waits and what follows, or nothing while there is no reason to look at it.
  function held.with(text)
    if size == 0 then
      return text
    end
    if size > SHORT and size + #text <= LARGEST and whole(tail .. text) == 0 then
      held.add(text)
      return nil
    end
    pieces[#pieces + 1] = text
    text = table.concat(pieces)
    pieces, size, tail = {}, 0, ""
    return text
  end

  return held
end

local function count(text)
  local events, at = text:find("^data:") and 1 or 0, 1
  while true do
    at = text:find("\ndata:", at, true)
    if not at then
      return events
    end
    events, at = events + 1, at + 6
  end
end

-- Without the chunk that has nothing but the usage; pieces of an event that is too large to be seen whole stay.
local function without_usage(text)
  local kept, at = {}, 1
  while at <= #text do
    local _, ends = text:find("\n\r?\n", at)
    if not ends then
      _, ends = text:find("\r\r", at, true)
    end
    local event = text:sub(at, ends or -1)
    local begins = event:find("^data:") or event:find("\ndata:", 1, true)
    if not (ends and begins and event:find(USAGE) and not event:find(CHOICES)) then
      kept[#kept + 1] = event
    end
    at = at + #event
  end
  return table.concat(kept)
end

-- Call back with each usage object of a text.
local function usages(text, found)
  local at = 1
  while true do
    local _, opens = text:find(USAGE, at)
    if not opens then
      return
    end
    local used = text:sub(opens, opens + LARGEST_USAGE - 1):match("^%b{}")
    if used then
      found(used)
    end
    at = opens + (used and #used or LARGEST_USAGE)
  end
end

-- Whether the last events of a stream say that it is whole: it may also end with an error, or just end.
local function ended(text)
  local line = text:gsub("[\r\n]+$", "")
  line = line:match("^.*[\r\n](.*)$") or line
  if line:find('"error"%s*:%s*[{"]') then
    return false
  end
  return text:find("data: ?%[DONE%]")
    or text:find('"message_stop"', 1, true)
    or text:find('"finish_reason"%s*:%s*"')
    or line:find(USAGE)
end

-- What Envoy hands out is good until the next chunk.
local function note(handle, key, value)
  handle:streamInfo():dynamicMetadata():set("zurelay", key, value)
end

-- A compressed stream goes on as it is; that it came to its end is all there is to say.
local function untouched(handle)
  local pieces = 0
  for chunk in handle:bodyChunks() do
    pieces = pieces + (chunk:length() > 0 and 1 or 0)
    note(handle, "events", pieces)
  end
  note(handle, "whole", "yes")
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local told = headers:get("x-zurelay-passes")
  if not told then
    return
  end
  headers:remove("x-zurelay-passes")
  if headers:get("content-encoding") then
    untouched(handle)
    return
  end
  local facts = handle:streamInfo():dynamicMetadata():get("zurelay")
  local model = '%1"' .. facts["model"]:gsub("%%", "%%%%") .. '"'
  local named, renames = false, true
  local held, over, last = waiting(), false, ""
  local events, due, slot = 0, 1, "usage_first"
  local function used(object)
    note(handle, slot, object)
    slot = "usage_last"
  end
  for chunk in handle:bodyChunks() do
    local size = chunk:length()
    local came = size > 0 and chunk:getBytes(0, size) or ""
    local text = over and came or held.with(came) or ""
    if not over then
      local ends
      ends, over = whole(text)
      if ends < #text and #text - ends <= LARGEST then
        held.add(text:sub(ends + 1))
        text = text:sub(1, ends)
      end
    end
    if renames then
      -- A message is named at its start; whatever has such a field behind it is what the model says.
      local start = not named and text:find('"message_start"', 1, true)
      local escaped = text:find("\\", 1, true) and text:find('"model"%s*:%s*"[^"\\]*\\')
      local found
      text, found = text:gsub(escaped and NAME_ESCAPED or NAME, model, start and 1 or nil)
      named = named or found > 0
      renames = not (start and named)
    end
    local more = count(text)
    if more > 0 then
      events = events + more
      last = text
    end
    if text:find('"usage"', 1, true) and text:find(USAGE) then
      usages(text, used)
      note(handle, "reported", events)
      if told == "drop" then
        text = without_usage(text)
      end
    end
    if events >= due then
      due = events + math.min(events, NOTED)
      note(handle, "events", events)
    end
    if text ~= came then
      chunk:setBytes(text)
    end
  end
  note(handle, "events", events)
  if over or ended(last) then
    note(handle, "whole", "yes")
  end
end
