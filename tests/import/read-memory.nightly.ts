// Files of any size are read as a stream: the memory needed depends on the chunk size and the longest record.

import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, it, type TestContext } from 'node:test'
import { createGzip } from 'node:zlib'
import { createRecordReader } from '#importer/read/read-files.ts'
import { recordBytesMax } from '#importer/read/split-records.ts'
import { tempDir } from '../support/temp-dir.ts'

const MiB = 1024 * 1024
/** Chunks in transit, garbage not yet collected, and the record being assembled. */
const growthBytesMax = 200 * MiB

describe('reading a large file', () => {
  it('half a gigabyte of records needs no more memory than a few records', async t => {
    const line = Buffer.from(`{"event":"Opened","text":"${'x'.repeat(1_000)}"}\n`)
    const lines = Buffer.concat(Array<Buffer>(1_000).fill(line))
    const found = await read(t, { block: lines, times: 500 })
    assert.equal(found.records, 500_000)
    assert.ok(found.growthBytes < growthBytesMax, `${Math.round(found.growthBytes / MiB)} MiB`)
  })

  it('a record above the size limit is not assembled in memory', async t => {
    const found = await read(t, { block: Buffer.alloc(MiB, 'x'), times: 500 })
    assert.deepEqual(found.outcomes, ['record_too_large'])
    assert.ok(found.growthBytes < growthBytesMax + recordBytesMax, `${Math.round(found.growthBytes / MiB)} MiB`)
  })
})

async function read(t: TestContext, { block, times }: { block: Buffer; times: number }) {
  const path = join(tempDir(t), 'large.json.gz')
  const blocks = Readable.from(Array<Buffer>(times).fill(block))
  await pipeline(blocks, createGzip({ level: 1 }), createWriteStream(path))
  const before = process.memoryUsage.rss()
  let records = 0
  let highest = before
  const outcomes: string[] = []
  for await (const { parsed } of createRecordReader({ spool: { folder: dirname(path) } })({ path, object: path })) {
    records++
    if (records % 1_000 === 0) highest = Math.max(highest, process.memoryUsage.rss())
    if ('rejected' in parsed) outcomes.push(parsed.rejected.reason)
  }
  highest = Math.max(highest, process.memoryUsage.rss())
  return { records, growthBytes: highest - before, outcomes }
}
