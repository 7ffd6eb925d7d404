// Usage and exposure of flags over HTTP, on the real engine, against a plain count of the same calls.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { eventStoreForTests } from '../support/event-store-for-tests.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { countsOf, exposureOf, startFlagServer } from './flag-calls-server.ts'
import { createCallsWorld, plainExposure, plainUsage, wallClock } from './flag-calls-world.ts'

let nowMs = 1_800_000_000_000
const events = eventStoreForTests({ clock: { nowMs: () => ++nowMs } })
const at = (text: string) => Date.parse(text)
let jobCount = 1

const variants = ['control', 'test']
const flag = {
  filters: {
    groups: [{ properties: [], rollout_percentage: 100 }],
    multivariate: { variants: variants.map(key => ({ key, rollout_percentage: 50 })) },
  },
}

describe('usage and exposure of flags', () => {
  for (const timezone of ['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Adelaide'])
    it(`equal a plain count over repeats, merges, imports and deduplicated calls, in ${timezone}`, async t => {
      const { projectId, answer } = await startFlagServer(t, events.store, { timezone, flag })
      const seed = testSeed()
      t.diagnostic(`SEED=${seed}`)
      const random = seededRandom(seed)
      // Clocks change in New York on 8 March, in Berlin on 29 March, in Adelaide on 5 April.
      const [fromMs, endMs] = [at('2026-03-06T00:00:00Z'), at('2026-04-07T00:00:00Z')]
      const newJob = () => ++jobCount
      const world = createCallsWorld({ store: events.store, projectId, random, fromMs, endMs, newJob })
      const check = async (when: string) => {
        for (const interval of ['hour', 'day'] as const) {
          const expected = plainUsage(world.calls(), 'beta', wallClock(timezone, interval))
          const range = '?date_from=2026-03-01&date_to=2026-04-10'
          assert.deepEqual(countsOf(await answer('usage', `${range}&interval=${interval}`), interval), expected, when)
          const exposed = plainExposure(
            world.calls().filter(({ isImported }) => !isImported),
            'beta',
            variants,
            wallClock(timezone, interval),
          )
          const exposure = exposureOf(await answer('exposure', `${range}&interval=${interval}`), interval)
          assert.deepEqual(exposure, exposed, when)
        }
      }
      for (let step = 0; step < 20; step++) {
        const name = await world.step()
        if (step % 5 === 0) await check(`after step ${step}, ${name}`)
      }
      await check('at the end')
      await world.sendAgain()
      await check('after every call was sent again')
      await events.optimize('events', 'deduplicated_flag_calls', 'person_distinct_id_overrides')
      await check('after the parts were merged')
    })
})
