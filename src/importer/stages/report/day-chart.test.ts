import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderDayChart } from './day-chart.ts'

const day = (text: string, count: number) => ({ day: text, count, events: { Paid: count } })
const titles = (html: string) => [...html.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title)

describe('the chart of events by day', () => {
  it('has a place for each day and names the days without events', () => {
    const html = renderDayChart([day('2024-02-28', 5), day('2024-03-01', 99), day('2024-03-02', 1)])
    assert.deepEqual(titles(html), [
      '2024-02-28: 5 events',
      '2024-02-29: no events',
      '2024-03-01: 99 events',
      '2024-03-02: 1 events',
    ])
    assert.match(
      html,
      /Events by day, 2024-02-28 to 2024-03-02\. Most are on 2024-03-01: 99\. 1 day between them has no/,
    )
    assert.match(html, /class="x"><span>2024-02-28<\/span><span>2024-02-29<\/span><span>2024-03-02<\/span>/)
  })

  it('has a bar per week if there are too many days to distinguish', () => {
    const html = renderDayChart([day('2015-01-01', 1), day('2015-01-07', 2), day('2024-12-31', 1)])
    assert.deepEqual(titles(html).slice(0, 2), [
      '2015-01-01 to 2015-01-07: 3 events',
      '2015-01-08 to 2015-01-14: no events',
    ])
    assert.match(html, /520 weeks between them have no events, marked red: .*, and 515 more/)
  })

  it('is empty without events', () => {
    assert.equal(renderDayChart([]), '')
  })
})
