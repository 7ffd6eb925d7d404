import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatBytes, formatCount, formatCounted, formatPercentage, formatShortCount } from './format-number.ts'

const flags = { one: 'flag', other: 'flags' }

describe('numbers', () => {
  it('are exact, with separators', () => {
    assert.equal(formatCount(1204, 'en-GB'), '1,204')
    assert.equal(formatCount(-0.1234567, 'en-GB'), '-0.1234567')
  })

  it('are shown with the word in its number', () => {
    assert.equal(formatCounted(0, flags, false, 'en-GB'), '0 flags')
    assert.equal(formatCounted(1, flags, false, 'en-GB'), '1 flag')
    assert.equal(formatCounted(34226, flags, false, 'en-GB'), '34,226 flags')
  })

  it('say when there is more than was counted', () => {
    assert.equal(formatCounted(10_000, flags, true, 'en-GB'), 'more than 10,000 flags')
    assert.equal(formatCounted(1, flags, true, 'en-GB'), 'more than 1 flags')
  })

  it('are percentages without digits that a division invented', () => {
    assert.equal(formatPercentage(25, 2, 'en-GB'), '25%')
    assert.equal(formatPercentage(33.33, 2, 'en-GB'), '33.33%')
    assert.equal(formatPercentage(0.07, 20, 'en-GB'), '0.07%')
    assert.equal(formatPercentage(12.345, 1, 'en-GB'), '12.3%')
  })

  it('of bytes have three digits and a unit', () => {
    assert.equal(formatBytes(1023, 'en-GB'), '1,023 B')
    assert.equal(formatBytes(1024, 'en-GB'), '1 KiB')
    assert.equal(formatBytes(1_310_720, 'en-GB'), '1.25 MiB')
    assert.equal(formatBytes(1024 * 1024 - 1, 'en-GB'), '1 MiB')
    assert.equal(formatBytes(123.4 * 2 ** 30, 'en-GB'), '123 GiB')
  })

  it('are short in narrow places', () => {
    assert.equal(formatShortCount(1_234_567), '1.23M')
  })
})
