// `decoding_vectors`: bytes of a request → what the service understood, or its refusal. The values of probe flags show
// what was understood: twenty rollouts of 50 % identify the distinct id (the core's hash, which has its own vectors,
// computes the expected pattern), and a filter for each property shows its value.

import { computeFlagHash01, isInRollout } from '#core/flags/rollout/rollout.ts'
import {
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  exactDifferences,
  type Fields,
  isObject,
  textDifferences,
  textFields,
  unequal,
} from '../compare.ts'
import { type Answer, bodyOf, comparableText, jsonOf } from '../exchange.ts'
import type { Instances } from '../instance.ts'
import { captureEvents, createFlags, type FlagDefinition, groupEvents } from '../state.ts'
import { anyTime, type VectorCase } from '../vector-case.ts'
import { type ExpectedResponse, responseDifferences } from './responses.ts'

export interface DecodingVector extends Fields {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly body_base64?: string
  readonly expect: { readonly status: number; readonly decoded?: Fields; readonly [body: string]: unknown }
}

/** Definitions whose values show what a request was understood as. */
export interface Probes {
  /** Project API key. */
  readonly token: string
  readonly flags: readonly FlagDefinition[]
  /** Index as text → name. */
  readonly groupTypes: Readonly<Record<string, string>>
  /** Keys of the flags that are on when the request is understood as the vector says. */
  readonly on: ReadonlySet<string>
}

interface Probe {
  readonly flag: FlagDefinition
  readonly isOn: boolean
}

const probesPerId = 20

export function decodingCases(vectors: readonly DecodingVector[], projectKey: string): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: instances => runVector(instances, vector, projectKey) }))
}

async function runVector(instances: Instances, vector: DecodingVector, projectKey: string): Promise<string[]> {
  const probes = decodingProbes(vector, projectKey)
  const worker = Object.keys(probes.groupTypes).length > 0
  return instances.with({ projectKey: probes.token, nowMs: Date.parse(anyTime), worker }, async instance => {
    await captureEvents(instance, groupEvents(probes.groupTypes))
    await createFlags(instance, probes.flags)
    const { method, path, headers = {} } = vector
    return decodingDifferences(vector, probes, await instance.send({ method, path, headers, body: bodyOf(vector) }))
  })
}

/** The probes to which a vector's request is sent. @throws CannotRun for a field that the form does not have. */
export function decodingProbes(vector: DecodingVector, projectKey: string): Probes {
  assertKnownVectorFields(vector, ['method', 'path', 'headers', 'body', 'body_base64', 'expect'])
  assertKnownFields(vector.expect, 'expect', ['status', 'decoded', 'config_keys', ...textFields])
  const { decoded = {} } = vector.expect
  assertKnownFields(decoded, 'decoded', ['token', 'distinct_id', 'person_properties', 'groups', 'group_properties'])
  const { distinct_id: distinctId = null } = decoded
  if (distinctId !== null && typeof distinctId !== 'string') throw new CannotRun('decoded.distinct_id is no text')
  const groups = (decoded.groups ?? {}) as Fields
  const groupTypes = Object.keys(groups)
  const probes = [
    ...(distinctId === null ? [] : idProbes(distinctId, 'person', {})),
    ...propertyProbes((decoded.person_properties ?? {}) as Fields, 'property', { type: 'person' }),
    ...groupTypes.flatMap((type, index) =>
      idProbes(String(groups[type]), `group-${index}`, { aggregation_group_type_index: index }),
    ),
    ...Object.entries((decoded.group_properties ?? {}) as Record<string, Fields>).flatMap(([type, properties]) => {
      const index = groupTypes.indexOf(type)
      if (index === -1) throw new CannotRun(`properties of a group without a key: ${type}`)
      const filter = { type: 'group', group_type_index: index }
      return propertyProbes(properties, `group-${index}-property`, filter, { aggregation_group_type_index: index })
    }),
  ]
  return {
    token: String(decoded.token ?? projectKey),
    flags: probes.map(({ flag }, index) => ({ id: index + 1, ...flag })),
    groupTypes: Object.fromEntries(groupTypes.map((type, index) => [index, type])),
    on: new Set(probes.filter(({ isOn }) => isOn).map(({ flag }) => flag.key)),
  }
}

/** @param probes the flags that the request was sent to. */
export function decodingDifferences(
  { expect }: DecodingVector,
  probes: Probes,
  answer: Pick<Answer, 'status' | 'text'>,
): string[] {
  const found = exactDifferences(expect.status, answer.status, 'status')
  if (found.length > 0) return [...found, `it answered ${answer.text.slice(0, 300)}`]
  if (expect.decoded !== undefined) found.push(...compareProbes(probes, answer))
  const bodyDifferences = isResponse(expect) ? responseDifferences(expect, answer) : compareBody(expect, answer)
  return [...found, ...bodyDifferences]
}

/** Whether a whole answer is expected, the configuration in it or not. */
function isResponse(expect: Fields): expect is ExpectedResponse & Fields {
  return expect.config_keys !== undefined && isObject(expect.body)
}

/** A text is held against the `detail` of a JSON error; an object is the whole body. */
function compareBody(expected: Fields, answer: Pick<Answer, 'status' | 'text'>): string[] {
  if (expected.config_keys !== undefined) throw new CannotRun('config_keys says something of a body that is not given')
  return textFields
    .filter(field => Object.hasOwn(expected, field))
    .flatMap(field =>
      isObject(expected[field])
        ? exactDifferences(expected[field], jsonOf(answer.text), 'body')
        : textDifferences(field, expected[field], comparableText(answer)),
    )
}

function idProbes(id: string, name: string, filters: Fields): Probe[] {
  // Only the empty id is inside 0 %.
  const percentages = [0, ...Array.from({ length: probesPerId }, () => 50)]
  return percentages.map((percentage, index) => {
    const key = `${name}-${index}`
    return {
      flag: { key, filters: { ...filters, groups: [{ properties: [], rollout_percentage: percentage }] } },
      isOn: isInRollout(computeFlagHash01(key, id, ''), percentage),
    }
  })
}

/** A pattern is matched with the property's text form, which `null` has and an absent property has not. */
function propertyProbes(properties: Fields, name: string, filter: Fields, filters: Fields = {}): Probe[] {
  return Object.entries(properties).map(([key, value], index) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    const pattern = `^${text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}$`
    const properties = [{ ...filter, key, operator: 'regex', value: pattern }]
    const groups = [{ properties, rollout_percentage: 100 }]
    return { flag: { key: `${name}-${index}`, filters: { ...filters, groups } }, isOn: true }
  })
}

function compareProbes({ flags, on: expected }: Probes, answer: Pick<Answer, 'text'>): string[] {
  const body = jsonOf(answer.text)
  if (!isObject(body)) return [unequal('body', 'a JSON object', answer.text)]
  const on = flagsThatAreOn(body)
  const keys = new Set([...flags.map(({ key }) => key), ...on])
  const wrong = [...keys].filter(key => on.has(key) !== expected.has(key))
  if (wrong.length === 0) return []
  const names = wrong.map(key => `${key} should be ${expected.has(key) ? 'on' : 'off'}`)
  return [`decoded: the probes show something else: ${names.join(', ')}`]
}

/** Reads the flags that are on from any form of answer. */
function flagsThatAreOn({ flags, featureFlags }: Fields): ReadonlySet<string> {
  if (Array.isArray(featureFlags)) return new Set(featureFlags)
  if (isObject(featureFlags)) return new Set(Object.keys(featureFlags).filter(key => featureFlags[key] !== false))
  if (isObject(flags)) return new Set(Object.keys(flags).filter(key => (flags[key] as Fields).enabled === true))
  throw new CannotRun('the answer has neither flags nor featureFlags')
}
