import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createForwardClock, type FetchClock, sleepUntil } from './fetch-clock.ts'

/** A machine whose clock is set back by `setBackMs` in the middle of a wait. */
function machine(setBackAfterMs: number, setBackMs: number) {
  let [sleptMs, offMs] = [0, 0]
  const clock: FetchClock = {
    nowMs: createForwardClock(() => 1_000_000_000 + sleptMs - offMs),
    sleep: async ms => {
      sleptMs += ms
      if (sleptMs >= setBackAfterMs) offMs = setBackMs
    },
    random: () => 0.5,
  }
  return { clock, sleptMs: () => sleptMs }
}

it('setting the clock back during a wait does not lengthen it', async () => {
  const { clock, sleptMs } = machine(20_000, 86_400_000)
  const untilMs = clock.nowMs() + 60_000
  await sleepUntil(clock, () => untilMs, new AbortController().signal)
  // Only the step in which it happens is repeated.
  assert.ok(sleptMs() <= 65_000, `${sleptMs()}`)
})

it("a forward clock follows the machine's clock again once that has caught up", () => {
  const shown = [10, 20, 5, 6, 15, 30, 31]
  const now = createForwardClock(() => shown.shift()!)
  assert.deepEqual(Array.from({ length: 7 }, now), [10, 20, 20, 21, 30, 30, 31])
})
