import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DistinctCount, FrequentTexts } from './distinct-count.ts'

describe('counting distinct texts', () => {
  it('is exact up to its bound', () => {
    const count = new DistinctCount(100)
    for (let index = 0; index < 1_000; index++) count.add(`id-${index % 100}`)
    assert.deepEqual(count.estimate(), { count: 100, error: 0 })
  })

  it('estimates larger numbers within four times the standard error that it reports', () => {
    for (const size of [1_000, 30_000, 100_000, 300_000]) {
      const distinct = new DistinctCount(10)
      for (let index = 0; index < size; index++) distinct.add(`id-${index}`)
      const { count, error } = distinct.estimate()
      assert.ok(error > 0.005 && error < 0.01, `${error}`)
      assert.ok(Math.abs(count - size) < 4 * error * size, `${size}: ${count}`)
    }
  })
})

describe('frequent texts', () => {
  it('are found among many more texts than are held in memory', () => {
    const texts = new FrequentTexts(100)
    for (let index = 0; index < 20_000; index++) texts.add(index % 10 === 0 ? 'often' : `rare-${index}`)
    assert.deepEqual(
      texts.above(0.05).map(({ text }) => text),
      ['often'],
    )
  })
})
