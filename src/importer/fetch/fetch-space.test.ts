import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FetchWait } from './fetch-faults.ts'
import { FetchSpace } from './fetch-space.ts'

const mebibyte = 2 ** 20

/** @param freeBytes of the disk beside its reserve; what is written is taken from it by the test. */
function aFetchSpace(freeBytes: number) {
  const disk = { freeBytes, looks: [] as number[] }
  const told: string[] = []
  const findSpaceProblem = (bytes: number) => {
    disk.looks.push(bytes)
    return disk.freeBytes > bytes ? null : `no room for ${bytes}`
  }
  return { disk, told, space: new FetchSpace(findSpaceProblem, problem => told.push(problem)) }
}

describe('the room of a fetch', () => {
  it('has to hold what is still to come of all parts that run, not of each one alone', () => {
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

  it('keeps what is to come of the others from a part of unknown size too', () => {
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

  it('is looked at about every 16 MiB, and at once by the others when one has found none', () => {
    const { disk, told, space } = aFetchSpace(20 * mebibyte)
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
    assert.deepEqual(told, ['no room for 0'])
    disk.freeBytes = 100 * mebibyte
    space.willWrite('c', 1)
    space.begin('a', null)
    disk.freeBytes = 0
    assert.throws(() => space.begin('b', null), FetchWait)
    assert.deepEqual(told, ['no room for 0', 'no room for 0'])
  })
})
