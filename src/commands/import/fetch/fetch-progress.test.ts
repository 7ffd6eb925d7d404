import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { measureTextWidth } from '#commands/client/text-width.ts'
import type { FetchProgress } from '#importer/fetch/fetch-reporter.ts'
import { createFetchProgress, formatFetchProgress } from './fetch-progress.ts'

const begun: FetchProgress = {
  partsDone: 0,
  partsEmpty: 0,
  partsTotal: 1_095,
  bytesReceived: 0,
  calls: 0,
  retries: 0,
  waiting: null,
}
const minute = 60_000

describe('the progress of a fetch', () => {
  it('shows finished parts, the current wait, and the minimum time that the limits require for the rest', () => {
    const progress = { ...begun, partsDone: 60, partsEmpty: 2, bytesReceived: 3 * 2 ** 20, retries: 1 }
    const text = formatFetchProgress(
      { ...progress, waiting: { reason: 'source limit', untilMs: 14 * minute } },
      { nowMs: 0, spentMs: minute, doneHere: 60, leastMs: 1_035 * minute },
    )
    assert.equal(text, '60 of 1,095 parts, 2 without data, 3.0 MiB, 1 retry, source limit, 14 min, about 17.3 h left')
  })

  it('estimates the remaining time from the pace so far if that is slower than the limits', () => {
    const text = formatFetchProgress(
      { ...begun, partsDone: 95 },
      { nowMs: 0, spentMs: minute, doneHere: 10, leastMs: 0 },
    )
    assert.equal(text, '95 of 1,095 parts, 0 bytes, about 100 min left')
  })

  it('shows the failure after which it waits to retry, and no remaining time while nothing arrives', () => {
    const pace = { nowMs: minute, spentMs: minute, doneHere: 0, leastMs: 5_000 }
    const trouble = { reason: 'no connection to the source (ECONNREFUSED)', untilMs: minute + 900 }
    const stuck = { ...begun, partsTotal: 14, retries: 7 }
    assert.equal(
      formatFetchProgress({ ...stuck, waiting: trouble }, pace),
      '0 of 14 parts, 0 bytes, 7 retries, no connection to the source (ECONNREFUSED), 1 s',
    )
    assert.match(formatFetchProgress({ ...stuck, waiting: trouble }, { ...pace, nowMs: minute * 2 }), /, trying again$/)
    assert.match(formatFetchProgress({ ...stuck, waiting: null }, pace), / 7 retries$/)
  })

  it('is a line every ten seconds without a terminal, even if nothing happens, and JSON for programs', t => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    for (const isJson of [false, true]) {
      let nowMs = 0
      let written = ''
      const { show, end } = createFetchProgress({
        write: text => {
          written += text
        },
        ...{ width: () => null, isJson, nowMs: () => nowMs, callsPerPart: 1 },
        limits: { perSecond: null, perHour: null, atOnce: 1 },
      })
      for (; nowMs <= 25_000; nowMs += 500) show({ ...begun, partsDone: nowMs / 500 })
      for (; nowMs <= 45_000; nowMs += 1_000) t.mock.timers.tick(1_000)
      end()
      const lines = written.trimEnd().split('\n')
      assert.equal(lines.length, 4)
      if (isJson)
        assert.deepEqual(
          lines.map(line => JSON.parse(line).partsDone),
          [20, 40, 50, 50],
        )
      else assert.match(lines[0]!, /^20 of 1,095 parts/)
    }
  })

  it('is a bar as wide as the terminal, also after a resize', () => {
    let written = ''
    let width = 40
    let atMs = minute
    const { show, end } = createFetchProgress({
      write: text => {
        written += text
      },
      ...{ width: () => width, isJson: false, nowMs: () => atMs, callsPerPart: 1 },
      limits: { perSecond: null, perHour: null, atOnce: 1 },
    })
    show({ ...begun, partsDone: 730 })
    assert.equal(written, '\r█████░░░ 66 %, 730 of 1,095 parts, 0 b…\x1b[K')
    assert.equal(measureTextWidth(written.slice(1, -3)), 39)
    written = ''
    width = 30
    atMs += minute
    show({ ...begun, partsDone: 730 })
    assert.equal(measureTextWidth(written.slice(1, -3)), 29)
    end()
    assert.ok(written.endsWith('\r\x1b[K'))
  })
})
