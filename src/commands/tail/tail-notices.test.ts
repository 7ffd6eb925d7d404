import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { tailNotices } from './tail-notices.ts'

const instance = 'https://pennon.example'
const nowMs = () => Date.UTC(2026, 10, 22, 1, 2, 27, 290)
const view = `2026-11-22T01:02:27.290Z the live view of ${instance}`

describe('what pennon tail says beside the events', () => {
  it('has the time as events have it, and names where what came meanwhile is kept', () => {
    const shown = tailNotices({ instance, rejected: true, nowMs })
    const again = 'Connecting again; what comes meanwhile is in /events/'
    assert.equal(shown.lost('stopping'), `${view} broke off: stopping. ${again} and /rejected_events/`)
    assert.equal(shown.back(52_001), `${view} is back after 53 s`)
    assert.equal(shown.ended('access_ended'), `${view} ended: access_ended`)
    assert.match(shown.unopened('it answered 404, but not as Pennon does'), /^The live view of .* does\. .*--host/)
    const eventsAlone = tailNotices({ instance, rejected: false, nowMs })
    assert.equal(eventsAlone.lost('stopping'), `${view} broke off: stopping. ${again}`)
  })
})
