import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { emptyProfile, type Profile } from '#core/persons/profile.ts'
import { applyImportUpdate } from './import-update.ts'
import { exceedsMarksLimit, trimPropertyMarks } from './marks-limit.ts'

const update = (timestampMs: number, over: object) => ({
  ...{ timestampMs, uuid: `0199a000-0000-4000-8000-${String(timestampMs).padStart(12, '0')}`, importJobId: 7 },
  ...{ set: null, setOnce: null, unset: [] as string[], historical: true, lane: 'historical' as const },
  ...over,
})
const apply = (profile: Profile, ...args: Parameters<typeof update>): Profile =>
  applyImportUpdate(profile, update(...args) as Parameters<typeof applyImportUpdate>[1]) ?? profile

describe('the stored marks that say how a person’s properties were set', () => {
  it('exceed their limit if an import removed very many properties; trimming keeps only those of existing properties', () => {
    const some = apply({ ...emptyProfile, properties: {} }, 1, { set: { kept: 1 } })
    assert.ok(!exceedsMarksLimit(some.marks))
    const many = apply(some, 2, { unset: Array.from({ length: 12_000 }, (_, index) => `k${index}`) })
    assert.ok(exceedsMarksLimit(many.marks))
    const trimmed = trimPropertyMarks(many)
    assert.deepEqual([Object.keys(trimmed.marks), trimmed.properties], [['kept'], { kept: 1 }])
    assert.equal(trimPropertyMarks(some), some)
  })

  it('exceed the limit if hidden $set_once values are too large', () => {
    const once = { k: 'x'.repeat(700_000) }
    const profile = apply(apply(emptyProfile, 1, { set: { k: 1 } }), 2, { setOnce: once })
    assert.deepEqual(profile.properties, { k: 1 })
    assert.equal(exceedsMarksLimit(profile.marks), profile.marks.k?.once?.value !== undefined)
    assert.ok(exceedsMarksLimit(profile.marks))
  })
})
