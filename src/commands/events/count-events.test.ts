import assert from 'node:assert/strict'
import { it } from 'node:test'
import { plainTerminal } from '../client/terminal.ts'
import { measureTextWidth } from '../client/text-width.ts'
import { formatEventCounts } from './count-events.ts'

const days = Array.from({ length: 43 }, (_, day) => `day ${day}`)
const data = days.map(() => 1)

it('the chart of event counts shrinks so that wide and escaped names stay whole', () => {
  for (const event of ['注文が確定されました注文確定されまし', `red${'\u001b'.repeat(5)}`]) {
    const results = [
      { event, count: 43, data },
      { event: null, count: 43, data },
    ]
    const terminal = { ...plainTerminal, width: 80 }
    const lines = formatEventCounts({ interval: 'day', days, results, namesLeftOut: 0 }, terminal)
    const shown = event.replaceAll('\u001b', '\\u001b')
    assert.equal(lines[1]!.slice(0, shown.length), shown)
    for (const line of lines) assert.ok(measureTextWidth(line) <= 80, line)
  }
})
