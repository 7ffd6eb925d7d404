// The tests of `kill-….ci.ts`: some sources side by side on one service, since an import waits as much as it works.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Pennon, startPennon } from '../pennon.ts'
import { testSeed } from '../seeded-random.ts'
import { syntheticSources } from '../synthetic-exports/synthetic-exports.ts'
import { tempDir } from '../temp-dir.ts'
import { killCount, killSource, killsInWords, timesInWords } from './kill-source.ts'

const recordCount = 2_000
const kills = 10

export function killSuite(names: readonly string[]): void {
  describe('an import that is killed at random moments, and made a second time', { concurrency: 2 }, () => {
    let pennon: Pennon
    before(async () => {
      pennon = await startPennon()
    })
    after(() => pennon.stop())

    for (const name of names)
      it(`leaves of an export of ${name} what a straight one leaves`, async t => {
        const seed = testSeed()
        t.diagnostic(`SEED=${seed}`)
        const source = syntheticSources.find(each => each.name === name)!
        const figures = await killSource(pennon, tempDir(t), source, { count: recordCount, kills, seed })
        t.diagnostic(`${figures.records} records, ${figures.eventsStored} events; ${timesInWords(figures.straight)}`)
        t.diagnostic(killsInWords(figures.killed))
        assert.ok(killCount(figures.killed.kills) >= 8, killsInWords(figures.killed))
        assert.equal(figures.addedBySecondRun, 0)
      })
  })
}
