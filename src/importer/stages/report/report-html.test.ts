import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { renderDayChart } from './report-html.ts'

const day = (text: string, count: number) => ({ day: text, count, events: { Paid: count } })
const titles = (html: string) => [...html.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title)

describe('the chart of events by day', () => {
  it('has a place for each day and names the days without events', () => {
    const html = renderDayChart([day('2024-02-28', 5), day('2024-03-01', 99), day('2024-03-02', 1)])
    assert.deepEqual(titles(html), [
      '2024-02-28: 5 events',
      '2024-02-29: no events',
      '2024-03-01: 99 events',
      '2024-03-02: 1 event',
    ])
    assert.match(
      html,
      /Events by day, 2024-02-28 to 2024-03-02\. Most are on 2024-03-01: 99\. 1 day between them without events, marked red: 2024-02-29\./,
    )
    assert.match(html, /class="x"><span>2024-02-28<\/span><span>2024-02-29<\/span><span>2024-03-02<\/span>/)
  })

  it('is empty without events', () => {
    assert.equal(renderDayChart([]), '')
  })
})
