// Which lines, zips and lists count as complete, and which as truncated.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { parseJsonWithDoubles } from '#core/json.ts'
import { BrokenAnswer } from '#importer/fetch/fetch-faults.ts'
import { zipOf } from '../../../../tests/support/export-stand-in.ts'
import { tempDir } from '../../../../tests/support/temp-dir.ts'
import { checkGzipLines, checkJsonLines, checkZip } from './check-downloads.ts'
import { splitJsonList } from './matomo-visits.ts'

function fileOf(t: TestContext, bytes: Uint8Array): string {
  const path = join(tempDir(t), 'file')
  writeFileSync(path, bytes)
  return path
}

describe('lines of JSON', () => {
  const lines = ['{"a":1}', '{"b":"ä€\\n"}', '{"c":[1,2]}']

  it('are complete exactly if the last non-blank line is, for any chunking, with or without a final line break', async () => {
    const text = lines.join('\n\r\n\n')
    for (const bytes of ['', '\n', '\r\n\n'].map(end => Buffer.from(`${text}${end}`)))
      await fc.assert(
        fc.asyncProperty(fc.array(fc.integer({ min: 0, max: bytes.length })), async cuts => {
          const borders = [0, ...cuts.sort((a, b) => a - b), bytes.length]
          const pieces = borders.slice(1).map((border, index) => bytes.subarray(borders[index], border))
          assert.equal(await checkJsonLines(Readable.from(pieces)), true)
          const broken = Readable.from([...pieces, Buffer.from('{')])
          await assert.rejects(checkJsonLines(broken), /last line/)
        }),
      )
    assert.equal(await checkJsonLines(Readable.from([Buffer.from('\n\r\n')])), false)
  })

  it('are incomplete if the gzip stream or the last line is incomplete', async t => {
    const whole = gzipSync(`${lines.join('\n')}\n`)
    assert.equal(await checkGzipLines(fileOf(t, whole)), true)
    assert.equal(await checkGzipLines(fileOf(t, gzipSync(''))), false)
    for (let length = 1; length < whole.length; length++)
      await assert.rejects(checkGzipLines(fileOf(t, whole.subarray(0, length))), BrokenAnswer, `${length} bytes`)
    for (const end of ['terminated early', '{"d":', 'null x'])
      await assert.rejects(checkGzipLines(fileOf(t, gzipSync(`${lines.join('\n')}\n${end}`))), /last line/)
  })
})

describe('a zip', () => {
  it('is complete only with all its bytes', async t => {
    for (const isZip64 of [false, true]) {
      const whole = await zipOf(['{"a":1}', '{"b":2}', '{"c":3}'], isZip64)
      assert.equal(whole.includes(Buffer.from('504b0606', 'hex')), isZip64)
      await checkZip(fileOf(t, whole))
      for (let length = 0; length < whole.length; length += 7)
        await assert.rejects(checkZip(fileOf(t, whole.subarray(0, length))), BrokenAnswer, `${length} bytes`)
    }
  })

  it('is refused when any byte of its content has changed', async t => {
    const whole = await zipOf(['{"a":1}', '{"b":2}', '{"c":3}'])
    const path = fileOf(t, whole)
    const contentEnd = whole.indexOf(Buffer.from([0x50, 0x4b, 0x01, 0x02]))
    const firstContent = 30 + whole.readUInt16LE(26) + whole.readUInt16LE(28)
    for (let at = firstContent; at < Math.min(contentEnd, firstContent + whole.readUInt32LE(18)); at++) {
      const damaged = Buffer.from(whole)
      damaged[at]! ^= 0x10
      writeFileSync(path, damaged)
      await assert.rejects(checkZip(path), BrokenAnswer, `byte ${at}`)
    }
  })

  it('is refused when its directory does not list all entries', async t => {
    for (const isZip64 of [false, true]) {
      const whole = await zipOf(['{"a":1}', '{"b":2}', '{"c":3}'], isZip64)
      const [first, second] = [whole.indexOf('PK\x01\x02'), whole.lastIndexOf('PK\x01\x02')]
      const shortened = Buffer.concat([whole.subarray(0, first), whole.subarray(second)])
      await assert.rejects(checkZip(fileOf(t, shortened)), /directory of the zip archive is damaged/)
    }
  })

  it('of arbitrary bytes is refused with a BrokenAnswer', async t => {
    const path = fileOf(t, Buffer.alloc(0))
    const end = Buffer.from('504b0506', 'hex')
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.uint8Array({ minLength: 18, maxLength: 18 }),
        async (a, b) => {
          if (b[6] === 0 && b[7] === 0) return // a directory without entries is an empty zip
          writeFileSync(path, Buffer.concat([a, end, b]))
          await assert.rejects(checkZip(path), BrokenAnswer)
        },
      ),
      { numRuns: 50 },
    )
  })
})

it('the elements of a JSON list are returned as their original text', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 1), async (values, indent) => {
      const elements = (await splitJsonList(` ${JSON.stringify(values, null, indent)}\n`))!
      assert.deepEqual(
        elements.map(element => parseJsonWithDoubles(element)),
        parseJsonWithDoubles(JSON.stringify(values)),
      )
      assert.ok(elements.every(element => !element.includes('\n')))
    }),
  )
  assert.deepEqual(await splitJsonList('[{"id":9007199254740993, "x": 1.0},[",]"]]'), [
    '{"id":9007199254740993, "x": 1.0}',
    '[",]"]',
  ])
  for (const text of ['{}', '[1', '[{"a":"]"}', '', 'null']) assert.equal(await splitJsonList(text), null, text)
})
