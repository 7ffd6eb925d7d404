// Recorded requests, and one of each SDK, sent to a whole instance over HTTP. Checks the answers, and the events that
// the private API then returns.

import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createInstances, type Instance } from '../conformance/instance.ts'
import { type Expected, goldenRequests, type Recorded, requestsOfSdks, snapshotRequests } from './recorded-requests.ts'

const accepted = '{"status":"Ok"}'
const ownKey = 'phc_replay00000000000000000000000000000000001'

interface StoredEvent {
  readonly uuid: string
  readonly event: string
  readonly distinct_id: string
  readonly timestamp: string
  readonly lane: string
  readonly historical_migration: boolean
  readonly elements_chain: string
  readonly properties: Readonly<Record<string, unknown>>
}

const recorded = [...goldenRequests(), ...snapshotRequests(), ...requestsOfSdks(ownKey)]
const answers = new Map<Recorded, { readonly status: number; readonly text: string }>()
const storedByKey = new Map<string, readonly StoredEvent[]>()

describe('recorded requests that are sent to a complete instance', () => {
  const instances = createInstances()
  before(async () => {
    // One instance serves all of them: its clock follows the requests, oldest first.
    const inOrder = [...recorded].sort((a, b) => a.nowMs - b.nowMs)
    await instances.with({ projectKey: ownKey, nowMs: inOrder[0]!.nowMs, worker: true }, async instance => {
      const projects = await createProjects(instance)
      for (const request of inOrder) {
        instance.setClock(request.nowMs)
        answers.set(request, await instance.send(request))
      }
      await instance.caughtUp()
      for (const [key, id] of projects) {
        const path = `/api/projects/${id}/events/?limit=1000`
        storedByKey.set(key, (await instance.api<{ results: StoredEvent[] }>('GET', path)).results)
      }
    })
  })
  after(() => instances.close())

  for (const request of recorded) {
    it(request.name, () => {
      const { status, text } = answers.get(request)!
      switch (request.kind) {
        case 'events':
          assert.deepEqual([status, text], request.status === 204 ? [204, ''] : [200, accepted])
          for (const expected of request.expected) assertStored(storedByKey.get(request.projectKey)!, expected)
          break
        case 'flags':
          assert.equal(status, 200, text)
          assert.deepEqual(Object.keys((JSON.parse(text) as { flags: object }).flags), [])
          break
        case 'events_v1':
          assert.equal(status, 200, text)
          for (const expected of request.expected) {
            assert.deepEqual(JSON.parse(text).results[expected.uuid!], { result: 'ok' })
            assertStored(storedByKey.get(request.projectKey)!, expected)
          }
      }
    })
  }

  it('have each of their events stored once, and nothing else', () => {
    for (const [key, stored] of storedByKey) {
      // Some samples repeat a request, and some SDKs' tests use one uuid for several events.
      const identities = recorded
        .filter(request => request.projectKey === key)
        .flatMap(({ expected }) => expected.map(event => JSON.stringify([event.event, event.distinctId, event.uuid])))
      assert.equal(stored.length, new Set(identities).size, key)
    }
  })
})

/** Project id by key, for each key that a request names. */
async function createProjects(instance: Instance): Promise<Map<string, string>> {
  const projects = new Map([[ownKey, '@current']])
  for (const { projectKey } of recorded) {
    if (projects.has(projectKey)) continue
    const project = { name: projectKey, api_token: projectKey }
    const { id } = await instance.api<{ id: number }>('POST', '/api/projects/', project)
    projects.set(projectKey, String(id))
  }
  return projects
}

function assertStored(stored: readonly StoredEvent[], expected: Expected): void {
  const found = stored.filter(
    ({ uuid, event, distinct_id: distinctId }) =>
      event === expected.event &&
      distinctId === expected.distinctId &&
      (expected.uuid === undefined || uuid === expected.uuid),
  )
  assert.equal(found.length, 1, `${expected.event} of ${expected.distinctId}: found ${found.length}`)
  const [event] = found as [StoredEvent]
  assert.equal(Date.parse(event.timestamp), expected.timestampMs, event.timestamp)
  if (expected.sentAtMs !== undefined)
    assert.equal(Date.parse(String(event.properties.$sent_at)), expected.sentAtMs, '$sent_at')
  assert.equal(event.historical_migration, expected.historicalMigration)
  if (expected.lane !== undefined) assert.equal(event.lane, expected.lane)
  const wanted = { ...expected.properties }
  if (Array.isArray(wanted.$elements)) {
    assert.notEqual(event.elements_chain, '')
    delete wanted.$elements
  }
  const { $set, $set_once: setOnce, ...others } = wanted
  for (const [key, value] of Object.entries(others)) assert.deepEqual(event.properties[key], value, key)
  assertContains(event.properties.$set, $set, '$set')
  assertContains(event.properties.$set_once, setOnce, '$set_once')
}

/** Leaves out what processing adds to `$set`: GeoIP and the properties that every person has. */
function assertContains(actual: unknown, expected: unknown, what: string): void {
  for (const [key, value] of Object.entries((expected ?? {}) as object))
    assert.deepEqual((actual as Record<string, unknown>)?.[key], value, `${what}.${key}`)
}
