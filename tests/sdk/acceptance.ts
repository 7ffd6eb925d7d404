// Sets up an instance as the SDK scenarios expect it, and reads back the stored data.
// Source: docs/wire/clients.md 13.

import { type Pennon, startPennon, testProjectKey } from '../support/pennon.ts'
import { type RecordingProxy, startRecordingProxy } from './recording-proxy.ts'

export interface Acceptance {
  readonly pennon: Pennon
  /** The URL that SDKs use. */
  readonly proxy: RecordingProxy
  close(): Promise<void>
}

export interface StoredEvent {
  readonly uuid: string
  readonly event: string
  readonly distinct_id: string
  readonly timestamp: string
  // biome-ignore lint/suspicious/noExplicitAny: properties of many shapes
  readonly properties: any
  readonly elements_chain: string
  readonly lane: string
  readonly historical_migration: boolean
}

export interface StoredPerson {
  readonly uuid: string
  readonly distinct_ids: readonly string[]
  // biome-ignore lint/suspicious/noExplicitAny: properties of many shapes
  readonly properties: any
  readonly is_identified: boolean
  readonly flag_overrides: readonly object[]
}

const percent = (rollout_percentage: number, properties: object[] = []) => ({ properties, rollout_percentage })
const is = (key: string, value: string, more: object = {}) => ({
  ...{ key, value: [value], operator: 'exact', type: 'person' },
  ...more,
})

/**
 * `bool-on` has a payload, `multi` the same variant for everyone; `group-flag` and `local-prop` depend on properties,
 * as does `cohort-flag` through a cohort.
 */
const flags = [
  { key: 'bool-on', filters: { groups: [percent(100)], payloads: { true: '{"a":1}' } } },
  { key: 'bool-off', filters: { groups: [percent(0)] } },
  {
    key: 'multi',
    filters: {
      groups: [percent(100)],
      multivariate: {
        variants: [
          { key: 'variant-a', rollout_percentage: 100 },
          { key: 'variant-b', rollout_percentage: 0 },
        ],
      },
      payloads: { 'variant-a': '"hello"' },
    },
  },
  { key: 'plain', filters: { groups: [percent(100)] } },
  {
    key: 'group-flag',
    filters: {
      aggregation_group_type_index: 0,
      groups: [percent(100, [is('tier', 'gold', { type: 'group', group_type_index: 0 })])],
    },
  },
  { key: 'local-prop', filters: { groups: [percent(100, [is('plan', 'pro')])] } },
]

export async function startAcceptance(settings: Readonly<Record<string, string>> = {}): Promise<Acceptance> {
  const pennon = await startPennon({ settings })
  // The first group of a type creates the type; flags refer to it by its index.
  await pennon.post('/capture/', {
    api_key: testProjectKey,
    event: '$groupidentify',
    distinct_id: 'set-up',
    properties: { $group_type: 'company', $group_key: 'set-up', $group_set: { tier: 'none' } },
  })
  await pennon.caughtUp()
  const cohort = await pennon.api<{ id: number }>('POST', '/api/projects/@current/cohorts/', {
    name: 'Paying',
    filters: { properties: { type: 'OR', values: [{ type: 'AND', values: [is('plan', 'pro')] }] } },
  })
  const ofCohort = { key: 'id', type: 'cohort', value: cohort.id }
  const cohortFlag = { key: 'cohort-flag', filters: { groups: [percent(100, [ofCohort])] } }
  for (const flag of [...flags, cohortFlag]) await pennon.api('POST', '/api/projects/@current/feature_flags/', flag)
  const proxy = await startRecordingProxy(pennon.url)
  return {
    pennon,
    proxy,
    close: async () => {
      await proxy.close()
      await pennon.stop()
    },
  }
}

/** Everything stored for a distinct id, oldest first; waits for events in transit. */
export async function storedEvents(pennon: Pennon, distinctId: string): Promise<StoredEvent[]> {
  await pennon.caughtUp()
  const query = `distinct_id=${encodeURIComponent(distinctId)}&limit=1000`
  const { results } = await pennon.api<{ results: StoredEvent[] }>('GET', `/api/projects/@current/events/?${query}`)
  return results.toReversed()
}

/** Distinct ids of an event's rows, all pages: one entry per stored event. */
export async function distinctIdsOf(pennon: Pennon, event: string): Promise<string[]> {
  await pennon.caughtUp()
  const ids: string[] = []
  let path: string | null = `/api/projects/@current/events/?event=${encodeURIComponent(event)}&limit=1000`
  while (path !== null) {
    const page: { results: StoredEvent[]; next: string | null } = await pennon.api('GET', path)
    ids.push(...page.results.map(stored => stored.distinct_id))
    path = page.next === null ? null : new URL(page.next, pennon.url).pathname + new URL(page.next, pennon.url).search
  }
  return ids
}

export async function storedPerson(pennon: Pennon, distinctId: string): Promise<StoredPerson | undefined> {
  await pennon.caughtUp()
  const { results } = await pennon.api<{ results: StoredPerson[] }>(
    'GET',
    `/api/projects/@current/persons/?distinct_id=${encodeURIComponent(distinctId)}`,
  )
  return results[0]
}

/** The counts of charged and imported events of all days, once they no longer change. */
export async function usageOf(pennon: Pennon): Promise<{ charged: number; imported: number }> {
  const { results } = await pennon.api<{ results: { events_charged: number; events_imported: number }[] }>(
    'GET',
    '/api/projects/@current/usage/?date_from=-3d',
  )
  return {
    charged: results.reduce((sum, day) => sum + day.events_charged, 0),
    imported: results.reduce((sum, day) => sum + day.events_imported, 0),
  }
}
