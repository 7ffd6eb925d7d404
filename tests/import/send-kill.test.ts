import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startBatchStandIn } from '../support/batch-stand-in.ts'
import { tempDir } from '../support/temp-dir.ts'
import { assertExactlyOnce, sendAndKill } from './send-kills.ts'

const job = { seed: 3, days: 2, recordsPerDay: 300 }

describe('a sender that is killed', () => {
  for (const step of ['round begun', 'batch answered', 'committed'])
    it(`neither loses nor duplicates events when killed at the step "${step}"`, async t => {
      const standIn = await startBatchStandIn(t)
      const folder = tempDir(t)
      for (const count of [1, 2, 3]) assert.equal(await sendAndKill(folder, standIn.url, job, { step, count }), false)
      assert.ok(await sendAndKill(folder, standIn.url, job, null))
      await assertExactlyOnce(folder, standIn, job)
    })

  it('repeats the same batch when killed before the answer arrives', async t => {
    const standIn = await startBatchStandIn(t)
    const folder = tempDir(t)
    let cuts = 3
    standIn.fault = () => (cuts-- > 0 ? 'cut after taking' : null)
    await sendAndKill(folder, standIn.url, job, { step: 'batch answered', count: 2 })
    await sendAndKill(folder, standIn.url, job, null)
    await assertExactlyOnce(folder, standIn, job)
  })
})
