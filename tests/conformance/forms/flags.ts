// `flag_vectors`: definitions, stored data and a request → the outcome of every flag in the three answers that clients
// read: `/flags?v=2` with its details, `/flags?v=1` and `/decide?v=3` with values and payloads.

import { type JsonValue, toComparableText } from '#core/json.ts'
import {
  assertKnownFields,
  assertKnownVectorFields,
  exactDifferences,
  type Fields,
  instantOf,
  isObject,
  presentDifferences,
} from '../compare.ts'
import { jsonOf } from '../exchange.ts'
import type { Instance, Instances } from '../instance.ts'
import {
  addToStaticCohorts,
  askForFlags,
  captureEvents,
  changeProject,
  createCohorts,
  createFlags,
  createPersons,
  type FlagDefinition,
  groupEvents,
} from '../state.ts'
import { anyTime, type VectorCase } from '../vector-case.ts'

export interface FlagVector extends Fields {
  readonly id: string
  readonly flags: readonly FlagDefinition[]
  readonly request: Fields
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly now?: string
  readonly project?: Fields
  readonly stored?: Fields
  readonly expect: {
    readonly flags: Readonly<Record<string, Fields>>
    readonly absent?: readonly string[]
    readonly errorsWhileComputingFlags: boolean
  }
}

export function flagCases(vectors: readonly FlagVector[], projectKey: string): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: instances => runVector(instances, vector, projectKey) }))
}

async function runVector(instances: Instances, vector: FlagVector, projectKey: string): Promise<string[]> {
  assertKnownFlagVector(vector)
  const worker = vector.stored !== undefined || vector.project?.group_type_mapping !== undefined
  return instances.with({ projectKey, nowMs: instantOf(vector.now ?? anyTime), worker }, async instance => {
    await setUp(instance, vector)
    const ask = (path: string) => evaluate(instance, vector, path)
    return [
      ...detailDifferences(vector, await ask('/flags?v=2'), '/flags?v=2'),
      ...valueDifferences(vector, await ask('/flags?v=1'), '/flags?v=1'),
      ...valueDifferences(vector, await ask('/decide?v=3&config=false'), '/decide?v=3'),
    ]
  })
}

/** @throws CannotRun for a field that the form does not have. Fields of flags and settings are checked by their readers. */
export function assertKnownFlagVector(vector: FlagVector): void {
  assertKnownVectorFields(vector, ['flags', 'request', 'headers', 'query', 'now', 'project', 'stored', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['flags', 'absent', 'errorsWhileComputingFlags'])
  const storedFields = ['person_properties', 'group_properties', 'hash_key_overrides', 'static_cohorts']
  assertKnownFields(vector.stored ?? {}, 'stored', storedFields)
}

/** @param groups properties of groups, by type and key. */
export async function setUpDefinitions(
  instance: Instance,
  { project = {}, flags = [] }: Partial<Pick<FlagVector, 'project' | 'flags'>>,
  groups?: Fields,
): Promise<void> {
  const { cohorts = {}, group_type_mapping: groupTypes = {}, ...settings } = project
  await changeProject(instance, settings)
  await captureEvents(instance, groupEvents(groupTypes as Record<string, string>, groups))
  await createCohorts(instance, cohorts as Fields)
  await createFlags(instance, flags)
}

async function setUp(instance: Instance, vector: FlagVector): Promise<void> {
  const { stored = {}, flags, request } = vector
  await setUpDefinitions(instance, vector, stored.group_properties as Fields | undefined)
  if (stored.person_properties === undefined && !stored.hash_key_overrides && !stored.static_cohorts) return
  const distinctId = toComparableText(request.distinct_id as JsonValue)
  const overrides = new Map(Object.entries((stored.hash_key_overrides ?? {}) as Record<string, string>))
  const properties = (stored.person_properties ?? {}) as Fields
  await createPersons(instance, [{ distinctIds: [distinctId], properties, overrides }], flags)
  await addToStaticCohorts(instance, (stored.static_cohorts ?? []) as unknown[], distinctId)
}

async function evaluate(instance: Instance, vector: FlagVector, path: string): Promise<Fields> {
  const { status, text } = await askForFlags(instance, { ...vector, path })
  const body = jsonOf(text)
  if (status !== 200 || !isObject(body)) throw new Error(`${path} answered ${status} ${text}`)
  return body
}

/**
 * The differences of an answer with details: it must have exactly the vector's flags, each with exactly these details.
 */
export function detailDifferences({ expect }: FlagVector, body: Fields, path: string): string[] {
  const flags = (body.flags ?? {}) as Readonly<Record<string, Fields>>
  const details = Object.entries(expect.flags).map(([key, { value: _inTheOtherAnswers, payload, ...detail }]) => {
    const metadata = { ...(flags[key]?.metadata as Fields | undefined), payload }
    return [key, { key, ...detail, metadata }] as const
  })
  return [
    ...sharedDifferences(expect, body, flags, path),
    ...exactDifferences(Object.fromEntries(details), flags, `${path} flags`),
  ]
}

/** What differs in an answer with values and payloads. A flag that failed is in neither. */
export function valueDifferences({ expect }: FlagVector, body: Fields, path: string): string[] {
  const shown = Object.entries(expect.flags).filter(([, { failed }]) => failed !== true)
  const values = shown.map(([key, { value }]) => [key, value] as const)
  const payloads = shown.flatMap(([key, { payload }]) => (payload === null ? [] : [[key, payload] as const]))
  return [
    ...sharedDifferences(expect, body, body.featureFlags, path),
    ...exactDifferences(Object.fromEntries(values), body.featureFlags, `${path} values`),
    ...exactDifferences(Object.fromEntries(payloads), body.featureFlagPayloads, `${path} payloads`),
  ]
}

function sharedDifferences(expect: FlagVector['expect'], body: Fields, flags: unknown, path: string): string[] {
  const { errorsWhileComputingFlags, absent = [] } = expect
  return [
    ...exactDifferences(errorsWhileComputingFlags, body.errorsWhileComputingFlags, `${path} errors`),
    ...presentDifferences(absent, flags, `${path} flags`),
  ]
}
