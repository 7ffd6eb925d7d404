import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTailNotices } from './tail.ts'

const instance = 'https://pennon.example'
const nowMs = () => Date.UTC(2026, 10, 22, 1, 2, 27, 290)
const view = `2026-11-22T01:02:27.290Z the live view of ${instance}`

describe('the notices of pennon tail', () => {
  it('have a time in the same format as event lines, and say where missed events are stored', () => {
    const shown = createTailNotices(instance, true, nowMs)
    const again = 'Reconnecting; to see what you missed, read /events/'
    assert.equal(shown.lost('stopping'), `${view} was interrupted: stopping. ${again} and /rejected_events/`)
    assert.equal(shown.back(52_001), `${view} reconnected after 53 s`)
    assert.equal(shown.ended('access_ended'), `${view} ended: access_ended`)
    assert.match(shown.unopened('it answered 404, but not like Pennon'), /^The live view of .* like Pennon\. .*--host/)
    const eventsAlone = createTailNotices(instance, false, nowMs)
    assert.equal(eventsAlone.lost('stopping'), `${view} was interrupted: stopping. ${again}`)
  })
})
