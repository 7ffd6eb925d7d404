// The tests of `kill-sources.ci.ts`: some sources side by side on one service, since an import waits as much as it works.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { type Pennon, startPennon } from '../pennon.ts'
import { seededRandom, testSeed } from '../seeded-random.ts'
import { syntheticSources } from '../synthetic-exports/synthetic-exports.ts'
import type { SyntheticSource } from '../synthetic-exports/synthetic-source.ts'
import { tempDir } from '../temp-dir.ts'
import { killCount, killSource, killsInWords, timesInWords } from './kill-source.ts'

interface KillSuiteOptions {
  readonly sourceCount: number
  readonly recordCount: number
  readonly kills: number
}

export function killSuite({ sourceCount, recordCount, kills }: KillSuiteOptions): void {
  describe('an import that is killed at random moments, and made a second time', { concurrency: 3 }, () => {
    let pennon: Pennon
    before(async () => {
      pennon = await startPennon()
    })
    after(() => pennon.stop())

    const seed = testSeed()
    for (const source of someOf(syntheticSources, sourceCount, seed))
      it(`leaves of an export of ${source.name} what a straight one leaves`, async t => {
        t.diagnostic(`SEED=${seed}`)
        const figures = await killSource(pennon, tempDir(t), source, { count: recordCount, kills, seed })
        t.diagnostic(`${figures.records} records, ${figures.eventsStored} events; ${timesInWords(figures.straight)}`)
        t.diagnostic(killsInWords(figures.killed))
        assert.ok(killCount(figures.killed.kills) >= 0.8 * kills, killsInWords(figures.killed))
        assert.equal(figures.addedBySecondRun, 0)
      })
  })
}

function someOf(sources: readonly SyntheticSource[], count: number, seed: number): readonly SyntheticSource[] {
  const random = seededRandom(seed)
  return sources
    .map(source => ({ source, place: random() }))
    .toSorted((a, b) => a.place - b.place)
    .slice(0, count)
    .map(({ source }) => source)
}
