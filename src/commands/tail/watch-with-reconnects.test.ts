import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LiveViewEnd } from './live-view.ts'
import { watchWithReconnects } from './watch-with-reconnects.ts'

const cut: LiveViewEnd = { isFinal: false, reason: 'cut' }
const deleted: LiveViewEnd = { isFinal: true, reason: 'deleted' }

/**
 * Runs views that are open for some ms, or never (null), and then end as given.
 * @returns what happened, with pauses.
 */
async function run(views: readonly (readonly [openMs: number | null, end: LiveViewEnd])[]) {
  let nowMs = 0
  let at = 0
  const reported: string[] = []
  const pauses: number[] = []
  const end = await watchWithReconnects({
    watch: async onReady => {
      const [openMs, ended] = views[at++]!
      if (openMs !== null) {
        onReady()
        nowMs += openMs
      }
      return ended
    },
    onLost: reason => void reported.push(`lost: ${reason}`),
    onBack: afterMs => void reported.push(`back after ${afterMs}`),
    sleep: async ms => {
      pauses.push(ms)
      nowMs += ms
    },
    random: () => 0.5,
    monotonicNowMs: () => nowMs,
  })
  return { end, reported, pauses, tried: at }
}

describe('a broken live view', () => {
  it('is reopened with growing pauses, and the loss and the return are each reported once', async () => {
    const { reported, pauses, end } = await run([
      [60_000, cut],
      [null, { isFinal: false, reason: 'refused' }],
      [null, { isFinal: false, reason: 'it answered 503' }],
      [60_000, { isFinal: false, reason: 'stopping' }],
      [0, deleted],
    ])
    assert.deepEqual(reported, ['lost: cut', 'back after 2625', 'lost: stopping', 'back after 375'])
    assert.deepEqual(pauses, [375, 750, 1_500, 375])
    assert.deepEqual(end, { reason: 'deleted', wasOpen: true })
  })

  it('waits as long as the instance asks, or else at most 5 s in the first minute and 30 s later', async () => {
    const away = Array.from({ length: 23 }, () => [null, cut] as const)
    const { pauses } = await run([[20_000, { ...cut, retryAfterMs: 5_000 }], ...away, [null, deleted]])
    const firstMinute = [5_000, 750, 1_500, 3_000, ...Array(14).fill(3_750)]
    assert.deepEqual(pauses, [...firstMinute, 7_500, 15_000, 22_500, 22_500, 22_500, 22_500])
  })

  it('measures the first minute from when the silence was noticed, but the outage from the last received byte', async () => {
    const away = Array.from({ length: 12 }, () => [null, cut] as const)
    const { reported, pauses } = await run([[60_000, { ...cut, silentMs: 45_000 }], ...away, [0, deleted]])
    assert.deepEqual(pauses.slice(-3), [3_750, 3_750, 3_750])
    const awayMs = pauses.reduce((sum, pause) => sum + pause, 0)
    assert.ok(awayMs < 60_000, String(awayMs))
    assert.deepEqual(reported, ['lost: cut', `back after ${45_000 + awayMs}`])
  })

  it('is reopened less and less often if it breaks again immediately', async () => {
    const { pauses } = await run([
      [0, cut],
      [10, cut],
      [10, cut],
      [10_000, cut],
      [null, deleted],
    ])
    assert.deepEqual(pauses, [375, 750, 1_500, 375])
    const flapping = Array.from({ length: 24 }, () => [10, cut] as const)
    assert.equal((await run([...flapping, [null, deleted]])).pauses.at(-1), 22_500)
  })

  it('is not reopened if it never opened, or if its end is final', async () => {
    assert.deepEqual(await run([[null, cut]]), {
      end: { reason: 'cut', wasOpen: false },
      reported: [],
      pauses: [],
      tried: 1,
    })
    assert.deepEqual((await run([[5, deleted]])).reported, [])
  })
})
