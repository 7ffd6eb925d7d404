import assert from 'node:assert/strict'
import { mkdirSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { DiskSpace } from './disk-space.ts'
import { embeddedStreamNames } from './embedded-streams.ts'

describe('DiskSpace', () => {
  it('names the exceeded limit in a refusal: the log’s, the disk’s, or both', t => {
    const folder = logFolder(t)
    const refusal = (logBytesMax: number, minFreeBytes: number) =>
      new DiskSpace({ folder, logBytesMax, minFreeBytes }).refusal(100)
    const beyond = 10 ** 18
    assert.equal(refusal(1_000, 0), null)
    assert.match(refusal(10, 0)!, /^the log .*PENNON_LOG_MAX_BYTES, of 10 bytes$/)
    assert.match(
      refusal(1_000, beyond)!,
      /^the disk has less free space than PENNON_MIN_FREE_BYTES, 1000000000000000000 bytes/,
    )
    assert.match(refusal(10, beyond)!, /PENNON_LOG_MAX_BYTES.* and .*PENNON_MIN_FREE_BYTES/)
  })

  it('deducts the bytes written', t => {
    const folder = logFolder(t)
    const space = new DiskSpace({ folder, logBytesMax: 1_000, minFreeBytes: 0 })
    assert.equal(space.refusal(600), null)
    space.wrote(600)
    assert.match(space.refusal(600)!, /PENNON_LOG_MAX_BYTES/)
    assert.equal(space.refusal(400), null)
  })

  it('limits imports to half of the log, and live events to the rest', t => {
    const folder = logFolder(t)
    const space = () => new DiskSpace({ folder, logBytesMax: 1_000, minFreeBytes: 0 })
    assert.equal(space().importRefusal(500), null)
    assert.match(space().importRefusal(501)!, /half of PENNON_LOG_MAX_BYTES/)
    writeFileSync(join(folder, 'main', 'segment'), Buffer.alloc(450))
    assert.equal(space().importRefusal(500), null, 'live events do not take of the share of imports')
    writeFileSync(join(folder, 'historical', 'segment'), Buffer.alloc(450))
    assert.equal(space().importRefusal(50), null)
    assert.match(space().importRefusal(51)!, /half of PENNON_LOG_MAX_BYTES/)
    assert.equal(space().refusal(100), null)
  })

  it('limits imports to half of the disk space above the reserve', t => {
    const folder = logFolder(t)
    const { bavail, bsize } = statfsSync(folder)
    const aboveReserve = 64 * 1024 * 1024
    const limits = { folder, logBytesMax: 10 ** 15, minFreeBytes: bavail * bsize - aboveReserve }
    assert.match(new DiskSpace(limits).importRefusal(48 * 1024 * 1024)!, /of the disk/)
    assert.equal(new DiskSpace(limits).refusal(1024 * 1024), null)
  })
})

function logFolder(t: TestContext): string {
  const folder = tempDir(t)
  for (const stream of embeddedStreamNames) mkdirSync(join(folder, stream))
  return folder
}
