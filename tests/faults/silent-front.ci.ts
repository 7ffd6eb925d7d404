// One of several fronts is stopped (SIGSTOP). It may hold the write lock of the log at that moment, and it keeps its
// share of the port's connections: only its supervisor can resolve that.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childProcessesOf } from '../support/child-processes.ts'
import { eventually } from '../support/eventually.ts'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

test('replaces a front that is stopped, and counts it no more until it is', async t => {
  const pennon = await startPennon({ dataFolder: tempDir(t), settings: { PENNON_FRONT_PROCESSES: '2' } })
  t.after(() => pennon.killTree())
  const before = frontsOf(pennon)
  assert.equal(before.length, 2)
  process.kill(before[0]!, 'SIGSTOP')
  await eventually(async () => (await countedFronts(pennon)) === 1, { timeoutMs: 60_000 })
  await eventually(async () => (await countedFronts(pennon)) === 2, { timeoutMs: 60_000 })
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
  assert.equal(await pennon.stop(), 0)
})

function frontsOf(pennon: Pennon): number[] {
  const { work, events } = pennon.childPids()
  return childProcessesOf(pennon.pid).filter(pid => pid !== work && pid !== events)
}

/** Undefined when the connection went to the front that does not answer. */
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
