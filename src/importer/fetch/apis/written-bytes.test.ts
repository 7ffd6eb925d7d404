// Which bytes the stage is asked to allow before they are written, and what the file holds when it refuses them.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, it } from 'node:test'
import { FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { createPartTools } from '../../../../tests/support/fetching.ts'
import { downloadGzip, writeBodyToPart, writePageLines } from './api-request.ts'

const block = 64 * 1024
const bodyOf = (chunks: readonly Buffer[]) => Readable.from(chunks) as IncomingMessage
const noise = () => Array.from({ length: 20 }, () => randomBytes(block))
const answerOf = (chunks: readonly Buffer[]) => ({
  status: 200,
  headers: {},
  body: bodyOf(chunks),
  reach: 'loopback' as const,
})

describe('the byte counts of a download', () => {
  it('are the bytes written: the downloaded ones if stored unchanged, otherwise those after compression', async t => {
    const plain = createPartTools(t)
    await writeBodyToPart(bodyOf(noise()), plain.tools)
    assert.deepEqual([plain.seen.announced, plain.seen.written()], [20 * block, 20 * block])
    const packed = createPartTools(t)
    await downloadGzip(answerOf(Array.from({ length: 20 }, () => Buffer.alloc(block))), packed.tools)
    assert.equal(packed.seen.announced, packed.seen.written())
    assert.ok(packed.seen.announced < block)
  })

  it('of lines are those of the UTF-8 text for progress, and those after compression for the disk', async t => {
    const { tools, seen } = createPartTools(t)
    const lines = async function* () {
      yield ['{"a":"é€"}', '{}']
    }
    assert.equal(await writePageLines(lines(), tools), 2)
    assert.equal(seen.received, Buffer.byteLength('{"a":"é€"}\n{}\n'))
    assert.equal(seen.announced, seen.written())
  })

  it('stay within the free disk space: a download stops before it writes more', async t => {
    const ways: ((tools: PartTools) => Promise<unknown>)[] = [
      tools => writeBodyToPart(bodyOf(noise()), tools),
      tools => downloadGzip(answerOf(noise()), tools),
      tools => writePageLines(pages(), tools),
    ]
    for (const download of ways) {
      const { tools, seen } = createPartTools(t, 5 * block)
      await assert.rejects(download(tools), new FetchWait('the disk is full'))
      assert.ok(seen.written() <= 5 * block, `${seen.written()}`)
    }
  })
})

async function* pages() {
  for (const bytes of noise()) yield [bytes.toString('latin1').replaceAll('\n', ' ')]
}
