-- Streams that pass through (docs/passthrough.md): the sidecar has left them, what is still to be done is done here.
-- Events go on whole: a model's other name and a chunk that the client didn't ask for can't hide in two halves.
-- What was used goes into the metadata that the access log sends to the sidecar.

local LARGEST = 1048576 -- bytes of an event that is waited for; a larger one goes on in pieces
local LARGEST_USAGE = 4096
local NOTED = 64 -- events between two notes of how many there were, for a stream that breaks off

-- Where the last whole event of a text ends; 0 where none does.
local function whole(text)
  if text:sub(-2) == "\n\n" or text:sub(-4) == "\r\n\r\n" then
    return #text
  end
  local plain, crlf = text:match("^.*\n\n()"), text:match("^.*\r\n\r\n()")
  local ends = math.max(plain or 1, crlf or 1) - 1
  -- The last event needs no end: what is behind it is nothing.
  if text:find("^data: ?%[DONE%]", ends + 1) then
    return #text
  end
  return ends
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

-- Without the chunk that has nothing but the usage.
local function without_usage(text)
  local kept = {}
  for event, blank in (text .. "\n\n"):gmatch("(.-)(\r?\n\r?\n)") do
    local alone = event:find('"usage": ?{') and event:find('"choices": ?%[%s*%]')
    if event ~= "" and not alone then
      kept[#kept + 1] = event .. blank
    end
  end
  return table.concat(kept)
end

-- What Envoy hands out is good until the next chunk.
local function note(handle, key, value)
  handle:streamInfo():dynamicMetadata():set("zurelay", key, value)
end

function envoy_on_response(handle)
  local headers = handle:headers()
  local told = headers:get("x-zurelay-passes")
  if not told then
    return
  end
  headers:remove("x-zurelay-passes")
  if headers:get("content-encoding") then
    return
  end
  local facts = handle:streamInfo():dynamicMetadata():get("zurelay")
  local model = '%1"' .. facts["model"]:gsub("%%", "%%%%") .. '"'
  local renames = nil -- not known before the first event that names a model
  local rest, events, noted, slot = "", 0, 0, "usage_first"
  for chunk in handle:bodyChunks() do
    local size = chunk:length()
    local text = size > 0 and chunk:getBytes(0, size) or ""
    local changed = rest ~= ""
    if changed then
      text = rest .. text
      rest = ""
    end
    local ends = whole(text)
    if ends < #text and #text - ends <= LARGEST then
      rest = text:sub(ends + 1)
      text = text:sub(1, ends)
      changed = true
    end
    if renames ~= false then
      local named, found = text:gsub('("model": ?)"[^"\\]*"', model)
      if renames == nil and found > 0 then
        renames = named ~= text
      end
      if renames then
        text = named
        changed = true
      end
    end
    events = events + count(text)
    if text:find('"usage":{', 1, true) or text:find('"usage": {', 1, true) then
      for used in text:gmatch('"usage": ?(%b{})') do
        if #used <= LARGEST_USAGE then
          note(handle, slot, used)
          slot = "usage_last"
        end
      end
      if told == "drop" then
        text = without_usage(text)
        changed = true
      end
    end
    if events >= noted + NOTED then
      noted = events
      note(handle, "events", events)
    end
    if changed then
      chunk:setBytes(text)
    end
  end
  note(handle, "events", events)
  note(handle, "whole", "yes")
end
