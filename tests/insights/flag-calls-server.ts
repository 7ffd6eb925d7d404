// A project with a flag, whose calls are put into a real event store and asked for over HTTP.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { EventStore } from '#ports/events/event-store.ts'
import { noEventRows } from '#ports/events/event-writer.ts'
import { startManagement } from '../support/management-api.ts'
import { aStoredEvent } from '../support/values.ts'
import { namedBucket, type PlainExposure } from './flag-calls-world.ts'

let projectCount = 1

export interface ACall {
  readonly timestampMs: number
  readonly response?: unknown
  readonly distinctId?: string
  readonly personId?: string
  readonly flag?: string
  readonly event?: string
  /** The variant that the event names beside the answer. */
  readonly variant?: string
}

/** A new project with a flag, `beta` unless it says otherwise. It is 2026-05-01T12:00:00Z. */
export async function startFlagServer(
  t: TestContext,
  store: EventStore,
  { timezone = 'Europe/Berlin', flag = {} }: { timezone?: string; flag?: object } = {},
) {
  const api = await startManagement(t, { events: store })
  const create = () => api.call('POST', '/api/projects/', { body: { name: 'Usage', timezone } })
  let project = await create()
  // The event store is shared by the tests of a file, the ids of projects are not.
  while (project.body.id <= projectCount) project = await create()
  projectCount = project.body.id
  const projectId = projectCount
  const flags = `/api/projects/${projectId}/feature_flags/`
  const made = await api.call('POST', `${flags}?skip_validation=true`, { body: { key: 'beta', ...flag } })
  assert.equal(made.status, 201, made.text)
  const call = (what: string, query = '', flagId: string | number = made.body.id) =>
    api.call('GET', `${flags}${flagId}/${what}/${query}`)
  return {
    api,
    projectId,
    call,
    async answer(what: string, query = '') {
      const { status, text, body } = await call(what, query)
      assert.equal(status, 200, text)
      return body
    },
    insert: (...calls: ACall[]) =>
      store.insert({
        ...noEventRows,
        events: calls.map(({ flag: $feature_flag = 'beta', response = true, variant, ...over }) => {
          const named = { $feature_flag, $feature_flag_response: response, $feature_flag_variant_key: variant }
          const event = { projectId, event: '$feature_flag_called', ...over }
          return aStoredEvent({ ...event, propertiesJson: JSON.stringify(named) })
        }),
      }),
  }
}

export interface UsageLine {
  readonly value: string
  readonly calls: readonly number[]
  readonly persons: readonly number[]
  readonly buckets: readonly string[]
}

/** What an answer about usage says, as `plainUsage` has it. */
export function countsOf(
  { results }: { results: readonly UsageLine[] },
  interval: 'hour' | 'day',
): Map<string, string> {
  const counts = new Map<string, string>()
  for (const { value, calls, persons, buckets } of results)
    for (const [index, start] of buckets.entries())
      if (calls[index]! > 0) counts.set(`${value} ${namedBucket(start, interval)}`, `${calls[index]}/${persons[index]}`)
  return new Map([...counts].sort())
}

export interface ExposureAnswer {
  readonly multiple: number
  readonly buckets: readonly string[]
  readonly cumulative: Readonly<Record<string, readonly number[]>>
}

/** What an answer about exposure says, as `plainExposure` has it. */
export function exposureOf({ multiple, buckets, cumulative }: ExposureAnswer, interval: 'hour' | 'day'): PlainExposure {
  const first = new Map<string, number>()
  for (const [variant, counts] of Object.entries(cumulative))
    for (const [index, start] of buckets.entries()) {
      const persons = counts[index]! - (counts[index - 1] ?? 0)
      if (persons > 0) first.set(`${variant} ${namedBucket(start, interval)}`, persons)
    }
  return { first: new Map([...first].sort()), multiple }
}
