// Which bytes the stage is asked to allow before they are written, and what the file holds when it refuses them.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { FetchWait } from '#importer/fetch/fetch-faults.ts'
import type { PartTools } from '#importer/fetch/fetch-source.ts'
import { toPartFile } from '#importer/fetch/part-file.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import { downloadGzip, writeBody, writeLines } from './written-part.ts'

/** @param spaceBytes how many bytes are allowed. */
function toolsOf(t: TestContext, spaceBytes: number) {
  const file = toPartFile(tempDir(t), 'a')
  let [announced, received] = [0, 0]
  const tools: PartTools = {
    file,
    signal: new AbortController().signal,
    takeCall: async () => undefined,
    willWrite: bytes => {
      announced += bytes
      if (announced > spaceBytes) throw new FetchWait('the disk is full')
    },
    received: bytes => {
      received += bytes
    },
    savedBytes: 0,
    saveBytes: () => undefined,
    warn: () => undefined,
  }
  return { tools, announced: () => announced, received: () => received, writtenBytes: () => statSync(file.path).size }
}

const block = 64 * 1024
const bodyOf = (chunks: readonly Buffer[]) => Readable.from(chunks) as IncomingMessage
const noise = () => Array.from({ length: 20 }, () => randomBytes(block))
const answerOf = (chunks: readonly Buffer[]) => ({
  status: 200,
  headers: {},
  body: bodyOf(chunks),
  reach: 'loopback' as const,
})

describe('the bytes of a download', () => {
  it('are announced as they are written: a plain download unchanged, and a compressed one after compression', async t => {
    const plain = toolsOf(t, Infinity)
    await writeBody(bodyOf(noise()), plain.tools)
    assert.deepEqual([plain.announced(), plain.writtenBytes()], [20 * block, 20 * block])
    const packed = toolsOf(t, Infinity)
    await downloadGzip(answerOf(Array.from({ length: 20 }, () => Buffer.alloc(block))), packed.tools)
    assert.equal(packed.announced(), packed.writtenBytes())
    assert.ok(packed.announced() < block)
  })

  it('of lines are counted in UTF-8 for progress, and after compression for the disk', async t => {
    const { tools, announced, received, writtenBytes } = toolsOf(t, Infinity)
    const lines = async function* () {
      yield ['{"a":"é€"}', '{}']
    }
    assert.equal(await writeLines(lines(), tools), 2)
    assert.equal(received(), Buffer.byteLength('{"a":"é€"}\n{}\n'))
    assert.equal(announced(), writtenBytes())
  })

  it('are not written beyond the available space', async t => {
    const ways: ((tools: PartTools) => Promise<unknown>)[] = [
      tools => writeBody(bodyOf(noise()), tools),
      tools => downloadGzip(answerOf(noise()), tools),
      tools => writeLines(pages(), tools),
    ]
    for (const download of ways) {
      const { tools, writtenBytes } = toolsOf(t, 5 * block)
      await assert.rejects(download(tools), new FetchWait('the disk is full'))
      assert.ok(writtenBytes() <= 5 * block, `${writtenBytes()}`)
    }
  })
})

async function* pages() {
  for (const bytes of noise()) yield [bytes.toString('latin1').replaceAll('\n', ' ')]
}
