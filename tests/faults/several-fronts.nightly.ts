// Several fronts on one data folder: what they must agree on, and what happens when one of them is stopped (SIGSTOP).
// At that moment it may hold the write lock of the log, and it keeps its share of the port's connections: only its
// supervisor can resolve that.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { assertOneVisitorOnAllFronts, frontsOf, visitorTraces } from '../support/same-visitor-on-fronts.ts'
import { searchFiles } from '../support/search-files.ts'
import { tempDir } from '../support/temp-dir.ts'

describe('several fronts', () => {
  const dataFolder = tempDir({ after })
  let pennon: Pennon
  before(async () => {
    pennon = await startPennon({
      dataFolder,
      settings: { PENNON_FRONT_PROCESSES: '2', PENNON_LOG_LEVEL: 'debug' },
    })
  })
  after(() => pennon?.killTree())

  it('give a cookieless visitor one id, in events and flags, even if several create the salt at the same time', async () => {
    await assertOneVisitorOnAllFronts(pennon)
  })

  it('replace a stopped front, and are counted without it until it is replaced', async () => {
    const before = frontsOf(pennon)
    assert.equal(before.length, 2)
    process.kill(before[0]!, 'SIGSTOP')
    await eventually(async () => (await countedFronts(pennon)) === 1)
    await eventually(async () => (await countedFronts(pennon)) === 2)
    const now = frontsOf(pennon)
    assert.equal(now.length, 2)
    assert.ok(!now.includes(before[0]!) && now.includes(before[1]!), `${before} became ${now}`)
    const sent = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        pennon.post(
          '/capture/',
          { api_key: testProjectKey, event: 'after', distinct_id: `u${index}` },
          { connection: 'close' },
        ),
      ),
    )
    assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([200]))
    assert.match(pennon.output(), /"child":"front","silentAfterMs":12000/)
  })

  it('write neither the address nor the user agent of a cookieless visitor to a file or to output', async () => {
    assert.equal(await pennon.stop(), 0)
    const found = searchFiles(dataFolder, [...visitorTraces, 'seen 1'])
    for (const trace of visitorTraces) {
      assert.deepEqual(found.get(trace), [])
      assert.ok(!pennon.output().includes(trace))
    }
    assert.ok(found.get('seen 1')!.length > 1)
  })
})

/** Undefined when the connection went to the stopped front. */
async function countedFronts({ url }: Pennon): Promise<number | undefined> {
  try {
    const response = await fetch(`${url}/metrics`, {
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(2_000),
    })
    return Number(/^pennon_processes\{process="front"\} (\d+)$/m.exec(await response.text())?.[1])
  } catch {
    return undefined
  }
}
