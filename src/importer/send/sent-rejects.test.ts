import assert from 'node:assert/strict'
import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, it, type TestContext } from 'node:test'
import { memoryStagedJob } from '../../../tests/support/memory-staged-job.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { JobFolder } from '../job/job-folder.ts'
import { nameSentRejectsFile } from '../stages/reject-files.ts'
import type { RefusedEvent } from './deliver-batch.ts'
import { appendRejects, readSentRejects } from './sent-rejects.ts'

const id = '2024-05-01/0'

describe('the rejects of sending', () => {
  it('count up to the length in the checkpoint, and half a line after that is cut off', async t => {
    const { folder, path, length } = await withReject(t)
    appendFileSync(path, '{"part":"2024-05-01/0","obj')
    assert.deepEqual(await reasons(folder, length), ['server_refused:bad_thing'])
    assert.equal(appendRejects(folder, id, length, 'memory', [await refusedEvent('other')]), 2 * length - 4)
    assert.deepEqual(await reasons(folder, 2 * length - 4), ['server_refused:bad_thing', 'server_refused:other'])
  })

  it('do not count if the checkpoint includes none', async t => {
    const { folder } = await withReject(t)
    assert.deepEqual(await reasons(folder, 0), [])
  })

  it('are not split at a Unicode line separator', async t => {
    const { folder, path } = await withReject(t)
    const text = `${JSON.stringify({ ...JSON.parse(readFileSync(path, 'utf8')), source: 'a\u2028b' })}\n`
    writeFileSync(path, text)
    assert.deepEqual(await reasons(folder, Buffer.byteLength(text)), ['server_refused:bad_thing'])
  })

  it('stop the job with a remedy if the file is shorter than the checkpoint says, and are not padded with zeros', async t => {
    const { folder, path, length } = await withReject(t)
    truncateSync(path, length - 5)
    const damaged = /0\.sent\.jsonl is damaged\. Restore it from a copy, or delete checkpoint\.json and run again/
    await assert.rejects(reasons(folder, length), damaged)
    const refused = await refusedEvent('other')
    assert.throws(() => appendRejects(folder, id, length, 'memory', [refused]), damaged)
    appendFileSync(path, 'x'.repeat(5))
    await assert.rejects(reasons(folder, length), damaged)
  })
})

async function withReject(t: TestContext) {
  const folder = new JobFolder(tempDir(t))
  const length = appendRejects(folder, id, 0, 'memory', [await refusedEvent('bad_thing')])
  return { folder, path: nameSentRejectsFile(folder, id), length }
}

async function refusedEvent(reason: string): Promise<RefusedEvent> {
  const job = memoryStagedJob({ seed: 7, days: 1, recordsPerDay: 10 })
  for await (const outcome of job.readPart(job.parts[0]!)) {
    if (outcome.result.kind !== 'events') continue
    const outgoing = { outcome, event: outcome.result.events[0]!, text: '', bytes: 0 }
    return { outgoing, reason: `server_refused:${reason}`, field: null, detail: null }
  }
  throw new Error('no record gives an event')
}

async function reasons(folder: JobFolder, bytes: number): Promise<string[]> {
  const found: string[] = []
  for await (const { reject } of readSentRejects(folder, { id, rejects_bytes: bytes })) found.push(reject.reason)
  return found
}
