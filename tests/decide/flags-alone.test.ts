// Flags served by a process that has only definitions, and forwards everything else: no state, log or event store.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { createDecodePool } from '#compose/front/decode-pool.ts'
import { startServingDefinitions } from '#compose/front/definitions.ts'
import { composeFlags } from '#compose/front/flags.ts'
import { PortError } from '#ports/port-error.ts'
import { startEventQuotaTracker } from '#services/capture/event-quotas.ts'
import { startFlagRequestCounter } from '#services/flags/flag-request-counter.ts'
import { flagFromJson } from '../support/decide-server.ts'
import { serveParts, testContext } from '../support/front-parts.ts'
import { aProject, emptyDefinitions } from '../support/values.ts'

const apiToken = 'phc_test'
const proOnly = { key: 'plan', type: 'person', value: ['pro'], operator: 'exact' }
const flags = [
  { id: 1, key: 'everybody', filters: { groups: [{ properties: [], rollout_percentage: 100 }] } },
  { id: 2, key: 'pro', filters: { groups: [{ properties: [proOnly], rollout_percentage: 100 }] } },
]
const away = () => {
  throw new PortError('upstream', 'unavailable')
}

it('flags are evaluated with definitions alone, except flags that read stored persons', async t => {
  const context = testContext()
  const { clock, logger, metrics } = context
  const opened = new AsyncDisposableStack()
  const counted: unknown[] = []
  const usage = {
    addFlagRequests: async (counts: readonly unknown[]) => void counted.push(...counts),
    sumFlagRequests: async () => [],
    sumUsage: async () => [],
  }
  const counters = {
    flagRequests: startFlagRequestCounter({ usage, clock, logger, flushMs: 60_000 }),
    eventQuotas: startEventQuotaTracker({ usage, clock, logger, readMs: 60_000 }),
  }
  for (const counter of Object.values(counters)) opened.defer(() => counter.close())
  const project = { ...emptyDefinitions(aProject({ apiToken }), 1), flags: flags.map(flagFromJson) }
  const upstream = {
    readRevision: async () => ({ revision: 1, epoch: 'upstream' }),
    loadChanges: async () => ({ revision: 1, projects: [project], deletedProjectIds: [] }),
  }
  const unused = { note: away, close: async () => undefined }
  const definitions = await startServingDefinitions(
    context,
    {
      state: { definitions: upstream, definitionPollMs: 60_000 },
      management: { findPersonalKeyByHash: away, findSession: away },
    },
    { ...counters, keyUses: unused, sessionUses: unused },
    () => undefined,
    opened,
  )
  const { routes } = composeFlags({
    ...context,
    definitions,
    counters,
    stores: {
      state: {
        subjects: {
          findPerson: away,
          findStaticCohorts: away,
          findGroup: away,
          findHashKeys: away,
          countIdentifies: away,
        },
        loginWritesAtOnceMax: 1,
      },
      management: { addMissingHashKeys: away, findProject: away, listProjects: away },
      payloadCipher: { open: away },
    },
    salts: { knownSalt: () => null, saltOf: away, close: () => undefined },
    decodeThreads: opened.adopt(createDecodePool({ projectIdOf: () => 1, logger, metrics }), threads =>
      threads.close(),
    ),
  })
  const { url } = await serveParts(t, { ...context, definitions, sessionCookie: '' }, routes, opened)
  const ask = async (path: string, more: object = {}) => {
    const body = JSON.stringify({ token: apiToken, distinct_id: 'ada', ...more })
    const answer = await fetch(url + path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    assert.equal(answer.status, 200)
    return (await answer.json()) as { featureFlags: object; flags: Record<string, { enabled: boolean; failed?: true }> }
  }

  const isPro = { person_properties: { plan: 'pro' } }
  assert.deepEqual((await ask('/decide/?v=3')).featureFlags, { everybody: true })
  assert.deepEqual((await ask('/decide/?v=3', isPro)).featureFlags, { everybody: true, pro: true })
  const unknown = (await ask('/flags/?v=2')).flags
  assert.deepEqual([unknown.everybody?.enabled, unknown.pro?.failed], [true, true])
  const known = (await ask('/flags/?v=2', isPro)).flags
  assert.deepEqual([known.pro?.enabled, known.pro?.failed], [true, undefined])
  assert.equal((await fetch(`${url}/array/${apiToken}/config`)).status, 200)
  const forServers = await fetch(`${url}/api/feature_flag/local_evaluation?token=${apiToken}`, {
    headers: { authorization: 'Bearer phx_of-a-person' },
  })
  assert.equal(forServers.status, 503)
  await opened.disposeAsync()
  assert.deepEqual(counted, [{ projectId: 1, day: '2026-01-15', count: 4 }])
})
