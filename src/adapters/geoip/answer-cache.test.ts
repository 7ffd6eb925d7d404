import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { cacheAnswers } from './answer-cache.ts'

describe('the cache of answers', () => {
  it('calls the wrapped function once per text, even if the result is null or undefined', () => {
    const asked: string[] = []
    const ask = cacheAnswers(text => {
      asked.push(text)
      return text === 'a' ? null : text === 'b' ? undefined : text
    }, 10)
    for (let round = 0; round < 3; round++) {
      assert.equal(ask('a'), null)
      assert.equal(ask('b'), undefined)
      assert.equal(ask('c'), 'c')
    }
    assert.deepEqual(asked, ['a', 'b', 'c'])
  })

  it('keeps answers that are used again and drops the rest', () => {
    const asked: string[] = []
    const ask = cacheAnswers(text => {
      asked.push(text)
      return text.length
    }, 8)
    for (let number = 0; number < 100; number++) {
      ask('in use')
      ask(`once ${number}`)
    }
    assert.equal(asked.filter(text => text === 'in use').length, 1)
    ask('once 0')
    assert.equal(asked.filter(text => text === 'once 0').length, 2)
  })
})
