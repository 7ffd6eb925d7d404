import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { LaterWrite } from '#core/imports/other-use.ts'
import { Doubts, type Homes, LaterUnsets } from './later-unsets.ts'

describe('live unsets since an undone import', () => {
  const homes: Homes = { own: 'user', of: id => (id === 'user' || id === 'survivor' ? id : null) }
  const write = (distinctId: string, op: LaterWrite['op'], storedAtMs: number): LaterWrite => ({
    ...{ distinctId, op, key: 'k', value: 1, storedAtMs, timestampMs: storedAtMs, uuid: `${distinctId} ${op}` },
  })
  const left = (isShown: boolean, doubts: Doubts, ...writes: readonly LaterWrite[]) =>
    new LaterUnsets(writes, homes, () => isShown, doubts).writesWithoutThoseOfOthers().map(({ uuid }) => uuid)

  it('came to another person if the value of the import is still shown', () => {
    for (const [toucher, unsetter, expected, isDoubtful] of [
      ['user', 'anon', ['user set_once'], false],
      ['anon', 'anon', [], false],
      ['survivor', 'survivor', [], false],
      ['user', 'survivor', ['user set_once'], false],
      ['other', 'anon', ['other set_once'], true],
    ] as const) {
      const doubts = new Doubts(false)
      const writes = [write(toucher, 'set_once', 1), write(unsetter, 'unset', 2)] as const
      assert.deepEqual([left(true, doubts, ...writes), doubts.hasAny], [expected, isDoubtful], `${toucher} ${unsetter}`)
    }
    assert.deepEqual(left(true, new Doubts(true), write('other', 'set_once', 1), write('anon', 'unset', 2)), [])
    assert.deepEqual(left(true, new Doubts(false), write('anon', 'unset', 1), write('anon', 'set_once', 2)), [
      'anon set_once',
    ])
  })

  it('count if the value is gone, unless they certainly came to another person', () => {
    for (const [unsetter, expected, isDoubtful] of [
      ['user', ['user unset'], false],
      ['survivor', [], false],
      ['anon', ['anon unset'], true],
    ] as const) {
      const doubts = new Doubts(false)
      assert.deepEqual([left(false, doubts, write(unsetter, 'unset', 1)), doubts.hasAny], [expected, isDoubtful])
    }
  })

  it('removed values that an import wrote before them; for an implicit job of the same day that is only likely', () => {
    for (const [atMs, expected, isDoubtful] of [
      [9, false, false],
      [15, true, true],
      [20, true, false],
    ] as const) {
      const doubts = new Doubts(false)
      const unsets = new LaterUnsets([write('user', 'unset', atMs)], homes, () => false, doubts)
      const byImplicitJob = { distinctId: 'user', key: 'k', sinceMs: 10, startMs: 20, isJoined: false }
      assert.deepEqual([unsets.removed(byImplicitJob), doubts.hasAny], [expected, isDoubtful], String(atMs))
    }
  })
})
