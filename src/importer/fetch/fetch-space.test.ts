import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FetchWait } from './fetch-faults.ts'
import { createFetchSpaceGuard } from './fetch-space.ts'

const mebibyte = 2 ** 20

/** @param freeBytes of the disk without its reserve. Tests subtract what they write. */
function aFetchSpace(freeBytes: number) {
  const disk = { freeBytes, looks: [] as number[] }
  const reported: string[] = []
  const findSpaceProblem = (bytes: number) => {
    disk.looks.push(bytes)
    return disk.freeBytes > bytes ? null : `no space for ${bytes}`
  }
  return { disk, reported, space: createFetchSpaceGuard(findSpaceProblem, problem => reported.push(problem)) }
}

describe('the disk space of a fetch', () => {
  it('must suffice for the remaining bytes of all running parts together', () => {
    const { disk, space } = aFetchSpace(100)
    space.begin('a', 60)
    assert.throws(() => space.begin('b', 60), FetchWait)
    space.willWrite('a', 50)
    disk.freeBytes -= 50
    space.begin('c', 30)
    space.end('a')
    space.end('c')
    space.begin('b', 40)
    assert.deepEqual(disk.looks, [60, 120, 40, 40])
  })

  it('must suffice for the remaining bytes of all other running parts when a part of unknown size runs', () => {
    const { space } = aFetchSpace(100)
    space.begin('a', 99)
    space.begin('b', null)
    const { space: other } = aFetchSpace(100)
    other.begin('a', 50)
    other.begin('b', 49)
    other.willWrite('b', 20)
    assert.throws(() => other.begin('c', 21), FetchWait)
    other.begin('d', null)
  })

  it('is checked about every 16 MiB, and before every write once a check has found a problem', () => {
    const { disk, reported, space } = aFetchSpace(20 * mebibyte)
    for (const id of ['a', 'b', 'c']) space.begin(id, null)
    disk.looks.length = 0
    for (let piece = 0; piece < 31; piece++) {
      space.willWrite(piece % 2 === 0 ? 'a' : 'b', mebibyte)
      disk.freeBytes -= mebibyte
    }
    assert.deepEqual(disk.looks, [0])
    assert.throws(() => space.willWrite('a', mebibyte), FetchWait)
    assert.throws(() => space.willWrite('b', 1), FetchWait)
    assert.throws(() => space.begin('a', null), FetchWait)
    assert.deepEqual(reported, ['no space for 0'])
    disk.freeBytes = 100 * mebibyte
    space.willWrite('c', 1)
    space.begin('a', null)
    disk.freeBytes = 0
    assert.throws(() => space.begin('b', null), FetchWait)
    assert.deepEqual(reported, ['no space for 0', 'no space for 0'])
  })
})
