import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { EncodedRecords, EventLogWriter } from '#ports/event-log.ts'
import { PortError } from '#ports/port-error.ts'
import { silentLogger } from '#telemetry/log.ts'
import { eventually } from '../../tests/support/eventually.ts'
import { guardCapacity } from './capacity.ts'

const records: EncodedRecords = { bytes: new Uint8Array(1), recordCount: 1 }

function guarded(log: Partial<EventLogWriter>, free: { bytes: number }) {
  return guardCapacity({
    log: { append: async () => undefined, close: async () => undefined, ...log },
    freeBytes: async () => free.bytes,
    freeBytesMin: 1000,
    checkEveryMs: 1,
    logger: silentLogger(),
  })
}

describe('the capacity guard', () => {
  it('refuses events while the disk is nearly full and takes them again by itself', async t => {
    const free = { bytes: 10 }
    const { log, capacity } = guarded({}, free)
    t.after(() => capacity.close())
    await eventually(() => capacity.state() === 'disk_low')
    await assert.rejects(log.append('main', records), (error: PortError) => error.code === 'full')
    free.bytes = 5000
    await eventually(() => capacity.state() === 'ok')
    await log.append('main', records)
  })

  it('says what the log said until an append succeeds', async t => {
    let failure: PortError | null = new PortError('event-log', 'full')
    const { log, capacity } = guarded(
      {
        append: async () => {
          if (failure) throw failure
        },
      },
      { bytes: 5000 },
    )
    t.after(() => capacity.close())
    await assert.rejects(log.append('main', records))
    assert.equal(capacity.state(), 'log_full')
    failure = null
    await log.append('main', records)
    assert.equal(capacity.state(), 'ok')
  })
})
