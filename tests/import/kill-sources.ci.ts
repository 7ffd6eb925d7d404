// An export of each source is imported without interruption, again with the importer killed ten times, and a third
// time. Every query of the projects gives the same answers. A source takes some 30 s of CPU: each CI run takes one, and
// the nightly run all.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { shareOf } from '../support/nightly.ts'
import { startPennon } from '../support/pennon.ts'
import { testSeed } from '../support/seeded-random.ts'
import { startedForTests } from '../support/started-for-tests.ts'
import { syntheticSources } from '../support/synthetic-exports/synthetic-exports.ts'
import { tempDir } from '../support/temp-dir.ts'
import { describeKills, describeTimes, killCount, killSource } from './killed-imports/kill-source.ts'

const [recordCount, kills] = [12_000, 10]

// Run concurrently on one service, since an import waits as much as it works.
describe('an import that is killed at random moments, and repeated', { concurrency: 3 }, () => {
  const pennon = startedForTests(startPennon)

  const seed = testSeed()
  for (const source of shareOf(syntheticSources, syntheticSources.length))
    it(`gives a project equal to that of an uninterrupted import, for ${source.name}`, async t => {
      t.diagnostic(`SEED=${seed}`)
      const figures = await killSource(pennon, tempDir(t), source, { count: recordCount, kills, seed })
      t.diagnostic(`${figures.records} records, ${figures.eventsStored} events; ${describeTimes(figures.straight)}`)
      t.diagnostic(describeKills(figures.killed))
      assert.ok(killCount(figures.killed.kills) >= 0.8 * kills, describeKills(figures.killed))
      assert.equal(figures.addedBySecondRun, 0)
    })
})
