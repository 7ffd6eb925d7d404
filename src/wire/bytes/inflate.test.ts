import assert from 'node:assert/strict'
import { it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { gunzip } from './inflate.ts'

const KiB = 1024

it('the event loop trusts the size that a gzip body announces; a thread decompresses the body regardless of it', () => {
  const large = gzipSync(Buffer.alloc(300 * KiB))
  const lying = gzipSync(Buffer.alloc(100))
  lying.writeUInt32LE(300 * KiB, lying.length - 4)
  const cases: [Buffer, number, string][] = [
    [large, 256 * KiB, 'too_large'],
    [lying, 256 * KiB, 'too_large'],
    [large, 4096 * KiB, 'bytes'],
    [lying, 4096 * KiB, 'broken'],
    [lying.subarray(0, 3), 256 * KiB, 'broken'],
    [Buffer.from('{"no":"gzip"}'), 256 * KiB, 'broken'],
  ]
  for (const [body, bytesMax, kind] of cases) assert.equal(gunzip(body, bytesMax).kind, kind)
})
