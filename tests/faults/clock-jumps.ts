// A host whose clock is changed while events arrive: an hour back, a day ahead, and back across midnight. Some events
// have their own times; others get time and uuid from the instance.

import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { createInstances, type Instance } from '../conformance/instance.ts'
import { eventually } from '../support/eventually.ts'
import { testProjectKey } from '../support/pennon.ts'
import { type Findings, findFaults, startCheckedLoad, type Target } from './checked-load.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** @param seconds under load after each jump. @returns the faults found in the load's events; asserts the rest. */
export async function jumpClock(seconds: number): Promise<Findings> {
  const instances = createInstances()
  // Ten minutes past midnight on an earlier day: the load dates its own events by the real clock.
  const startMs = Math.floor(Date.now() / dayMs) * dayMs - dayMs + 10 * 60_000
  try {
    return await instances.with({ projectKey: testProjectKey, nowMs: startMs, worker: true }, async instance => {
      const target = targetOf(instance)
      const load = startCheckedLoad(() => target, { pauseMs: 30 })
      const days = new Map<string, number>()
      let undatedCount = 0
      try {
        // Ends on the last of the days, since usage does not report future days.
        for (const nowMs of [startMs, startMs - hourMs, startMs + dayMs, startMs - 20 * 60_000, startMs + dayMs]) {
          instance.setClock(nowMs)
          await sleep(seconds * 500)
          undatedCount += await sendUndated(target, nowMs)
          const day = new Date(nowMs).toISOString().slice(0, 10)
          days.set(day, (days.get(day) ?? 0) + 1)
          await sleep(seconds * 500)
        }
      } catch (cause) {
        load.abandon()
        throw cause
      }
      const sent = await load.stop()
      const findings = await findFaults(target, [sent])
      await assertUndated(target, undatedCount)
      await assertCharged(target, [...days.keys()], sent.liveCount + undatedCount)
      return findings
    })
  } finally {
    await instances.close()
  }
}

const undatedPerJump = 20

/** Sends events without time and uuid, which the instance takes from its clock. */
async function sendUndated(target: Target, nowMs: number): Promise<number> {
  const batch = Array.from({ length: undatedPerJump }, () => ({
    event: 'undated',
    distinct_id: 'clock',
    properties: { nowMs },
  }))
  const response = await target.post('/batch/', { api_key: testProjectKey, batch })
  assert.equal(response.status, 200)
  return batch.length
}

interface Undated {
  readonly uuid: string
  readonly timestamp: string
  readonly properties: { readonly nowMs: number }
}

/** Checks that each event has its time of arrival and a version 7 uuid of that time, and that none replaced another. */
async function assertUndated(target: Target, count: number): Promise<void> {
  const { results } = await target.api<{ results: Undated[] }>(
    'GET',
    '/api/projects/@current/events/?event=undated&limit=1000',
  )
  assert.equal(results.length, count)
  for (const { uuid, timestamp, properties } of results) {
    assert.equal(Date.parse(timestamp), properties.nowMs)
    assert.match(uuid, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.equal(Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16), properties.nowMs)
  }
}

/** Checks that every live event is charged once, on one of the days that the clock showed. */
async function assertCharged(target: Target, days: readonly string[], count: number): Promise<void> {
  const [first, last] = [days.toSorted()[0], days.toSorted().at(-1)]
  await eventually(async () => {
    const { results } = await target.api<{ results: { date: string; events_charged: number }[] }>(
      'GET',
      `/api/projects/@current/usage/?date_from=${first}&date_to=${last}`,
    )
    const charged = results.reduce((sum, day) => sum + day.events_charged, 0)
    assert.equal(charged, count, JSON.stringify(results))
    assert.ok(days.every(day => results.some(({ date, events_charged }) => date === day && events_charged > 0)))
    return true
  })
}

function targetOf(instance: Instance): Target {
  return {
    api: instance.api,
    post: async (path, body, headers = {}) => {
      const answer = await instance.send({
        method: 'POST',
        path,
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      })
      return new Response(answer.text, { status: answer.status })
    },
  }
}
