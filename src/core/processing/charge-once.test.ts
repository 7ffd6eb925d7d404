import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { aStoredEvent, imported } from '../../../tests/support/values.ts'
import { buildIdentityKey } from '../events/stored-event.ts'
import { chargeLateEventsOnce, findLateLiveEvents } from './charge-once.ts'

const at = (text: string) => Date.parse(`${text}Z`)
const happenedMs = at('2026-11-05T23:59:59.999')
const event = aStoredEvent({ timestampMs: happenedMs, capturedAtMs: at('2026-11-06T00:00:00') })

describe('live events that may already be charged', () => {
  it('are those accepted on a later UTC day than that of their event time; imports are never among them', () => {
    assert.deepEqual(findLateLiveEvents([event]), [event])
    const others = [
      aStoredEvent({ timestampMs: happenedMs, capturedAtMs: happenedMs }),
      aStoredEvent({ timestampMs: happenedMs, capturedAtMs: at('2026-11-05T00:00:00') }),
      aStoredEvent({ timestampMs: happenedMs, capturedAtMs: at('2026-11-04T23:59:59') }),
      imported(event, 1),
      imported(event, 7),
    ]
    assert.deepEqual(findLateLiveEvents(others), [])
    const old = aStoredEvent({ timestampMs: at('1950-01-01T00:00:00'), capturedAtMs: happenedMs })
    assert.deepEqual(findLateLiveEvents([...others, old, event]), [old, event])
  })

  it('get the charge time of the copy that was charged, or keep their own if no copy was charged', () => {
    const [first, second] = [event, { ...event, distinctId: 'bob' }]
    const other = aStoredEvent()
    const rows = [first, other, second]
    assert.equal(chargeLateEventsOnce(rows, [first, second], [null, null]), rows)
    const charged = chargeLateEventsOnce(rows, [first, second], [null, happenedMs])
    assert.deepEqual(charged, [first, other, { ...second, chargedAtMs: happenedMs }])
    assert.equal(charged[0], first)
  })

  it('share the earliest charge time among copies in one chunk', () => {
    const rows = [3, 1, 2].map(hours => ({
      ...event,
      capturedAtMs: event.capturedAtMs + hours,
      chargedAtMs: event.capturedAtMs + hours,
    }))
    assert.deepEqual(
      chargeLateEventsOnce(rows, rows, [null, null, null]).map(row => row.chargedAtMs - event.capturedAtMs),
      [1, 1, 1],
    )
  })

  it('are distinguished by every part of their identity', () => {
    const different = [
      event,
      { ...event, timestampMs: happenedMs + 1 },
      { ...event, projectId: 12 },
      { ...event, uuid: aStoredEvent().uuid },
      { ...event, event: 'a', distinctId: 'bc' },
      { ...event, event: 'ab', distinctId: 'c' },
    ]
    assert.equal(new Set(different.map(buildIdentityKey)).size, different.length)
    assert.equal(buildIdentityKey({ ...event, timestampMs: happenedMs - 80_000_000 }), buildIdentityKey(event))
  })
})
