/** The algorithms as Redis runs them: how each reads, spends and writes the text of a counter. */

/**
 * The algorithms are those that `Hit` describes. Lua's numbers are those of JavaScript, so that counters in memory and in
 * Redis agree to the last digit.
 * Wants as `ARGV[1]` the time in microseconds, or -1 for the server's own. Gives `nowUs`, `nowMs`, and `algorithms` by name:
 * `read` makes the state of a text, of '' a new one, which `write` makes a text again; `hold`, where there is one, must
 * come before `room`, and `add` takes hits or with less than 0 gives them back.
 * Values are texts of whole numbers: `window count`, `window current before` and, of a bucket, its `tat`.
 */
export const algorithmsScript = `
local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min
local format = string.format
local nowUs = tonumber(ARGV[1])
if nowUs < 0 then
  local time = redis.call('TIME')
  nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local nowMs = floor(nowUs / 1000)

-- A clock that steps back over a border stays in the window it was in.
local function windowAfter(last, windowMs)
  local number = floor(nowMs / windowMs)
  if number == last - 1 then return last end
  return number
end

local fixed = {}
function fixed.read(text, hit)
  local number, count = string.match(text, '^(%d+) (%d+)$')
  local last = tonumber(number or -1)
  local current = windowAfter(last, hit.windowMs)
  local isSame = current == last
  return { number = current, count = isSame and tonumber(count) or 0, keepsLifetime = isSame }
end
function fixed.room(state, hit) return hit.limit - state.count end
function fixed.add(state, hit, hits) state.count = state.count + hits end
function fixed.untilRestored(state, hit) return (state.number + 1) * hit.windowMs - nowMs end
fixed.untilFits = fixed.untilRestored
fixed.lifetime = fixed.untilRestored
function fixed.write(state) return format('%.0f %.0f', state.number, state.count) end

local sliding = {}
function sliding.read(text, hit)
  local number, current, before = string.match(text, '^(%d+) (%d+) (%d+)$')
  local last = tonumber(number or -1)
  local state = { number = windowAfter(last, hit.windowMs), current = 0, before = 0 }
  if number and state.number == last then
    state.current, state.before, state.keepsLifetime = tonumber(current), tonumber(before), true
  elseif number and state.number == last + 1 then
    state.before = tonumber(current)
  end
  return state
end
local function restMs(state, hit) return min(hit.windowMs, (state.number + 1) * hit.windowMs - nowMs) end
function sliding.room(state, hit)
  return hit.limit - state.current - ceil(state.before * restMs(state, hit) / hit.windowMs)
end
function sliding.add(state, hit, hits) state.current = state.current + hits end
function sliding.untilRestored(state, hit)
  if state.current > 0 then return restMs(state, hit) + hit.windowMs end
  return state.before > 0 and restMs(state, hit) or 0
end
function sliding.untilFits(state, hit)
  if hit.hits > hit.limit then return sliding.untilRestored(state, hit) end
  local room = hit.limit - hit.hits - state.current
  if room >= 0 then
    return state.before > 0 and restMs(state, hit) - floor(room * hit.windowMs / state.before) or 0
  end
  -- In the next window, where what is current now is before.
  local overlapMs = floor((hit.limit - hit.hits) * hit.windowMs / state.current)
  return restMs(state, hit) + max(0, hit.windowMs - overlapMs)
end
function sliding.lifetime(state, hit) return (state.number + 2) * hit.windowMs - nowMs end
function sliding.write(state) return format('%.0f %.0f %.0f', state.number, state.current, state.before) end

local bucket = {}
local function intervalUs(hit) return ceil(hit.windowMs * 1000 / hit.limit) end
function bucket.read(text) return { tat = tonumber(text) or 0 } end
-- Further ahead was a clock that has been set back since, or a larger bucket: unless that is put right, all are denied
-- until it is there again. Decisions of one call may know buckets of different size, after a reload.
function bucket.hold(state, hit)
  local full = hit.limit > 0 and hit.burst * intervalUs(hit) or 0
  state.corrected = state.corrected or state.tat > nowUs + full
  state.tat = max(nowUs, min(state.tat, nowUs + full))
end
function bucket.room(state, hit)
  if hit.limit == 0 then return 0 end
  return floor((hit.burst * intervalUs(hit) - (state.tat - nowUs)) / intervalUs(hit))
end
function bucket.add(state, hit, hits)
  if hits ~= 0 then state.tat = state.tat + hits * intervalUs(hit) end
end
function bucket.untilRestored(state) return ceil((state.tat - nowUs) / 1000) end
function bucket.untilFits(state, hit)
  if hit.limit == 0 or hit.hits > hit.burst then return bucket.untilRestored(state) end
  return ceil((state.tat + (hit.hits - hit.burst) * intervalUs(hit) - nowUs) / 1000)
end
bucket.lifetime = bucket.untilRestored
function bucket.write(state) return format('%.0f', state.tat) end

local algorithms = { fixed_window = fixed, sliding_window = sliding, token_bucket = bucket }
`;
