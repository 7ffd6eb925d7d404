// `flag_vectors`: definitions, stored data and a request → the outcome of every flag, in the three answers that clients
// read: `/flags?v=2` with its details, `/flags?v=1` and `/decide?v=3` with values and payloads.

import { type JsonValue, textOf } from '#core/json.ts'
import {
  assertKnownFields,
  assertKnownVectorFields,
  exactDifferences,
  type Fields,
  isObject,
  subsetDifferences,
} from '../compare.ts'
import { type Instance, type Instances, jsonOf } from '../instance.ts'
import {
  addToStaticCohorts,
  captureEvents,
  changeProject,
  createCohorts,
  createFlags,
  createPersons,
  type FlagDefinition,
  groupEvents,
} from '../state.ts'
import type { VectorCase } from '../vector-case.ts'

interface FlagVector extends Fields {
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

/** The vectors leave the time open unless they give it. */
const anyTime = '2026-01-15T12:00:00Z'

export function flagCases(vectors: readonly FlagVector[], projectKey: string): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: instances => runVector(instances, vector, projectKey) }))
}

async function runVector(instances: Instances, vector: FlagVector, projectKey: string): Promise<string[]> {
  assertKnownVectorFields(vector, ['flags', 'request', 'headers', 'query', 'now', 'project', 'stored', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['flags', 'absent', 'errorsWhileComputingFlags'])
  const worker = vector.stored !== undefined || vector.project?.group_type_mapping !== undefined
  return instances.with({ projectKey, nowMs: Date.parse(vector.now ?? anyTime), worker }, async instance => {
    await setUp(instance, vector)
    const ask = (path: string) => evaluate(instance, vector, path)
    return [
      ...compareDetails(vector, await ask('/flags?v=2'), '/flags?v=2'),
      ...compareValues(vector, await ask('/flags?v=1'), '/flags?v=1'),
      ...compareValues(vector, await ask('/decide?v=3&config=false'), '/decide?v=3'),
    ]
  })
}

async function setUp(instance: Instance, { project = {}, stored = {}, flags, request }: FlagVector): Promise<void> {
  const { cohorts = {}, group_type_mapping: groupTypes = {}, ...settings } = project
  assertKnownFields(stored, 'stored', ['person_properties', 'group_properties', 'hash_key_overrides', 'static_cohorts'])
  await changeProject(instance, settings)
  await captureEvents(
    instance,
    groupEvents(groupTypes as Record<string, string>, stored.group_properties as Fields | undefined),
  )
  await createCohorts(instance, cohorts as Fields)
  await createFlags(instance, flags)
  if (stored.person_properties === undefined && !stored.hash_key_overrides && !stored.static_cohorts) return
  const distinctId = textOf(request.distinct_id as JsonValue)
  const overrides = new Map(Object.entries((stored.hash_key_overrides ?? {}) as Record<string, string>))
  const properties = (stored.person_properties ?? {}) as Fields
  await createPersons(instance, [{ distinctIds: [distinctId], properties, overrides }], flags)
  await addToStaticCohorts(instance, (stored.static_cohorts ?? []) as unknown[], distinctId)
}

async function evaluate(instance: Instance, vector: FlagVector, path: string): Promise<Fields> {
  const query = Object.entries(vector.query ?? {}).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
  const answer = await instance.send({
    method: 'POST',
    path: path + query.join(''),
    headers: { 'content-type': 'application/json', ...vector.headers },
    body: JSON.stringify({ token: instance.projectKey, ...vector.request }),
  })
  const body = jsonOf(answer.text)
  if (answer.status !== 200 || !isObject(body)) throw new Error(`${path} answered ${answer.status} ${answer.text}`)
  return body
}

function compareDetails({ expect }: FlagVector, body: Fields, path: string): string[] {
  const flags = (body.flags ?? {}) as Readonly<Record<string, Fields>>
  const found = [
    ...exactDifferences(expect.errorsWhileComputingFlags, body.errorsWhileComputingFlags, `${path} errors`),
    ...compareNames(expect, Object.keys(flags), path),
  ]
  for (const [key, expected] of Object.entries(expect.flags)) {
    const detail = flags[key]
    if (detail === undefined) continue // named above
    const at = `${path} ${key}`
    for (const [field, value] of Object.entries(expected)) {
      if (field === 'value') continue // what the other answers show
      if (field === 'payload') found.push(...exactDifferences(value, metadataOf(detail).payload, `${at}.payload`))
      else if (field === 'reason') found.push(...subsetDifferences(value, detail.reason, `${at}.reason`))
      else if (['enabled', 'variant', 'failed'].includes(field))
        found.push(...exactDifferences(value, detail[field], `${at}.${field}`))
      else found.push(`the expectation ${field} of flag ${key} is unknown to the runner`)
    }
    if (expected.failed === undefined) found.push(...exactDifferences(undefined, detail.failed, `${at}.failed`))
  }
  return found
}

function compareValues({ expect }: FlagVector, body: Fields, path: string): string[] {
  const values = (body.featureFlags ?? {}) as Fields
  const payloads = (body.featureFlagPayloads ?? {}) as Fields
  const shown = Object.entries(expect.flags).filter(([, { failed }]) => failed !== true)
  const found = [
    ...exactDifferences(expect.errorsWhileComputingFlags, body.errorsWhileComputingFlags, `${path} errors`),
    ...compareNames({ ...expect, flags: Object.fromEntries(shown) }, Object.keys(values), path),
  ]
  for (const [key, { value, payload }] of shown) {
    if (Object.hasOwn(values, key)) found.push(...exactDifferences(value, values[key], `${path} ${key}.value`))
    if (typeof payload === 'string') found.push(...exactDifferences(payload, payloads[key], `${path} ${key}.payload`))
  }
  return found
}

/** `flags` are exactly the flags of the answer; `absent` names some that it must not have. */
function compareNames(expect: FlagVector['expect'], names: readonly string[], path: string): string[] {
  const missing = Object.keys(expect.flags).filter(key => !names.includes(key))
  const unexpected = names.filter(key => !Object.hasOwn(expect.flags, key) || expect.absent?.includes(key))
  return [
    ...missing.map(key => `${path}: the flag ${key} is missing`),
    ...unexpected.map(key => `${path}: the flag ${key} should not be there`),
  ]
}

function metadataOf(detail: Fields): Fields {
  return (detail.metadata ?? {}) as Fields
}
