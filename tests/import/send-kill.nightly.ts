import { describe, it } from 'node:test'
import { startBatchStandIn } from '../support/batch-stand-in.ts'
import { seededRandom, testSeed } from '../support/seeded-random.ts'
import { tempDir } from '../support/temp-dir.ts'
import { assertExactlyOnce, sendAndKill } from './send-kills.ts'

describe('a sender that is killed at random', () => {
  it('sends every event to the service exactly once, despite lost connections and refusals', async t => {
    const seed = testSeed()
    t.diagnostic(`SEED=${seed}`)
    const random = seededRandom(seed)
    const job = { seed: seed % 1_000, days: 20, recordsPerDay: 1_000 }
    const standIn = await startBatchStandIn(t)
    const folder = tempDir(t)
    standIn.fault = () => {
      const chance = random()
      if (chance < 0.03) return 'cut'
      if (chance < 0.06) return 'cut after taking'
      return chance < 0.08 ? { status: 503, headers: { 'retry-after': '0.05' } } : null
    }
    for (let kills = 0; kills < 30; kills++) {
      const afterMs = 150 + Math.floor(random() * 800)
      if (await sendAndKill(folder, standIn.url, job, { afterMs })) break
    }
    await sendAndKill(folder, standIn.url, job, null)
    await assertExactlyOnce(folder, standIn, job)
  })
})
