// An export of each source is imported straight, and again with the importer killed ten times, and a third time. Whatever is
// asked of the projects, they answer the same. A source takes some 30 s of CPU: a run takes one, the nightly run all.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { shareOf } from '../support/nightly.ts'
import { type Pennon, startPennon } from '../support/pennon.ts'
import { testSeed } from '../support/seeded-random.ts'
import { syntheticSources } from '../support/synthetic-exports/synthetic-exports.ts'
import { tempDir } from '../support/temp-dir.ts'
import { describeKills, describeTimes, killCount, killSource } from './killed-imports/kill-source.ts'

const [recordCount, kills] = [12_000, 10]

// Side by side on one service, since an import waits as much as it works.
describe('an import that is killed at random moments, and made a second time', { concurrency: 3 }, () => {
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon()
  })
  after(() => pennon.stop())

  const seed = testSeed()
  for (const source of shareOf(syntheticSources, syntheticSources.length))
    it(`leaves of an export of ${source.name} what a straight one leaves`, async t => {
      t.diagnostic(`SEED=${seed}`)
      const figures = await killSource(pennon, tempDir(t), source, { count: recordCount, kills, seed })
      t.diagnostic(`${figures.records} records, ${figures.eventsStored} events; ${describeTimes(figures.straight)}`)
      t.diagnostic(describeKills(figures.killed))
      assert.ok(killCount(figures.killed.kills) >= 0.8 * kills, describeKills(figures.killed))
      assert.equal(figures.addedBySecondRun, 0)
    })
})
