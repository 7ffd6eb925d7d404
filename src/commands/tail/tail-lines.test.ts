import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseJson } from '#core/json.ts'
import { plainTerminal } from '../client/terminal.ts'
import type { LiveMessageData } from './live-view.ts'
import { formatJsonLine, formatLine } from './tail-lines.ts'

const at = '2026-11-22T01:02:27.290Z'

/** A line without its padding. */
function line(kind: string, json: string, isJson = false): string {
  const data = parseJson(json) as LiveMessageData
  return isJson ? formatJsonLine(kind, data) : formatLine(kind, data).replaceAll(/ {3,}/g, '  ')
}

function event(rest: string, isJson = false): string {
  return line('event', `{"captured_at":"${at}","event":"paid","distinct_id":"ada",${rest}}`, isJson)
}

describe('a line of pennon tail', () => {
  it('keeps numbers as the client wrote them, in text and as JSON', () => {
    const properties = '{"id":12345678901234567890,"price":1.50}'
    assert.equal(event(`"properties":${properties}`), `${at}  paid  ada  ${properties}`)
    assert.ok(event(`"properties":${properties}`, true).endsWith(`"properties":${properties}}`))
  })

  it('shows what an event sets on the person, and marks truncated values', () => {
    assert.equal(
      event('"properties":{},"$set":{"plan":"pro"},"$set_once":{"from":"x"},"cut":true'),
      `${at}  paid  ada  {}  $set {"plan":"pro"}  $set_once {"from":"x"}  (cut)`,
    )
  })

  it('truncates long properties in a pipe, with a mark, and leaves them whole as JSON', () => {
    const stack = 'x'.repeat(5_000)
    const sent = `"properties":{"stack":"${stack}"},"$set":{"plan":"pro"}`
    const shown = `{"stack":"${stack}`.slice(0, 200)
    assert.equal(event(sent), `${at}  paid  ada  ${shown}…  $set {"plan":"pro"}`)
    assert.ok(event(sent, true).includes(stack))
  })

  it('marks an imported event and shows its own time', () => {
    const was = '2024-03-01T00:00:00.000Z'
    const line = (isImport: boolean) => event(`"timestamp":"${was}","historical_migration":${isImport},"properties":{}`)
    assert.equal(line(true), `${at}  paid  ada  historical ${was}  {}`)
    assert.equal(line(false), `${at}  paid  ada  {}`)
  })

  it('shows the reason of a reject and the beginning of its body', () => {
    const reject = {
      received_at: at,
      reason: 'missing_event_name',
      field: 'event',
      distinct_id: 'ada',
      body: 'x'.repeat(201),
    }
    const shown = `${at}  rejected  ada  missing_event_name (event)  ${'x'.repeat(200)}…`
    assert.equal(line('rejected', JSON.stringify(reject)), shown)
    const ofImport = line('rejected', JSON.stringify({ ...reject, historical_migration: true }))
    assert.equal(ofImport, shown.replace('ada  ', 'ada  historical  '))
  })

  it('escapes characters that reverse, break or hide text', () => {
    const hidden = '\u202e\u2066\u200b\u200d\ufeff\u00ad\u2028\u2029\u{e0041}\ud800'
    const escapes = String.raw`\u202e\u2066\u200b\u200d\ufeff\u00ad\u2028\u2029\udb40\udc41\ud800`
    const sent = { captured_at: 'at', event: `paid${hidden}`, distinct_id: 'Zoë 🦊', properties: { name: hidden } }
    const line = formatLine('event', sent)
    assert.equal(line.replaceAll(/ {3,}/g, '  '), `at  paid${escapes}  Zoë 🦊  {"name":"${escapes}"}`)
    const asJson = formatJsonLine('event', sent)
    assert.ok(asJson.includes(escapes) && !asJson.includes(hidden[0]!))
    assert.equal(JSON.parse(asJson).event, `paid${hidden}`)
  })

  it('is a table row, whose cells are truncated to the width of a terminal but not in a pipe', () => {
    const titles = formatLine('ready', {})
    const long = { captured_at: at, event: 'a name that is longer than its column', distinct_id: 'ada', properties: {} }
    const shown = formatLine('event', { ...long, event: 'paid' })
    for (const [title, cell] of [
      ['EVENT', 'paid'],
      ['DISTINCT ID', 'ada'],
      ['PROPERTIES', '{}'],
    ] as const)
      assert.equal(titles.indexOf(title), shown.indexOf(cell), title)
    assert.ok(formatLine('event', long).includes('a name that is longer than its column  ada'))
    const narrow = formatLine(
      'event',
      { ...long, properties: { text: 'x'.repeat(100) } },
      { ...plainTerminal, width: 90 },
    )
    assert.equal(narrow.length, 90)
    assert.ok(narrow.includes('a name that is longer t…  ada'), narrow)
  })

  it('shows messages of other kinds with their names, and never moves the cursor', () => {
    assert.equal(line('skipped', '{"count":null}'), '# skipped {"count":null}')
    assert.equal(event('"properties":{"a":"\\u009b2J"}'), `${at}  paid  ada  {"a":"\\u009b2J"}`)
    const asJson = event('"properties":{"a":"\\u009b\\u007f\\u001b"}', true)
    assert.ok(asJson.endsWith('{"a":"\\u009b\\u007f\\u001b"}}'), asJson)
    assert.equal(JSON.parse(asJson).properties.a, '\u009b\u007f\u001b')
  })
})
