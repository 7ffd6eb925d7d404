import assert from 'node:assert/strict'
import { randomFillSync } from 'node:crypto'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { parseUuid } from '../events/uuid.ts'
import { createEventUuid, createPooledRandomUint32 } from './event-uuid.ts'

describe('createEventUuid', () => {
  it('returns a UUID with the layout of a UUIDv7, which starts with the event time', () => {
    const uuid = createEventUuid(0x0123_4567_89ab, () => 0xffff_ffff)
    assert.equal(uuid, '01234567-89ab-7fff-bfff-ffffffffffff')
    assert.equal(
      createEventUuid(0x0123_4567_89ab, () => 0),
      '01234567-89ab-7000-8000-000000000000',
    )
  })
  it('treats times before 1970 as 1970', () => {
    assert.equal(
      createEventUuid(-1, () => 0),
      '00000000-0000-7000-8000-000000000000',
    )
  })
  it('keeps the time of any event and never returns the same UUID twice', () => {
    const random = createPooledRandomUint32(randomFillSync)
    const seen = new Set<string>()
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Date.UTC(2300, 0, 1) }), timestampMs => {
        const uuid = createEventUuid(timestampMs, random)
        assert.equal(parseUuid(uuid), uuid)
        assert.equal(Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16), timestampMs)
        assert.ok(!seen.has(uuid))
        seen.add(uuid)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe('createPooledRandomUint32', () => {
  it('returns every integer of the pool once and then refills it', () => {
    let filled = 0
    const random = createPooledRandomUint32(pool => {
      pool.forEach((_, index) => {
        pool[index] = filled * pool.length + index
      })
      filled++
    })
    for (let expected = 0; expected < 2_500; expected++) assert.equal(random(), expected)
    assert.equal(filled, 3)
  })
})

describe('parseUuid', () => {
  const canonical = '0197c5a0-0000-7000-8000-00000000abcd'
  it('reads every usual spelling', () => {
    const spellings = [
      canonical,
      canonical.toUpperCase(),
      canonical.replaceAll('-', ''),
      `{${canonical}}`,
      `urn:uuid:${canonical}`,
    ]
    for (const text of spellings) assert.equal(parseUuid(text), canonical)
  })
  it('returns nothing for any other text', () => {
    const others = [
      '',
      'not-a-uuid',
      `${canonical}0`,
      canonical.slice(1),
      `{${canonical}`,
      `${canonical}}`,
      `${canonical}\n`,
    ]
    for (const text of [...others, '0197c5a000007000-8000-00000000abcd', canonical.replace('a', 'g')]) {
      assert.equal(parseUuid(text), null, text)
    }
  })
})
