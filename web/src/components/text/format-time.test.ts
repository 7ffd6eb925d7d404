import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { findZone, formatInstant, formatTime, type TimeForm, type TimeZones } from './format-time.ts'

const nowMs = Date.parse('2026-11-30T10:04:12Z')
const zones: TimeZones = { choice: 'browser', browser: 'Asia/Kathmandu', project: 'America/Santiago' }

function show(instant: string | number, form?: TimeForm, shownIn = zones) {
  return formatTime(typeof instant === 'number' ? instant : Date.parse(instant), nowMs, shownIn, form, 'en-GB')
}

describe('a time', () => {
  it('is relative within a day, before and after now', () => {
    const shown = [-4_000, 3_000, -5_000, -59_999, 240_000, -3_599_999, -3_600_000, 86_399_999]
    assert.deepEqual(
      shown.map(ms => show(nowMs + ms).text),
      ['now', 'now', '5 s ago', '59 s ago', 'in 4 min', '59 min ago', '1 h ago', 'in 23 h'],
    )
  })

  it('is exact beyond a day, and wherever times are compared', () => {
    assert.equal(show('2026-11-29T10:04:12Z').text, '29 Nov 2026, 15:49:12')
    assert.equal(show('2026-11-30T10:04:02Z', 'exact').text, '30 Nov 2026, 15:49:02')
  })

  it('is shown in the chosen zone, and in every zone in its title', () => {
    const utc = show('2026-11-01T00:30:00Z', 'exact', { ...zones, choice: 'utc' })
    assert.equal(utc.text, '1 Nov 2026, 00:30:00')
    assert.equal(
      utc.title,
      '1 Nov 2026, 06:15:00 Asia/Kathmandu\n31 Oct 2026, 21:30:00 America/Santiago (project)\n1 Nov 2026, 00:30:00 UTC',
    )
    assert.equal(show('2026-11-01T00:30:00Z', 'exact', { ...zones, choice: 'project' }).text, '31 Oct 2026, 21:30:00')
  })

  it('names its zone where people pass it on', () => {
    assert.equal(show('2026-11-30T10:04:02Z', 'zoned').text, '30 Nov 2026, 15:49:02 Asia/Kathmandu')
    assert.match(show('2026-11-30T10:04:02Z', 'zoned', { choice: 'browser' }).text, /\d \w/)
  })

  it('names no zone twice', () => {
    const title = show('2026-11-01T00:30:00Z', 'exact', { choice: 'project', browser: 'UTC', project: 'UTC' }).title
    assert.equal(title, '1 Nov 2026, 00:30:00 UTC')
  })

  it('follows changes of summer time', () => {
    const inBerlin = ['2026-10-25T00:59:59Z', '2026-10-25T01:00:00Z'].map(instant =>
      formatInstant(Date.parse(instant), 'Europe/Berlin', 'en-GB'),
    )
    assert.deepEqual(inBerlin, ['25 Oct 2026, 02:59:59', '25 Oct 2026, 02:00:00'])
  })

  it('falls back to the browser zone for a project without one', () => {
    assert.equal(findZone({ choice: 'project', browser: 'Asia/Tokyo' }), 'Asia/Tokyo')
  })

  it('that no calendar has is named as such', () => {
    assert.deepEqual(show(9e15), { text: 'no valid time', title: '9000000000000000' })
    assert.equal(show(Number.NaN).text, 'no valid time')
    assert.match(show(-8.64e15).text, /^20 Apr 271822 BC?/)
  })
})
