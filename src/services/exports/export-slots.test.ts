import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createExportSlots, type ExportSlot, type ExportSlots } from './export-slots.ts'

describe('the slots for exports', () => {
  it('are limited in number, with a lower limit per project', () => {
    const places = createExportSlots({ inAllMax: 3, perProjectMax: 2 })
    const first = enter(places, 1)
    enter(places, 1)
    assert.deepEqual(places.enter(1), { ok: false, error: 'project_full' })
    enter(places, 2)
    assert.deepEqual(places.enter(3), { ok: false, error: 'full' })
    first.leave()
    first.leave()
    enter(places, 3)
    assert.deepEqual(places.enter(4), { ok: false, error: 'full' })
  })

  it('are taken from the export that has waited longest for its reader, when another export needs a slot', () => {
    let nowMs = 0
    const places = createExportSlots({ inAllMax: 3, perProjectMax: 2, monotonicMs: () => nowMs })
    const [quick, slow, slower] = [enter(places, 1), enter(places, 1), enter(places, 2)]
    slower.waitForReader()
    nowMs = 1_000
    slow.waitForReader()
    quick.waitForReader()()
    nowMs = 9_999
    assert.deepEqual(places.enter(3), { ok: false, error: 'full' })
    nowMs = 10_000
    enter(places, 3)
    assert.equal(slower.signal.reason.code, 'too_slow')
    assert.deepEqual([quick.signal.aborted, slow.signal.aborted], [false, false])
    slower.leave()
    assert.deepEqual(places.enter(4), { ok: false, error: 'full' })
    nowMs = 11_000
    enter(places, 4)
    assert.deepEqual([quick.signal.aborted, slow.signal.aborted], [false, true])
  })
})

function enter(places: ExportSlots, projectId: number): ExportSlot {
  const entered = places.enter(projectId)
  assert.ok(entered.ok)
  return entered.value
}
