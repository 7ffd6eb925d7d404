// The log is restored from a copy older than the state: events accepted afterwards are processed as usual.

import assert from 'node:assert/strict'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

test('events accepted after the log was restored from an older copy are processed', async t => {
  const dataFolder = tempDir(t)
  const [log, copy] = [join(dataFolder, 'log'), join(dataFolder, 'copy')]
  await running(dataFolder, pennon => capture(pennon, 'first'))
  cpSync(log, copy, { recursive: true })
  await running(dataFolder, pennon => capture(pennon, 'second'))
  rmSync(log, { recursive: true })
  cpSync(copy, log, { recursive: true })

  await running(dataFolder, async pennon => {
    await capture(pennon, 'third')
    assert.match(pennon.output(), /"endOffset":20,"firstOffset":40.*ends before the position of the state/)
    const { lanes } = await pennon.api<{ lanes: unknown }>('GET', '/api/projects/@current/ingestion_status/')
    assert.match(JSON.stringify(lanes), /"main":\{"appended":60,"processed":60/)
    const expected = ['first', 'second', 'third'].flatMap(event => Array<string>(20).fill(event))
    assert.deepEqual(await pennon.eventNames(), expected)
  })
})

async function running(dataFolder: string, work: (pennon: Pennon) => Promise<void>): Promise<void> {
  const pennon = await startPennon({ dataFolder })
  try {
    await work(pennon)
  } finally {
    await pennon.stop()
  }
}

async function capture(pennon: Pennon, event: string): Promise<void> {
  const batch = Array.from({ length: 20 }, () => ({ event, distinct_id: 'ada' }))
  const answer = await pennon.post('/batch/', { api_key: testProjectKey, batch })
  assert.equal(answer.status, 200, await answer.text())
  await pennon.caughtUp()
}
